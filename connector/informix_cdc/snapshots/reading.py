"""Read one table for its snapshot, chunk by chunk, in a thread of its own.

Rule: it never touches the spool. A chunk begins at a low watermark that is settled, and is offered with
a barrier that was set once its last row had been fetched; the capture loop lets it into the stream.

    low watermark   a commit place of a second ago, below whatever is still open (`Slots`)
    rows            SELECT FIRST n ... behind the last key
    barrier         the server's clock, and where its log may end
    marker          once the clock's second is over: so that a record of a later one comes; also while
                    the next chunk is read, however long that takes
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypeVar

from informix_capture_client.catalog import Table
from informix_capture_client.errors import InformixCdcError, ServerRefused
from informix_capture_client.failpoints import failpoint
from informix_capture_client.incremental_snapshot import ChunkQuery, Collecting, WholeTableQuery
from informix_capture_client.log_events import MARKER_REFUSED, SNAPSHOT_LOCKED
from informix_cdc.options import SourceOptions
from informix_cdc.server import is_locked
from informix_cdc.snapshots.connection import RowsRead, SnapshotConnection, logger
from informix_cdc.snapshots.table_snapshot import TableSnapshot

POLL_SECONDS = 0.05
_MARK_SECONDS = 0.25  # between two looks at the server's clock
_LOCK_PAUSE_SECONDS = 1.0
_ASK_SECONDS = 5.0  # between two questions whether the server lives, while it looks for rows

T = TypeVar("T")
ChooseLow = Callable[[Callable[[], frozenset[int]]], int | None]


@contextlib.contextmanager
def in_a_thread(do: Callable[[], bool]) -> Iterator[None]:
    """Do something every now and then beside what is done inside, until it says that nothing is left.

    Raises:
        InformixCdcError: it has failed; raised once what is inside has ended, and instead of what that
            raises.
    """
    is_over, failures = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            while not is_over.wait(POLL_SECONDS) and do():
                pass
        except BaseException as reason:  # noqa: BLE001 - whoever began it raises it
            failures.append(reason)

    thread = threading.Thread(target=run, name="informix-cdc snapshot marker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        if failures:
            raise failures[0]


@dataclass(slots=True)
class TableReader:
    """Reads one table.

    Args:
        snapshot: the table.
        connect: opens the connections.
        choose_low: returns a settled low watermark, given what asks for the open transactions; None:
            try again later.
        may_read: whether there is room for more; a spool that Spark leaves lying has none.
        options: how long locks are waited for.
        stop: whether to end.
        clock: a monotonic clock.
        in_background: does something again and again while a block runs, until it says that nothing is
            left; it has its own connection.
    """

    snapshot: TableSnapshot
    connect: Callable[[], SnapshotConnection]
    choose_low: ChooseLow
    may_read: Callable[[], bool]
    options: SourceOptions
    stop: threading.Event
    clock: Callable[[], float] = time.monotonic
    in_background: Callable[[Callable[[], bool]], AbstractContextManager[None]] = in_a_thread
    _unmarked: list[int] = field(default_factory=list, init=False)  # clocks of barriers, none behind
    _check_marker_at: float = field(default=0.0, init=False)
    _ask_at: float = field(default=0.0, init=False)
    _is_locked: bool = field(default=False, init=False)

    def run(self) -> None:
        """Read until all rows are in the stream, or until told to stop.

        Raises:
            InformixCdcError: the table cannot be read on.
        """
        with contextlib.closing(self.connect()) as connection:
            while self.is_wanted:
                if not self.step(connection):
                    self.stop.wait(POLL_SECONDS)
            if self._is_locked and not self.stop.is_set():
                connection.release()

    @property
    def is_wanted(self) -> bool:
        """Whether rows are still to be read, or to be let into the stream."""
        return not (self.snapshot.is_done or self.stop.is_set())

    def step(self, connection: SnapshotConnection) -> bool:
        """Mark what is due, and read a chunk if there is one to read; tell whether there was.

        Raises:
            InformixCdcError: the table cannot be read on.
        """
        self._mark_if_due(connection)
        if self.snapshot.is_read or not self.snapshot.has_room or not self.may_read():
            return False
        low = self.choose_low(connection.open_transactions)
        chunk = None if low is None else self.snapshot.begin(low)
        if chunk is None:
            return False
        read = self._tried(connection, lambda: self._rows(connection, chunk))
        if read is None:
            return False
        failpoint("snapshot.after_select")
        barrier = connection.barrier()
        self._unmarked.append(barrier.clock)
        self.snapshot.offer(chunk, read, barrier)
        return True

    def _rows(self, connection: SnapshotConnection, chunk: Collecting) -> RowsRead:
        """Return the rows of a chunk; a table without a key is one, read while its writers wait.

        It is locked first: whoever had changed it by then is in the log before the barrier.
        """
        if (key := self.snapshot.planned.key) is not None:
            return connection.chunk(ChunkQuery(self._table, key), chunk.after, chunk.most_rows)
        query = WholeTableQuery(self._table)
        connection.lock(query)
        self._is_locked = True
        self.snapshot.require_lock = connection.require_lock
        return connection.whole(query)

    @property
    def _table(self) -> Table:
        return self.snapshot.planned.table

    def _mark_if_due(self, connection: SnapshotConnection) -> None:
        """Write a marker behind the chunks of seconds that are over: a record of a later one comes.

        The stream is expected to show it from then on, whether it could be written or not.
        """
        if not self._unmarked or self.clock() < self._check_marker_at:
            return
        self._check_marker_at = self.clock() + _MARK_SECONDS
        clock = connection.clock()
        if min(self._unmarked) >= clock:
            return
        failpoint("snapshot.before_marker")
        refusal = connection.write_marker()
        if refusal is not None and self.snapshot.refusal is None:
            MARKER_REFUSED.log(logger, table=self._table.name, reason=refusal)
        self.snapshot.record_marker(clock, refusal)
        if isinstance(refusal, ServerRefused):  # for now
            self._check_marker_at = self.clock() + _LOCK_PAUSE_SECONDS
        else:
            self._unmarked = [barrier for barrier in self._unmarked if barrier >= clock]

    def _keep_alive(self, connection: SnapshotConnection) -> bool:
        """Mark what is due while rows are read, and see that the server lives; tell whether to go on.

        It may be silent for minutes before its first row. Once it answers nothing at all, or nobody
        wants the rows any more, the reading is ended.
        """
        with contextlib.ExitStack() as otherwise:
            otherwise.callback(connection.abandon)
            if self.stop.is_set():
                return False
            self._mark_if_due(connection)
            if self.clock() >= self._ask_at:
                connection.clock()
                self._ask_at = self.clock() + _ASK_SECONDS
            otherwise.pop_all()
        return True

    def _tried(self, connection: SnapshotConnection, read: Callable[[], T]) -> T | None:
        """Return what is read, however long others lock it; None if told to stop meanwhile.

        Markers are written during each try, and never while it is asked who holds the locks.

        Raises:
            ServerRefused: it was locked for longer than option snapshotLockSeconds, from the first
                refusal on: before that the server may have looked for rows.
        """
        since: float | None = None
        while not self.stop.is_set():
            try:
                self._ask_at = self.clock() + _ASK_SECONDS
                with self.in_background(lambda: self._keep_alive(connection)):
                    return read()
            except InformixCdcError as reason:
                if self.stop.is_set():
                    break
                if not (isinstance(reason, ServerRefused) and is_locked(reason)):
                    raise
                since = self.clock() if since is None else since
                self._wait_for_locks(connection, self.clock() - since, reason)
        return None

    def _wait_for_locks(
        self, connection: SnapshotConnection, seconds: float, reason: ServerRefused
    ) -> None:
        if seconds >= self.options.snapshot_lock_seconds:
            raise ServerRefused(
                f"rows of {self._table.name} have been locked for {seconds:.0f} s, so that its snapshot"
                f" cannot be read{connection.holders()}: {reason.message}",
                "Let whoever holds the locks end, or raise option snapshotLockSeconds; the snapshot"
                " goes on behind the last chunk.",
                answer=reason.answer,
                table=str(self._table.name),
            ) from None
        SNAPSHOT_LOCKED.log(logger, table=self._table.name, seconds=round(seconds), reason=reason)
        self.stop.wait(_LOCK_PAUSE_SECONDS)


def run_in_a_thread(reader: TableReader, fail: Callable[[BaseException], None]) -> None:
    """Run a reader beside the capture; what it fails with is handed over."""

    def run() -> None:
        try:
            reader.run()
        except BaseException as reason:  # noqa: BLE001 - whoever is told raises it
            fail(reason)

    name = f"informix-cdc snapshot of {reader.snapshot.planned.name}"
    threading.Thread(target=run, name=name, daemon=True).start()
