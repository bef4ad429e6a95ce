"""Read one table for its snapshot, chunk by chunk, in a thread of its own.

Rule: it never touches the spool. A chunk begins at a low watermark that is settled, and is offered with
a barrier that was set once its last row had been fetched; the capture loop lets it into the stream.

    low watermark   a commit place of a second ago, below whatever is still open (`Slots`)
    rows            SELECT FIRST n ... behind the last key
    barrier         the server's clock, and where its log may end
    marker          once the clock's second is over: so that a record of a later one comes
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from informix_capture_client.catalog import Table
from informix_capture_client.errors import ServerRefused
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import SNAPSHOT_LOCKED
from informix_capture_client.snapshot import ChunkQuery, Collecting, WholeTableQuery
from informix_cdc.options import SourceOptions
from informix_cdc.snapshots.connection import RowsRead, SnapshotConnection, is_locked, logger
from informix_cdc.snapshots.table_snapshot import TableSnapshot

POLL_SECONDS = 0.05
_MARK_SECONDS = 0.25  # between two looks at the server's clock
_LOCK_PAUSE_SECONDS = 1.0

T = TypeVar("T")
ChooseLow = Callable[[Callable[[], frozenset[int]]], int | None]


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
        clock: seconds from anywhere.
    """

    snapshot: TableSnapshot
    connect: Callable[[], SnapshotConnection]
    choose_low: ChooseLow
    may_read: Callable[[], bool]
    options: SourceOptions
    stop: threading.Event
    clock: Callable[[], float] = time.monotonic
    _unmarked: list[int] = field(default_factory=list, init=False)  # clocks of barriers, none behind
    _looked_at: float = field(default=0.0, init=False)

    def run(self) -> None:
        """Read until all rows are in the stream, or until told to stop.

        Raises:
            InformixCdcError: the table cannot be read on.
        """
        connection = self.connect()
        try:
            if self.snapshot.planned.key is None:
                self._read_locked(connection)
            else:
                self._read_in_chunks(connection, ChunkQuery(self._table, self.snapshot.planned.key))
        finally:
            connection.close()

    @property
    def _table(self) -> Table:
        return self.snapshot.planned.table

    def _read_in_chunks(self, connection: SnapshotConnection, query: ChunkQuery) -> None:
        while self._is_wanted():
            self._mark_if_due(connection)
            if not self._read_next(connection, query):
                self.stop.wait(POLL_SECONDS)

    def _is_wanted(self) -> bool:
        return not (self.snapshot.is_done or self.stop.is_set())

    def _read_next(self, connection: SnapshotConnection, query: ChunkQuery) -> bool:
        """Read a chunk, if there is one to read; tell whether there was."""
        if self.snapshot.is_read or not self.snapshot.has_room or not self.may_read():
            return False
        if (chunk := self._begun(connection)) is None:
            return False
        read = self._tried(connection, lambda: connection.chunk(query, chunk.after, chunk.most_rows))
        if read is not None:
            self._offer(connection, chunk, read)
        return read is not None

    def _begun(self, connection: SnapshotConnection) -> Collecting | None:
        low = self.choose_low(connection.open_transactions)
        return None if low is None else self.snapshot.begin(low)

    def _offer(self, connection: SnapshotConnection, chunk: Collecting, read: RowsRead) -> None:
        failpoint("snapshot.after_select")
        barrier = connection.barrier()
        self._unmarked.append(barrier.clock)
        self.snapshot.offer(chunk, read, barrier)

    def _read_locked(self, connection: SnapshotConnection) -> None:
        """Read a table without a key while its writers wait.

        It is locked first: whoever had changed it by then is in the log before the barrier.
        """
        query = WholeTableQuery(self._table)
        while self._is_wanted() and (chunk := self._begun(connection)) is None:
            self.stop.wait(POLL_SECONDS)
        if not self._is_wanted() or chunk is None:
            return
        if self._tried(connection, lambda: connection.lock(query)) is None:
            return
        self._offer(connection, chunk, connection.whole(query))
        while self._is_wanted():
            self._mark_if_due(connection)
            self.stop.wait(POLL_SECONDS)
        connection.release()

    def _mark_if_due(self, connection: SnapshotConnection) -> None:
        """Write a marker behind the chunks of seconds that are over: a record of a later one comes."""
        now = self.clock()
        if not self._unmarked or now - self._looked_at < _MARK_SECONDS:
            return
        self._looked_at = now
        clock = connection.clock()
        if min(self._unmarked) < clock:
            failpoint("snapshot.before_marker")
            connection.mark()
            self._unmarked = [barrier for barrier in self._unmarked if barrier >= clock]

    def _tried(self, connection: SnapshotConnection, read: Callable[[], T]) -> T | None:
        """Return what is read, however long others lock it; None if told to stop meanwhile.

        Raises:
            ServerRefused: it was locked for longer than option snapshotLockSeconds.
        """
        since = self.clock()
        while not self.stop.is_set():
            try:
                return read()
            except ServerRefused as reason:
                if not is_locked(reason):
                    raise
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
