"""Batches of a reader of a shared capture, as Spark runs them, in a folder that outlives it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from harness.capture.batches import Batches
from harness.capture.driving import Offset, rows_of
from harness.capture.shared import shared_reader
from harness.runs.patience import wait_until
from harness.servers.stores import Change
from informix_cdc.spark.reader import InformixStreamReader

FOR_EVER = 1 << 62


def read_shared(
    capture: Path,
    checkpoint: Path,
    up_to: int = FOR_EVER,
    is_stopped: Callable[[], bool] = lambda: False,
    on_batch: Callable[[Offset], None] = lambda _: None,
    options: Mapping[str, str] = MappingProxyType({}),
) -> Batches:
    """Run batches up to a commit; a batch that was planned and is not through runs again first."""
    kept = Batches(checkpoint)
    with shared_reader(capture, **options) as made:
        start: Offset = made.initialOffset()
        through = len(kept.results)
        for batch, end in enumerate(kept.offsets):
            if batch >= through:
                kept.keep(batch, rows_of(made, start, end))
            start = end
        while start["commit"] < up_to and not is_stopped():
            start = _next_batch(made, kept, start)
            on_batch(start)
    return kept


def _next_batch(made: InformixStreamReader, kept: Batches, start: Offset) -> Offset:
    end = made.latestOffset(start, made.getDefaultReadLimit())
    if end == start:
        return start
    batch = kept.plan(end)
    if start["commit"]:  # as Spark does, once the next batch is planned
        made.commit(start)
    kept.keep(batch, rows_of(made, start, end))
    return end


class ReadingThread:
    """A query that reads on and on in a thread of the test."""

    def __init__(self, capture: Path, checkpoint: Path, **options: str) -> None:
        self.error: BaseException | None = None
        self.kept = Batches(checkpoint)
        self._reached = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(capture, checkpoint, options))
        self._thread.start()

    def _run(self, capture: Path, checkpoint: Path, options: dict[str, str]) -> None:
        try:
            is_stopped = self._stop.is_set
            read_shared(
                capture, checkpoint, is_stopped=is_stopped, on_batch=self._reach, options=options
            )
        except Exception as reason:  # noqa: BLE001 - the test looks at it
            self.error = reason

    def _reach(self, end: Offset) -> None:
        self._reached = end["commit"]

    @property
    def commit(self) -> int:
        """The commit up to which all batches are through."""
        if self.error is not None:
            raise self.error
        return self._reached

    def until(self, commit: int, complaint: Callable[[], str] = lambda: "it does not come") -> None:
        """Wait until it has read up to a commit."""
        wait_until(lambda: self.commit >= commit, 60, complaint)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@contextmanager
def reading_on(capture: Path, checkpoint: Path, **options: str) -> Iterator[ReadingThread]:
    """Let a query read for the length of a block."""
    reading = ReadingThread(capture, checkpoint, **options)
    try:
        yield reading
    finally:
        reading.stop()


def changes_in(kept: Batches) -> list[list[object]]:
    """Return the changes of orders that came, comparable with `comparable`."""
    names = ("order_num", "customer_num", "note", "amount")
    rows = [row for rows in kept.results for row in rows]
    places = [(row["_commit_version"], row["_change_ordinal"]) for row in rows]
    assert places == sorted(set(places)), "rows are repeated or out of order"
    return [[row["_change_type"], *(row[name] for name in names)] for row in rows]


def comparable(changes: list[Change]) -> list[list[object]]:
    """Return changes of the account as a folder of batches has them."""
    found = [(kind, order[:3], order[3]) for kind, order in changes]
    return [
        [kind, *order, None if amount is None else f"{amount:.2f}"] for kind, order, amount in found
    ]
