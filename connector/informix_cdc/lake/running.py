"""Run a query in the foreground: show its progress, stop at Ctrl-C, and end without Spark's traceback.

    query = lake.mirror(spark, source=..., into=..., checkpoint=...)
    lake.run(query)

Rule: on a terminal one line is updated in place, elsewhere a line is printed now and then. Used by
`informix-cdc mirror`, and by programs and notebooks.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from informix_capture_client.errors import error_in
from informix_capture_client.positions import show
from informix_capture_client.printable import printable
from informix_cdc.lake.mirrored_batch import Maintained, MirroredBatch
from informix_cdc.lake.sessions import quiet_log
from informix_cdc.snapshots import TableProgress
from informix_cdc.terminal import TableProgressShown, counted, say, table_progress

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_SIGNALS: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)
_POLL_SECONDS = 1
_WINDOW_SECONDS = 5.0  # over which rows are counted for the rate
_MAINTENANCE_SECONDS = 60  # between lines about it


class BatchView(Protocol):
    """Shows batches."""

    def batch(self, batch: MirroredBatch) -> None:
        """Take what a batch has done."""


class MirrorOfQuery(Protocol):
    """What writes a query's batches; `view`, if set, is given each.

    Attributes:
        estimates: approximate number of rows by owner.table.
        stopped: the tables that are no longer mirrored, with reasons.
    """

    view: BatchView | None
    estimates: Mapping[str, int]

    @property
    def stopped(self) -> dict[str, str]:
        """The tables that are no longer mirrored, with reasons."""
        ...

    def end_batch(self) -> None:
        """Return when no batch is being written; none is from then on."""


# The mirrors of this process, by the id of the query. They register themselves: a query of another kind
# is shown without what mirrors need.
MIRRORS: WeakValueDictionary[str, MirrorOfQuery] = WeakValueDictionary()


def run(query: StreamingQuery) -> frozenset[str]:
    """Show a query's progress until it ends. Ctrl-C or SIGTERM stops it after the current batch.

    Args:
        query: that `mirror` has returned, or another one of format("informix-cdc").

    Returns:
        the tables that a mirror has stopped; empty for other queries.

    Raises:
        InformixCdcError: the query has failed; without the traceback of Spark.
    """
    with stopped_by_signals() as is_stopped:
        return run_until(query, is_stopped)


def run_until(query: StreamingQuery, is_stopped: Callable[[], bool]) -> frozenset[str]:
    """Show a query's progress until it ends, or is stopped; see `run`."""
    mirror = MIRRORS.get(query.id)
    with table_progress() as shown:
        view: _View = _StreamView(query, shown)
        if mirror is not None:
            view = mirror.view = MirrorView(shown, mirror.estimates)
            view.stopped_tables(mirror.stopped)
        say("Waiting for the first batch. Press Ctrl-C to stop.")
        try:
            while not query.awaitTermination(_POLL_SECONDS):
                if is_stopped():
                    with quiet_log():
                        if mirror is not None:
                            mirror.end_batch()
                        query.stop()
                    break
                view.draw()
        except Exception as reason:
            if (known := error_in(str(reason))) is None:
                raise
            raise known from None
        finally:
            with quiet_log():  # Spark logs the interruption of a batch as an error, with its stack
                query.stop()
        shown.hide()
        say(view.ended(is_interrupted=is_stopped()))
    return frozenset(view.stopped)


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[Callable[[], bool]]:
    """Handle SIGINT and SIGTERM; yield a function that returns whether one has arrived.

    A second one has its usual effect. Outside of the main thread, signals have their usual effect.
    """
    came: list[int] = []
    previous: dict[int, Any] = {}

    def handle(number: int, _frame: object) -> None:
        came.append(number)
        signal.signal(number, previous[number] or signal.SIG_DFL)

    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            previous[number] = signal.signal(number, handle)
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler or signal.SIG_DFL)


class _View(Protocol):
    stopped: set[str]

    def draw(self) -> None: ...

    def ended(self, *, is_interrupted: bool) -> str: ...


