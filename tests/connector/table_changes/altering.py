"""One stream of two tables, of which orders are altered while customers go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from click.testing import Result

from connector.commands.commands import run
from harness.capture.driving import Offset, Served, anchor_of, drained, next_offset, reader, rows_of
from harness.runs.patience import patiently
from harness.servers.stores import CUSTOMERS, ORDER_COLUMNS, ORDERS, order_row
from harness.spark.checkpoints import run_batches
from informix_cdc.commands import altering
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import EmulatedTransaction

TWO = "informix.orders,informix.customers"
ALTERED = f"{ORDER_COLUMNS}, priority integer"
Rows = list[dict[str, Any]]


@dataclass
class Shop:
    """The server, the query's checkpoint, and what was done in it.

    Attributes:
        expected: (table, number) of each change that was committed while it was captured, in order.
    """

    served: Served
    folder: Path
    table: str = TWO
    expected: list[tuple[str, int]] = field(default_factory=list)
    offsets: list[Offset] = field(default_factory=list)
    priority: dict[str, object] = field(default_factory=dict)
    dialect: str = "informix"

    @property
    def receipt(self) -> Path:
        return self.folder / "receipt.json"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def order(self, number: int, transaction: EmulatedTransaction) -> None:
        transaction.insert(ORDERS, {**order_row((number, 1, "note", None)), **self.priority})

    def customer(self, number: int, transaction: EmulatedTransaction) -> None:
        transaction.insert(CUSTOMERS, {"customer_num": number, "name": "Ann", "city": "Oslo"})

    def committed(self, *changes: tuple[str, int]) -> int:
        """Commit changes; say which ones a stream of both tables is to deliver."""
        transaction = self.served[0].begin()
        self.change(transaction, *changes)
        self.expected += [change for change in changes if self.captures(change[0])]
        return int(transaction.commit())

    def captures(self, name: str) -> bool:
        return f"informix.{name}" in self.table.split(",")

    def change(self, transaction: EmulatedTransaction, *changes: tuple[str, int]) -> None:
        for name, number in changes:
            (self.order if name == "orders" else self.customer)(number, transaction)

    @contextmanager
    def query(self, **options: str) -> Iterator[InformixStreamReader]:
        with reader(self.served[1].port, table=self.table, dialect=self.dialect, **options) as made:
            yield made

    def begin(self, **options: str) -> Rows:
        """Begin the stream, deliver a transaction of both tables, and stop it."""
        with self.query(**options) as made:
            start = anchor_of(made)
            rows, end = drained(made, start, self.committed(("orders", 1), ("customers", 1)))
        self.offsets = [start, end]
        run_batches(self.checkpoint, *self.offsets)
        return rows

    def run(self, *arguments: str) -> Result:
        return run(self.served[1], *arguments, f"--dialect={self.dialect}")

    def release(self, *more: str, tables: tuple[str, ...] = ("informix.orders",)) -> Result:
        checkpoint = f"--checkpoint={self.checkpoint}"
        arguments = ("release", *tables, checkpoint, "--yes", "--quiet-seconds=0.2")
        return self.run(*arguments, f"--receipt={self.receipt}", *more)

    def alter(self, columns: str = ALTERED, *, in_place: bool = False) -> None:
        self.served[0].alter_table(ORDERS, columns, in_place)
        self.served[0].finish_alter(ORDERS)
        self.priority = {"priority": 7} if columns == ALTERED else {}

    def acquire(self, *more: str, tables: tuple[str, ...] = ("informix.orders",)) -> Result:
        arguments = ("acquire", *tables, f"--receipt={self.receipt}")
        return self.run(*arguments, *more)

    @contextmanager
    def acquire_that_waits(self) -> Iterator[None]:
        """Run acquire beside the block, at whose end a transaction ends that it has waited for."""
        open_now = self.served[0].begin()
        self.customer(8, open_now)
        results: list[Result] = []
        is_waiting, await_ends = threading.Event(), altering._await_ends

        def noted(*arguments: Any) -> None:
            is_waiting.set()
            await_ends(*arguments)

        waiting = threading.Thread(target=lambda: results.append(self.acquire()))
        with patch.object(altering, "_await_ends", noted):
            waiting.start()
            assert is_waiting.wait(patiently(20))
            assert not results
            yield
            assert not results
            open_now.commit()
            waiting.join(patiently(20))
        assert results[0].exit_code == 0, results[0].output

    def procedure(self) -> None:
        """Release, ALTER, acquire."""
        for done in (self.release(), self.alter(), self.acquire()):
            assert done is None or done.exit_code == 0, done.output

    @staticmethod
    def until_back(made: InformixStreamReader, start: Offset) -> tuple[Rows, Offset]:
        """Take batches until the table is back with its new columns."""
        rows: Rows = []
        former = start["tables"]["informix.orders"]["digest"]
        while start["tables"]["informix.orders"]["digest"] == former:
            end = next_offset(made, start, seconds=20)
            rows, start = rows + rows_of(made, start, end), end
        return rows, start

    def delivered(self, rows: Rows) -> list[tuple[str, int]]:
        """Return the table and the number of each row."""
        if "," not in self.table:
            return [("orders", row["order_num"]) for row in rows]
        keys = {"orders": "order_num", "customers": "customer_num"}
        return [(name, row[name][keys[name]]) for row in rows for name in keys if row.get(name)]
