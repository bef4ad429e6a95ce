"""An emulated server with one table of orders, and a workload that keeps its own account.

The account is the oracle of many tests: it knows what was committed because it did the committing,
and shares no code with the product.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from informix_emulator import EmulatedServer, EmulatedTransaction, ListeningServer

PASSWORD = "s3cret-of-the-dba"
DATABASE = "stores"
SHORT_SECOND = 0.05  # how long a second of a session's timeout lasts: tests have no time to lose
ORDERS = "stores:informix.orders"
CUSTOMERS = "stores:informix.customers"
ORDER_COLUMNS = "order_num serial, customer_num integer, note varchar(60,0), amount decimal(10,2)"
CUSTOMER_COLUMNS = "customer_num integer, name char(12), city nvarchar(20,0)"

Order = tuple[int, int | None, str | None, Decimal | None]
Change = tuple[str, Order]


def quick_clock(times: float = 10) -> Callable[[], float]:
    """Return a clock for a server on which seconds pass quickly: much waits for the next whole one."""
    begun = time.time()
    return lambda: begun + times * (time.time() - begun)


def stores_server(poses_as: str = "informix", **arguments: object) -> EmulatedServer:
    """Return a server with the logged database `stores` and its two tables."""
    users = {{"informix": "informix", "gbase8s": "gbasedbt"}[poses_as]: PASSWORD}
    server = EmulatedServer("informix", users, poses_as=poses_as, **arguments)  # type: ignore[arg-type]
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    server.create_table(ORDERS, ORDER_COLUMNS)
    server.create_table(CUSTOMERS, CUSTOMER_COLUMNS)
    return server


@contextmanager
def listening_stores(**arguments: object) -> Iterator[tuple[EmulatedServer, ListeningServer]]:
    """Serve a stores server for the length of a block; its seconds are short."""
    server = stores_server(**{"timeout_seconds": SHORT_SECOND, **arguments})  # type: ignore[arg-type]
    with ListeningServer(server) as listening:
        yield server, listening


def source_options(port: int, **changes: Any) -> dict[str, Any]:
    """Return the options of a stream of orders over the emulator's own transport."""
    return {
        "host": "127.0.0.1",
        "port": str(port),
        "server": "informix",
        "database": DATABASE,
        "table": "informix.orders",
        "password": PASSWORD,
        "transport": "sqli",
        **changes,
    }


def order_row(order: Order) -> dict[str, object]:
    """Return an order as the emulator takes it."""
    return dict(zip(("order_num", "customer_num", "note", "amount"), order, strict=True))


@dataclass
class CommittedTransaction:
    """One transaction of the account: where it committed and what it changed, in order."""

    commit: int
    changes: list[Change]


@dataclass
class _OpenTransaction:
    transaction: EmulatedTransaction
    changes: list[Change] = field(default_factory=list)
    rows: dict[int, Order] = field(default_factory=dict)


class Workload:
    """Interleaves transactions on the orders table: commits, rollbacks, savepoints.

    Each open transaction owns the rows it touches, as locks would see to it on a real server.
    """

    def __init__(self, server: EmulatedServer, seed: int, max_open: int = 6) -> None:
        self.committed: list[CommittedTransaction] = []
        self.rolled_back = 0
        self.savepoints_undone = 0
        self.rows_undone = 0  # by savepoints; both images of an update
        self._server = server
        self._random = random.Random(seed)
        self._max_open = max_open
        self._open: list[_OpenTransaction] = []
        self._rows: dict[int, Order] = {}
        self._next_order = 1

    def run(self, transactions: int) -> None:
        """Begin and end this many transactions."""
        begun = 0
        while begun < transactions or self._open:
            if begun < transactions and len(self._open) < self._max_open and self._chance(0.4):
                self._open.append(_OpenTransaction(self._server.begin(user_id=1000 + begun % 7)))
                begun += 1
            elif self._open:
                self._step(self._random.choice(self._open))

    def changes(self) -> list[Change]:
        """Return every committed change in commit order."""
        return [change for one in self.committed for change in one.changes]

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _step(self, one: _OpenTransaction) -> None:
        if not self._chance(0.3):
            self._change(one)
        elif self._chance(0.25):
            self._undo_some(one)
        elif self._chance(0.15):
            one.transaction.rollback()
            self.rolled_back += 1
            self._end(one)
        else:
            commit = one.transaction.commit()
            self._rows |= one.rows
            if one.changes:
                self.committed.append(CommittedTransaction(commit, one.changes))
            self._end(one)

    def _end(self, one: _OpenTransaction) -> None:
        self._open.remove(one)

    def _undo_some(self, one: _OpenTransaction) -> None:
        high_watermark = one.transaction.savepoint()
        kept_changes, kept_rows = list(one.changes), dict(one.rows)
        for _ in range(self._random.randint(1, 4)):
            self._change(one)
        one.transaction.rollback_to(high_watermark)
        self.rows_undone += len(one.changes) - len(kept_changes)
        one.changes, one.rows = kept_changes, kept_rows
        self.savepoints_undone += 1

    def _change(self, one: _OpenTransaction) -> None:
        if one.rows and self._chance(0.3):
            self._update(one)
        elif one.rows and self._chance(0.2):
            self._delete(one)
        else:
            self._insert(one)

    def _insert(self, one: _OpenTransaction) -> None:
        order = self._order(self._next_order)
        self._next_order += 1
        one.transaction.insert(ORDERS, order_row(order))
        one.rows[order[0]] = order
        one.changes.append(("insert", order))

    def _update(self, one: _OpenTransaction) -> None:
        before = one.rows[self._random.choice(list(one.rows))]
        after = self._order(before[0])
        one.transaction.update(ORDERS, order_row(before), order_row(after))
        one.rows[before[0]] = after
        one.changes += [("update_preimage", before), ("update_postimage", after)]

    def _delete(self, one: _OpenTransaction) -> None:
        order = one.rows.pop(self._random.choice(list(one.rows)))
        one.transaction.delete(ORDERS, order_row(order))
        one.changes.append(("delete", order))

    def _order(self, number: int) -> Order:
        note = self._random.choice([None, "", "naïve", "x" * 60, f"order {number}"])
        amount = None if self._chance(0.1) else Decimal(self._random.randint(-(10**9), 10**9)) / 100
        return number, self._random.choice([None, 7, -7]), note, amount