class MirrorView:
    """Shows what a mirror does.

    Args:
        shown: draws lines and bars.
        estimates: approximate number of rows by owner.table.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        shown: TableProgressShown,
        estimates: Mapping[str, int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shown, self._estimates, self._clock = shown, estimates, clock
        self.stopped: set[str] = set()
        self._loading: set[str] = set()  # since the start: earlier snapshots are not shown
        self._last: MirroredBatch | None = None
        self._changes, self._tables, self._batches = 0, set[str](), 0
        self._latest: tuple[int, datetime] | None = None  # commit of the latest change, and its time
        self._behind = 0.0
        self._counts: deque[tuple[float, int]] = deque()
        self._maintained, self._maintained_at = Maintained(), clock()
        self._lock = threading.Lock()  # batches come from another thread than `draw`

    def stopped_tables(self, stopped: Mapping[str, str]) -> None:
        """Print the tables that have stopped since the last call."""
        if news := sorted(stopped.keys() - self.stopped):
            self._shown.hide()
            for table in news:
                say(f"Stopped: {table}: {printable(stopped[table])}")
        self.stopped = set(stopped)

    def batch(self, batch: MirroredBatch) -> None:
        """Take what a batch has done."""
        with self._lock:
            now = self._clock()
            written = {name: n for name, n in batch.changes.items() if name not in batch.stopped}
            self._last, self._batches = batch, self._batches + bool(written)
            self._changes += sum(written.values())
            self._tables |= written.keys()
            self._counts.append((now, sum(written.values())))
            if written and batch.committed_at is not None:
                self._latest = batch.commit, batch.committed_at
                self._behind = max((datetime.now(UTC) - batch.committed_at).total_seconds(), 0.0)
            if now - self._maintained_at >= _MAINTENANCE_SECONDS:
                self._maintained_at = now
                if text := _maintenance_text(self._maintained, batch.maintained):
                    self._shown.hide()
                    say(text)
                self._maintained = batch.maintained
            self.stopped_tables(batch.stopped)
            self._loading.update(batch.loading)
        self.draw()

    def draw(self) -> None:
        """Draw the current state."""
        with self._lock:
            last = self._last
            if last is None:
                return
            tables = [
                TableProgress(name, state.rows, self._estimates.get(name, 0), state.is_done)
                for name, state in last.snapshots.items()
                if name in self._loading
            ]
            self._shown.show(tables, self._line())

    def _line(self) -> str:
        now = self._clock()
        while self._counts and now - self._counts[0][0] > _WINDOW_SECONDS:
            self._counts.popleft()
        rate = sum(count for _, count in self._counts) / _WINDOW_SECONDS
        facts = [counted(self._changes, "change"), f"{rate:,.0f} rows/s"]
        if self._latest is not None and rate:
            facts.append(f"{self._behind:.1f} s behind Informix")
        elif self._latest is not None:
            facts.append(f"no changes since {_time(self._latest[1])}")
        if self.stopped:
            facts.append(f"{counted(len(self.stopped), 'table')} stopped")
        return " · ".join(facts)

    def ended(self, *, is_interrupted: bool) -> str:
        """Return the closing line."""
        tables = counted(len(self._tables), "table")
        text = f"{counted(self._changes, 'change')} in {tables}, {counted(self._batches, 'batch')}"
        if self._latest is not None:
            text += f", up to {show(self._latest[0])} of {_time(self._latest[1])}"
        if self.stopped:
            text += f"; {counted(len(self.stopped), 'table')} stopped"
        return f"Stopped: {text}. Run it again to continue." if is_interrupted else f"Ended: {text}."


class _StreamView:
    """Shows the progress that Spark reports for a query."""

    def __init__(self, query: StreamingQuery, shown: TableProgressShown) -> None:
        self._query, self._shown, self.stopped = query, shown, set[str]()
        self._rows, self._batches, self._last = 0, 0, ""

    def draw(self) -> None:
        """Draw the current state."""
        for each in self._query.recentProgress:
            if each["timestamp"] > self._last:  # an idle query reports a batch that is still to come
                self._last, rows = each["timestamp"], each["numInputRows"]
                self._rows, self._batches = self._rows + rows, self._batches + bool(rows)
        last = self._query.lastProgress
        if last is None:
            return
        facts = [
            f"batch {last['batchId']}",
            counted(self._rows, "row"),
            f"{last['processedRowsPerSecond'] or 0:,.0f} rows/s",
        ]
        self._shown.show([], " · ".join(facts))

    def ended(self, *, is_interrupted: bool) -> str:
        """Return the closing line."""
        text = f"{counted(self._rows, 'row')}, {counted(self._batches, 'batch')}"
        return f"Stopped: {text}. Run it again to continue." if is_interrupted else f"Ended: {text}."


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%H:%M:%S} UTC"


def _maintenance_text(before: Maintained, now: Maintained) -> str:
    """Return what maintenance has done between two times; empty if nothing."""
    files, replaced, removed = (
        getattr(now, name) - getattr(before, name) for name in ("files", "replaced", "removed")
    )
    parts = [f"{counted(replaced, 'file')} compacted into {files}"] if files else []
    if removed:
        mebibytes = (now.removed_bytes - before.removed_bytes) / (1 << 20)
        parts.append(f"{counted(removed, 'old file')} removed ({mebibytes:.1f} MiB)")
    seconds = now.seconds - before.seconds
    return (
        f"{_time(datetime.now(UTC))} maintenance: {', '.join(parts)}, {seconds:.1f} s" if parts else ""
    )
