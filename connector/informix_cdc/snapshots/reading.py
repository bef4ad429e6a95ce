"""Read one table for its snapshot, chunk by chunk, in a separate thread.

Rule: it never accesses the spool. A chunk begins at a settled low watermark, and is offered with a
barrier that was set after its last row had been fetched; the capture loop inserts it into the stream.

    low watermark   a commit position of a second ago, before all open transactions (`Slots`)
    rows            SELECT FIRST n ... after the last key
    barrier         the server's time, and a limit for the end of its log
    marker          written when the second of the barrier is over, so that a later record arrives; also
                    while the next chunk is read, however long that takes. Records have whole seconds,
                    so that up to one passes; behind the last chunk the log's pages prove it at once,
                    unless the log is buffered
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from datetime import time as time_of_day
from typing import TypeVar

from informix_capture_client.catalog import Table
from informix_capture_client.errors import InformixCdcError, ServerRefused
from informix_capture_client.failpoints import failpoint
from informix_capture_client.incremental_snapshot import ChunkQuery, Collecting, WholeTableQuery
from informix_capture_client.log_events import MARKER_REFUSED, SNAPSHOT_LOCKED
from informix_cdc.server import is_locked
from informix_cdc.snapshots.connection import RowsRead, SnapshotConnection, logger
from informix_cdc.snapshots.table_snapshot import TableSnapshot

POLL_SECONDS = 0.05
_MARK_SECONDS = 0.25  # between two reads of the server's time, while rows are read
_LOCK_PAUSE_SECONDS = 1.0
_ASK_SECONDS = 5.0  # between two checks whether the server answers, while it searches for rows

T = TypeVar("T")
ChooseLow = Callable[[Callable[[], frozenset[int]]], int | None]


def is_in_window(window: str, now: time_of_day) -> bool:
    """Return whether a time is in a window such as 22:00-05:00, which may include midnight.

    >>> is_in_window("22:00-05:00", time_of_day(23, 30)), is_in_window("22:00-05:00", time_of_day(5, 0))
    (True, False)
    """
    if not window:
        return True
    first, end = map(time_of_day.fromisoformat, window.split("-"))
    return first <= now < end if first < end else now >= first or now < end


@contextlib.contextmanager
def in_a_thread(do: Callable[[], bool]) -> Iterator[None]:
    """Run a function at intervals in the background of the block, until it returns False.

    Raises:
        InformixCdcError: the function failed; raised at the end of the block, in place of the block's
            error.
    """
    is_over, failures = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            while not is_over.wait(POLL_SECONDS) and do():
                pass
        except BaseException as reason:  # noqa: BLE001 - the caller raises it
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
        choose_low: returns a settled low watermark, given a function that reads the open transactions;
            None: try again later.
        may_read: whether there is room for more rows in the spool.
        lock_seconds: how long to try rows again that other sessions have locked.
        stop: whether to end.
        clock: a monotonic clock.
        in_background: runs a function at intervals during a block, until it returns False; it has a
            separate connection.
    """

    snapshot: TableSnapshot
    connect: Callable[[], SnapshotConnection]
    choose_low: ChooseLow
    may_read: Callable[[], bool]
    lock_seconds: int
    stop: threading.Event
    clock: Callable[[], float] = time.monotonic
    in_background: Callable[[Callable[[], bool]], AbstractContextManager[None]] = in_a_thread
    _unmarked: list[int] = field(default_factory=list, init=False)  # times of barriers without a marker
    _check_marker_at: float = field(default=0.0, init=False)
    _ask_at: float = field(default=0.0, init=False)
    _is_locked: bool = field(default=False, init=False)

    def run(self) -> None:
        """Read until all rows are in the stream, or until told to stop.

        Raises:
            InformixCdcError: the table cannot be read further.
        """
        with contextlib.closing(self.connect()) as connection:
            while self.is_wanted:
                if not self.step(connection):
                    self.stop.wait(POLL_SECONDS)
            if self._is_locked and not self.stop.is_set():
                connection.release()

    @property
    def is_wanted(self) -> bool:
        """Whether rows still have to be read, or inserted into the stream."""
        return not (self.snapshot.is_done or self.stop.is_set())

    def step(self, connection: SnapshotConnection) -> bool:
        """Write due markers, and read a chunk if possible; return whether one was read.

        Raises:
            InformixCdcError: the table cannot be read further.
        """
        self._mark_if_due(connection)
        is_time = is_in_window(self.snapshot.state.window, datetime.now().time())
        if self.snapshot.is_read or not self.snapshot.has_room or not (is_time and self.may_read()):
            return False
        low = self.choose_low(connection.open_transactions)
        chunk = None if low is None else self.snapshot.begin(low)
        if chunk is None:
            return False
        if (sample := self.snapshot.state.sample) < 1:
            chunk = self._sampled(connection, chunk, sample)
        read = self._tried(connection, lambda: self._rows(connection, chunk))
        if read is None:
            return False
        failpoint("snapshot.after_select")
        near = connection.near_barrier() if read.is_last else None  # others wait while rows are read
        barrier = near or connection.barrier()
        self._unmarked.append(barrier.clock)
        self.snapshot.offer(chunk, read, barrier)
        if near is not None:
            connection.pass_barrier(near)
        return True

    def _sampled(self, connection: SnapshotConnection, chunk: Collecting, sample: float) -> Collecting:
        """Return a later chunk, chosen at random; the table's last rows are always read."""
        key = self.snapshot.planned.key
        while key is not None and random.random() >= sample and not self.stop.is_set():
            limit, after = self.snapshot.state.limit, chunk.after
            query = ChunkQuery(self._table, key, bool(limit), self.snapshot.planned.condition)
            later = connection.key_behind(query, after, chunk.most_rows, limit)
            if later is None:
                break
            chunk = self.snapshot.skip(chunk, later)
        return chunk

    def _rows(self, connection: SnapshotConnection, chunk: Collecting) -> RowsRead:
        """Return the rows of a chunk; a table without a key is one chunk, read while its writers wait.

        It is locked first: earlier changes are then in the log before the barrier.
        """
        if (key := self.snapshot.planned.key) is not None:
            limit = self.snapshot.state.limit
            query = ChunkQuery(self._table, key, bool(limit), self.snapshot.planned.condition)
            return connection.chunk(query, chunk.after, chunk.most_rows, limit)
        whole = WholeTableQuery(self._table, self.snapshot.planned.condition)
        connection.lock(whole)
        self._is_locked = True
        self.snapshot.require_lock = connection.require_lock
        return connection.whole(whole)

    @property
    def _table(self) -> Table:
        return self.snapshot.planned.table

    def _mark_if_due(self, connection: SnapshotConnection) -> None:
        """Write a marker after chunks whose second is over, so that a later record arrives.

        From then on the stream is expected to pass it, whether it could be written or not.
        """
        if not self._unmarked or self.clock() < self._check_marker_at:
            return
        # Once all rows are read, nothing else is awaited.
        seconds = POLL_SECONDS if self.snapshot.is_read else _MARK_SECONDS
        self._check_marker_at = self.clock() + seconds
        clock = connection.clock()
        if min(self._unmarked) >= clock:
            return
        refusal = connection.write_marker()
        if refusal is not None and self.snapshot.refusal is None:
            MARKER_REFUSED.log(logger, table=self._table.name, reason=refusal)
        self.snapshot.record_marker(clock, refusal)
        if isinstance(refusal, ServerRefused):  # this time only
            self._check_marker_at = self.clock() + _LOCK_PAUSE_SECONDS
        else:
            self._unmarked = [barrier for barrier in self._unmarked if barrier >= clock]

    def _keep_alive(self, connection: SnapshotConnection) -> bool:
        """Write due markers during a read, and check the server; return whether to continue.

        The server may be silent for minutes before its first row. If it does not answer at all, or if
        the rows are no longer needed, the read is cancelled.
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
        """Return the result of a read, waiting for locks; None if told to stop meanwhile.

        Markers are written during each attempt, but never while the lock holders are queried.

        Raises:
            ServerRefused: rows were locked for longer than an hour, counted from the
                first refusal, because before that the server may have searched for rows.
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
        if seconds >= self.lock_seconds:
            raise ServerRefused(
                f"rows of {self._table.name} have been locked for {seconds:.0f} s, so its"
                f" snapshot cannot be read{connection.holders()}: {reason.message}",
                "Let the sessions that hold the locks finish, and start the query again: the snapshot"
                " continues after the last chunk.",
                answer=reason.answer,
                table=str(self._table.name),
            ) from None
        SNAPSHOT_LOCKED.log(logger, table=self._table.name, seconds=round(seconds), reason=reason)
        self.stop.wait(_LOCK_PAUSE_SECONDS)


def run_in_a_thread(reader: TableReader, fail: Callable[[BaseException], None]) -> None:
    """Run a reader in the background of the capture; its error is passed on."""

    def run() -> None:
        try:
            reader.run()
        except BaseException as reason:  # noqa: BLE001 - passed on to be raised
            fail(reason)

    name = f"informix-cdc snapshot of {reader.snapshot.planned.name}"
    threading.Thread(target=run, name=name, daemon=True).start()
