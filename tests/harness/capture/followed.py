"""Follow a stream through a misbehaving proxy, as Spark would, and hold it to the workload's account.

Rule: what was delivered is kept transaction by transaction in the order it came, and offsets may only
move forward; the account comes from `stores.Workload`, which shares no code with the product.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from harness.capture.driving import (
    LIMIT,
    Offset,
    anchor_of,
    failure_of,
    reader,
    rows_of,
)
from harness.runs.moved_clock import MovedClock
from harness.runs.patience import patiently
from harness.servers.fault_proxy import FaultProxy, Plan
from harness.servers.stores import Change, Workload, listening_stores
from informix_capture_client.errors import InformixCdcError
from informix_cdc.clock import MONOTONIC
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import EmulatedServer, ListeningServer

Delivered = list[tuple[int, list[Change]]]
_LOOK_SECONDS = 5.0  # between two looks at a stream whose clock is moved


@dataclass(frozen=True)
class Stores:
    """An emulated server, its listener, and the proxy before it."""

    server: EmulatedServer
    listening: ListeningServer
    proxy: FaultProxy


@contextmanager
def stores_behind_proxy(plan: Plan | None = None, **arguments: object) -> Iterator[Stores]:
    """Serve the stores database through a proxy for the length of a block; TIMEOUTs come quickly."""
    with (
        listening_stores(**{"timeout_seconds": 0.2, **arguments}) as (server, listening),
        FaultProxy(listening.port, plan) as proxy,
    ):
        yield Stores(server, listening, proxy)


class Followed:
    """A stream from its anchor on, or from where a former query ended, and what it has delivered.

    Each look at it lets some seconds pass, if its clock is one that is moved.
    """

    def __init__(
        self,
        made: InformixStreamReader,
        former: Followed | None = None,
        clock: MovedClock | None = None,
    ) -> None:
        self.clock = clock
        self.offset: Offset = former.offset if former else anchor_of(made)
        self._made = made
        self._rows: list[dict[str, Any]] = list(former._rows) if former else []

    @property
    def delivered(self) -> Delivered:
        """The transactions that came, with their changes; one that came twice is here twice."""
        by_commit = groupby(self._rows, key=lambda row: row["_commit_version"])
        return [(commit, [_change(row) for row in rows]) for commit, rows in by_commit]

    def step(self, seconds: float = 30) -> None:
        """Take the next batch, and take it again: the same offsets give the same rows."""
        deadline = time.monotonic() + patiently(seconds)
        while not self.look():
            assert time.monotonic() < deadline, f"nothing new: {self._made.reportLatestOffset()}"

    def _take(self, end: Offset) -> None:
        assert end["commit"] >= self.offset["commit"]
        assert end["restart"] >= self.offset["restart"]
        rows = rows_of(self._made, self.offset, end)
        assert rows == rows_of(self._made, self.offset, end)
        self._rows += rows
        self.offset = end

    def upto(self, commit: int) -> None:
        """Take batches until a commit has come."""
        while self.offset["commit"] < commit:
            self.step()

    def look(self) -> bool:
        """Ask once, and take what is there; return whether there was something."""
        if is_news := (end := self._made.latestOffset(self.offset, LIMIT)) != self.offset:
            self._take(end)
        elif self.clock is not None:
            self.clock.move(_LOOK_SECONDS)
        return is_news

    def failure(self, meanwhile: Callable[[], object] = lambda: None) -> InformixCdcError:
        """Take batches until the stream fails, doing something between two looks; return why."""

        def go_on() -> None:
            deadline = time.monotonic() + patiently(30)
            while time.monotonic() < deadline:
                meanwhile()
                self.look()

        return failure_of(go_on)

    def figure(self, name: str) -> Any:
        """Return a figure that the stream reports to Spark."""
        return (self._made.reportLatestOffset() or {})[name]


@contextmanager
def followed(
    port: int, former: Followed | None = None, *, clock: MovedClock | None = None, **options: str
) -> Iterator[Followed]:
    """Follow a stream from now on, or where a query that has ended left off."""
    with reader(port, clock=clock or MONOTONIC, **options) as made:
        yield Followed(made, former, clock)


def account(workload: Workload) -> Delivered:
    """Return what a workload has committed."""
    return [(one.commit, one.changes) for one in workload.committed]


def in_background(
    workload: Workload, transactions: int, pause_seconds: float = 0.0
) -> threading.Thread:
    """Run a workload beside the test; join the thread before asking for its account.

    Args:
        workload: run in portions of 10 transactions.
        transactions: how many in all.
        pause_seconds: how long it rests after each portion.
    """

    def run() -> None:
        for _ in range(0, transactions, 10):
            workload.run(10)
            time.sleep(pause_seconds)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def _change(row: dict[str, Any]) -> Change:
    order = (row["order_num"], row["customer_num"], row["note"], row["amount"])
    return row["_change_type"], order
