"""A table of orders whose rows can be read, as a snapshot does, and a writer with its own account.

The account is the oracle of targets that shall equal the table: it shares no code with the product.
Unlike the transactions of `Workload`, these change rows of earlier ones, their keys too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from harness.servers.stores import DATABASE, ORDERS, PASSWORD, SHORT_SECOND, source_options
from informix_emulator import (
    EmulatedServer,
    EmulatedTransaction,
    ListeningServer,
    keep_rows,
)

COLUMNS = "order_num serial primary key, city varchar(20)"
_CITIES = (None, "", "Basel", "Zürich", "x" * 20)
Order = dict[str, object]


class KeptOrders:
    """The server's table, changed at random.

    Attributes:
        present: the orders that are committed, by their number.
    """

    def __init__(
        self, server: EmulatedServer, listening: ListeningServer, seed: int, table: str = ORDERS
    ) -> None:
        self.present: dict[int, Order] = {}
        self.server, self.listening = server, listening
        self.more: Order = {}  # values of columns that an ALTER has added
        self._table = table
        self._random = random.Random(seed)
        self._numbers = 0

    def options(self, **changes: str) -> dict[str, str]:
        return source_options(self.listening.port, initialSnapshot="all", **changes)

    def insert(self, count: int) -> None:
        """Commit new orders in one transaction."""
        with self.server.transaction() as transaction:
            for _ in range(count):
                self._insert(transaction)

    def change(self, transactions: int) -> None:
        """Commit transactions, each of a few changes; a deleted number may come back."""
        for _ in range(transactions):
            with self.server.transaction() as transaction:
                for _ in range(self._random.randint(1, 4)):
                    how = self._random.choice((self._insert, self._update, self._rename, self._delete))
                    how(transaction)

    def truncate(self) -> None:
        """Commit a TRUNCATE."""
        self.present = {}
        with self.server.transaction() as transaction:
            transaction.truncate(self._table)

    def alter(self) -> None:
        """Add a column, which new and changed rows have from now on."""
        self.server.alter_table(self._table, f"{COLUMNS}, priority integer")
        self.server.finish_alter(self._table)
        self.present = {key: {**order, "priority": None} for key, order in self.present.items()}
        self.more = {"priority": 7}

    def _insert(self, transaction: EmulatedTransaction) -> None:
        gone = [number for number in range(1, self._numbers) if number not in self.present]
        if not gone or self._random.random() < 0.7:
            self._numbers += 1
            gone = [self._numbers]
        number = self._random.choice(gone)
        self.present[number] = self._order(number)
        transaction.insert(self._table, self.present[number])

    def _update(self, transaction: EmulatedTransaction) -> None:
        number = self._random.choice([*self.present])
        before, self.present[number] = self.present[number], self._order(number)
        transaction.update(self._table, before, self.present[number])

    def _rename(self, transaction: EmulatedTransaction) -> None:
        before = self.present.pop(self._random.choice([*self.present]))
        self._numbers += 1
        self.present[self._numbers] = self._order(self._numbers)
        transaction.update(self._table, before, self.present[self._numbers])

    def _delete(self, transaction: EmulatedTransaction) -> None:
        transaction.delete(self._table, self.present.pop(self._random.choice([*self.present])))

    def _order(self, number: int) -> Order:
        return {"order_num": number, "city": self._random.choice(_CITIES), **self.more}


@contextmanager
def kept_orders(seed: int) -> Iterator[KeptOrders]:
    """Serve such a table for the length of a block."""
    server = EmulatedServer("informix", {"informix": PASSWORD}, timeout_seconds=SHORT_SECOND)
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    keep_rows(server)
    server.create_table(ORDERS, COLUMNS)
    with ListeningServer(server) as listening:
        yield KeptOrders(server, listening, seed)
