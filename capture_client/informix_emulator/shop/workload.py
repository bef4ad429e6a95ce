"""Order entry of a shop: interleaved transactions on the demo database.

One scheduler, no threads. At every tick new transactions begin and each open one makes a step, so the
result depends only on the seed and the rate. A row belongs to the transaction that changes it until the
transaction ends, as with locks on a real server.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from threading import Event
from typing import Any

from ..log.transactions import EmulatedTransaction
from ..server import EmulatedServer
from ..sql import row_as_stored
from . import database
from .database import CUSTOMERS, ITEMS, ORDERS, RowDict

TICK_SECONDS = 0.01
_ROLLED_BACK = 0.12  # of all transactions; short ones commit before it comes to that
_SECOND_THOUGHTS = 0.2  # of all orders: an item is put in and taken out again by a savepoint
_SECOND_THOUGHTS_FROM = 100  # added to the numbers of such items
# Older rows are forgotten, so that the workload can run for days.
_MOST_CUSTOMERS, _MOST_ORDERS = 500, 400


@dataclass(frozen=True, slots=True)
class ExpectedChange:
    """One row image, as a stream must deliver it."""

    change_type: str
    table: str
    row: RowDict


@dataclass(frozen=True, slots=True)
class CommittedTransaction:
    """What one transaction changed, and when it committed by the clock and by the log."""

    commit: int
    committed_at: float
    changes: tuple[ExpectedChange, ...]


@dataclass(slots=True)
class _Work:
    """An open transaction, and what becomes true when it commits."""

    server: EmulatedServer
    transaction: EmulatedTransaction
    patience: float  # after so many steps it rolls back
    steps: Iterator[None] = field(default_factory=lambda: iter(()))
    changes: list[ExpectedChange] = field(default_factory=list)
    claims: set[tuple[str, int]] = field(default_factory=set)
    on_commit: list[Callable[[], None]] = field(default_factory=list)

    def _as_stored(self, table: str, row: RowDict) -> RowDict:
        return dict(row_as_stored(self.server, table, row, database.KEYS[table]))

    def insert(self, table: str, row: RowDict) -> None:
        row = self._as_stored(table, row)
        self.transaction.insert(table, row)
        self.changes.append(ExpectedChange("insert", table, row))

    def delete(self, table: str, row: RowDict) -> None:
        row = self._as_stored(table, row)
        self.transaction.delete(table, row)
        self.changes.append(ExpectedChange("delete", table, row))

    def update(self, table: str, before: RowDict, **new_values: object) -> RowDict:
        before = self._as_stored(table, before)
        after = {name: new_values.get(name, value) for name, value in before.items()}
        self.transaction.update(table, before, after)
        self.changes.append(ExpectedChange("update_preimage", table, before))
        self.changes.append(ExpectedChange("update_postimage", table, after))
        return after


@dataclass(slots=True)
class _Order:
    row: RowDict
    items: list[RowDict]


class Workload:
    """Runs a shop's transactions, and reports each one that it commits.

    Args:
        server: has the demo database.
        seed: the same seed and rate make the same transactions.
        transactions_per_second: how many begin.
        on_commit: called with each committed transaction, in commit order.
        clock: seconds since 1970.
        clears_up: deletes the oldest rows, so that a server that keeps rows can run for days too;
            otherwise they are left alone.
        first_customer, first_order: the numbers that it gives out begin here.
    """

    def __init__(
        self,
        server: EmulatedServer,
        seed: int,
        transactions_per_second: float,
        on_commit: Callable[[CommittedTransaction], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
        *,
        clears_up: bool = False,
        first_customer: int = 101,
        first_order: int = 1001,
    ) -> None:
        self.begun = self.committed = self.rolled_back = self.savepoints_undone = 0
        self._server = server
        self._random = random.Random(seed)
        self._rate = transactions_per_second
        self._on_commit = on_commit
        self._clock = clock
        self._clears_up = clears_up
        self._most_customers = float("inf") if clears_up else _MOST_CUSTOMERS
        self._most_orders = float("inf") if clears_up else _MOST_ORDERS
        self._ticks = 0
        self._open: list[_Work] = []
        self._claimed: set[tuple[str, int]] = set()
        self._customer_numbers, self._order_numbers = count(first_customer), count(first_order)
        self._customers: dict[int, RowDict] = {}
        self._orders: dict[int, _Order] = {}

    def run(self, stop: Event) -> None:
        """Work at the rate until stopped, then end what is open."""
        began = time.monotonic() - self._ticks * TICK_SECONDS
        while not stop.wait(max(0.0, began + self._ticks * TICK_SECONDS - time.monotonic())):
            self._tick()
        self._finish()

    def run_transactions(self, number: int) -> None:
        """Begin and end so many transactions, as fast as it goes."""
        while self.begun < number:
            self._tick(most=number)
        self._finish()

    def _tick(self, most: int | None = None) -> None:
        self._ticks += 1
        due = int(self._ticks * TICK_SECONDS * self._rate)
        for _ in range(self.begun, due if most is None else min(due, most)):
            self._begin()
        self._step_all()

    def _finish(self) -> None:
        while self._open:
            self._step_all()

    def _step_all(self) -> None:
        for work in self._random.sample(self._open, len(self._open)):
            work.patience -= 1
            if work.patience < 0:
                self._roll_back(work)
            elif next(work.steps, self) is self:  # the generator has ended
                self._commit(work)

    def _begin(self) -> None:
        transaction = self._server.begin(user_id=self._random.choice(database.CLERKS))
        gives_up = self._random.random() < _ROLLED_BACK
        work = _Work(
            self._server, transaction, self._random.randint(1, 3) if gives_up else float("inf")
        )
        kinds, weights = zip(*_KINDS, strict=True)
        (kind,) = self._random.choices(kinds, weights)
        work.steps = (self._clear_up(work) if self._clears_up else None) or kind(self, work)
        self._open.append(work)
        self.begun += 1

    def _commit(self, work: _Work) -> None:
        committed_at = self._clock()
        commit = work.transaction.commit()
        for apply in work.on_commit:
            apply()
        self._end(work)
        if work.changes:
            self.committed += 1
            self._on_commit(CommittedTransaction(commit, committed_at, tuple(work.changes)))

    def _roll_back(self, work: _Work) -> None:
        work.transaction.rollback()
        self.rolled_back += 1
        self._end(work)

    def _end(self, work: _Work) -> None:
        self._open.remove(work)
        self._claimed -= work.claims

    def _claim(self, work: _Work, table: str, rows: Mapping[int, object]) -> int | None:
        """Choose a row that no open transaction has touched, and keep the others off it."""
        free = [number for number in rows if (table, number) not in self._claimed]
        if not free:
            return None
        number = self._random.choice(free)
        work.claims.add((table, number))
        self._claimed.add((table, number))
        return number

    def _welcome_customer(self, work: _Work) -> Iterator[None]:
        number = next(self._customer_numbers)
        row = database.customer(self._random, number)
        work.insert(CUSTOMERS, row)
        work.on_commit.append(lambda: _keep(self._customers, number, row, self._most_customers))
        yield

    def _move_customer(self, work: _Work) -> Iterator[None]:
        number = self._claim(work, CUSTOMERS, self._customers)
        if number is None:
            return
        moved = database.address(self._random)
        after = work.update(CUSTOMERS, self._customers[number], **moved)
        work.on_commit.append(lambda: _keep(self._customers, number, after, self._most_customers))
        yield

    def _place_order(self, work: _Work) -> Iterator[None]:
        customer = self._claim(work, CUSTOMERS, self._customers)
        if customer is None:
            yield from self._welcome_customer(work)
            return
        number = next(self._order_numbers)
        items = list(database.items(self._random, number))
        row = database.order(self._random, number, customer, items, self._clock())
        work.insert(ORDERS, row)
        yield
        for item in items:
            work.insert(ITEMS, item)
            yield
        if self._random.random() < _SECOND_THOUGHTS:
            yield from self._change_mind(work, number)
        work.on_commit.append(lambda: self._keep_order(number, _Order(row, items)))

    def _change_mind(self, work: _Work, order: int) -> Iterator[None]:
        """Put items into the order and take them out again: the account forgets them at once."""
        kept = list(work.changes)
        savepoint = work.transaction.savepoint()
        for item in database.items(self._random, order):
            # The order has items with these numbers already.
            work.insert(ITEMS, {**item, "item_num": item["item_num"] + _SECOND_THOUGHTS_FROM})
            yield
        work.transaction.rollback_to(savepoint)
        work.changes[:] = kept
        self.savepoints_undone += 1

    def _ship_order(self, work: _Work) -> Iterator[None]:
        number = self._claim(work, ORDERS, self._orders)
        if number is None:
            return
        order = self._orders[number]
        after = work.update(ORDERS, order.row, **database.shipment(self._random, self._clock()))
        work.on_commit.append(lambda: self._keep_order(number, _Order(after, order.items)))
        yield

    def _change_quantity(self, work: _Work) -> Iterator[None]:
        number = self._claim(work, ORDERS, self._orders)
        if number is None:
            return
        order = self._orders[number]
        place = self._random.randrange(len(order.items))
        previous = order.items[place]
        item = work.update(ITEMS, previous, **database.new_quantity(self._random, previous))
        yield
        items = [*order.items[:place], item, *order.items[place + 1 :]]
        row = work.update(ORDERS, order.row, total=database.total(items))
        work.on_commit.append(lambda: self._keep_order(number, _Order(row, items)))
        yield

    def _cancel_order(self, work: _Work) -> Iterator[None]:
        number = self._claim(work, ORDERS, self._orders)
        if number is None:
            return
        yield from self._take_back(work, number)

    def _clear_up(self, work: _Work) -> Iterator[None] | None:
        """Take the oldest order or customer out, if there are too many."""
        for table, rows, most, leave in (
            (ORDERS, self._orders, _MOST_ORDERS, self._take_back),
            (CUSTOMERS, self._customers, _MOST_CUSTOMERS, self._dismiss),
        ):
            oldest = next((number for number in rows if (table, number) not in self._claimed), None)
            if len(rows) > most and oldest is not None:
                work.claims.add((table, oldest))
                self._claimed.add((table, oldest))
                return leave(work, oldest)
        return None

    def _keep_order(self, number: int, order: _Order) -> None:
        _keep(self._orders, number, order, self._most_orders)

    def _dismiss(self, work: _Work, customer: int) -> Iterator[None]:
        work.delete(CUSTOMERS, self._customers[customer])
        work.on_commit.append(lambda: _forget(self._customers, customer))
        yield

    def _take_back(self, work: _Work, number: int) -> Iterator[None]:
        order = self._orders[number]
        for item in order.items:
            work.delete(ITEMS, item)
            yield
        work.delete(ORDERS, order.row)
        work.on_commit.append(lambda: _forget(self._orders, number))
        yield


_KINDS: tuple[tuple[Callable[[Workload, _Work], Iterator[None]], int], ...] = (
    (Workload._place_order, 40),
    (Workload._ship_order, 20),
    (Workload._change_quantity, 15),
    (Workload._welcome_customer, 10),
    (Workload._cancel_order, 10),
    (Workload._move_customer, 5),
)


def _keep(rows: dict[int, Any], number: int, row: object, most: float) -> None:
    rows[number] = row
    if len(rows) > most:
        del rows[next(iter(rows))]


def _forget(rows: dict[int, Any], number: int) -> None:
    rows.pop(number, None)
