"""The tables under snapshot, from the view of the capture loop: inserts chunks into the stream.

Rule: everything runs in the capture's thread, except for the functions passed to readers, which lock.

    due       after an answer is appended: record positions, return whether a chunk or a table is due
    emit      when everything read so far is in the spool: begin the next table, insert due chunks
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from informix_capture_client.errors import ServerRefused
from informix_capture_client.failpoints import failpoint
from informix_capture_client.incremental_snapshot import (
    AGE_SECONDS,
    AgedPlaces,
    Emitted,
    Proof,
    Slots,
    ThrownAway,
    TouchedTables,
    rows_with_interval,
)
from informix_capture_client.log_events import (
    CHUNK_READ_AGAIN,
    SNAPSHOT_BEGUN,
    SNAPSHOT_DONE,
    SNAPSHOT_WAITS,
)
from informix_capture_client.records import RecordBlock, RecordKind
from informix_capture_client.shapes import ChangeEncoder, ChunkRows, RangeKind
from informix_capture_client.stream import Answer, Read
from informix_cdc.companions import Companion
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables
from informix_cdc.snapshots.awaited_ends import (
    AwaitedEnds,
    ServerSays,
    ask_server,
    is_idle,
    silent_since,
)
from informix_cdc.snapshots.connection import SnapshotConnection, logger
from informix_cdc.snapshots.plan import PlannedTable
from informix_cdc.snapshots.reading import TableReader, run_in_a_thread
from informix_cdc.snapshots.sealed_keys import sealed
from informix_cdc.snapshots.table_snapshot import TableSnapshot
from informix_checkpoints.spool import Segment, Spool
from informix_checkpoints.table_states import SnapshotState


@dataclass(frozen=True, slots=True)
class TableProgress:
    """The progress of one table's snapshot.

    Attributes:
        name: owner.table.
        rows: number of rows read into the stream, or left out because the stream has newer ones.
        estimate: number of rows in the table's statistics; 0 if unknown.
        is_done: whether there are no more.
        left_out: how many of `rows` are in the stream as changes instead.
    """

    name: str
    rows: int
    estimate: int
    is_done: bool
    left_out: int = 0

    @property
    def percent(self) -> float | None:
        """Progress in percent, based on the table's statistics; None if these are missing."""
        if self.is_done:
            return 100.0
        return min(100.0 * self.rows / self.estimate, 99.9) if self.estimate else None


@dataclass(slots=True)
class SnapshotFigures:
    """Counts since the query began.

    Attributes:
        tables_left: number of tables whose snapshot is not done.
        is_paused: whether reading waits for Spark.
        rows: inserted into the stream.
        dropped_rows: left out because the stream has newer ones.
        chunks: read and inserted into the stream.
        thrown_away: chunks that were read again, because too many keys were touched meanwhile.
        touched_keys: keys that are remembered now.
        tables: progress of each table that was not done when the query began.
        waiting_seconds: how long the oldest chunk has waited for the stream; 0 if none waits.
    """

    tables_left: int = 0
    is_paused: bool = False
    rows: int = 0
    dropped_rows: int = 0
    chunks: int = 0
    thrown_away: int = 0
    touched_keys: int = 0
    waiting_seconds: float = 0.0
    tables: dict[str, TableProgress] = field(default_factory=dict)

    @property
    def percent(self) -> float | None:
        """Progress of all tables in percent, based on their statistics; None if these are missing."""
        tables = [*self.tables.values()]
        if not tables or any(each.percent is None for each in tables):
            return None
        if all(each.is_done for each in tables):
            return 100.0
        size = sum(each.rows if each.is_done else max(each.rows, each.estimate) for each in tables)
        return min(100.0 * sum(each.rows for each in tables) / size, 99.9)


# According to the server, all transactions older than the stream have ended: later chunks have them.
_SILENT_SECONDS = 1.0
_FORGET_SECONDS = 5.0  # older than any low watermark that is chosen now
_TELL_SECONDS = 60.0


_STARTS = {
    "resync": RangeKind.RANGE_START,
    "verify": RangeKind.VERIFY_START,
    "repair": RangeKind.REPAIR_START,
}


def _has_intervals(planned: PlannedTable, state: SnapshotState | None) -> bool:
    """Return whether rows are read again, each chunk with its key interval."""
    return state is not None and state.purpose in _STARTS and not planned.why_no_order


class CaptureSide(Protocol):
    """The interface of the capture that snapshots belong to."""

    @property
    def figures(self) -> SnapshotFigures:
        """Return the counters, which continue over all sessions of a query."""
        ...

    def may_begin(self) -> bool:
        """Return whether a table may begin: the stream has caught up, and no planned batch is first."""
        ...

    def has_room(self) -> bool:
        """Return whether the spool has room for rows that are not urgent."""
        ...

    def record(self, segment: Segment, seconds: int) -> None:
        """Record a segment, and the server's time of its rows."""


class NoSnapshots(Companion):
    """Stands for no tables under snapshot."""

    touched: TouchedTables | None = None

    @property
    def on_records(self) -> Callable[[RecordBlock], None] | None:
        """The function that receives each block of records of the session, if there is one."""
        return None

    def close(self) -> None:
        """Do nothing."""


class Snapshots(NoSnapshots):
    """Reads the planned tables while one session of the stream runs.

    Args:
        options: with the password or its location.
        source: the captured tables.
        planned: the tables whose snapshot is not done.
        capture: the capture that they belong to.
        clock: a monotonic clock.
        run: runs the reader of a table, at its own pace.

    Attributes:
        touched: observes the changes that are encoded.
    """

    def __init__(
        self,
        options: SourceOptions,
        source: SourceTables,
        planned: Sequence[PlannedTable],
        capture: CaptureSide,
        clock: Callable[[], float] = time.monotonic,
        run: Callable[[TableReader, Callable[[BaseException], None]], None] = run_in_a_thread,
    ) -> None:
        self.touched: TouchedTables = TouchedTables()
        self._options, self._source = options, source
        self._capture, self._figures = capture, capture.figures
        self._clock, self._run = clock, run
        self._planned = deque(planned)
        self._reading: list[TableSnapshot] = []
        self._slots: Slots | None = None
        self._had_older = True  # transactions that a session may not show: they may end in any silence
        self._aged, self._older = AgedPlaces(AGE_SECONDS), AgedPlaces(_FORGET_SECONDS)
        self._older_ends = AwaitedEnds(self._ask, source.is_buffered, clock, _SILENT_SECONDS)
        self._logged_at = clock()
        self._unknown: frozenset[int] = frozenset()  # transactions that chunks wait for
        self._failures: list[BaseException] = []
        self._sharing = threading.Lock()  # for slots and places, which readers use
        self._stop = threading.Event()
        for each in planned:
            progress = TableProgress(each.name, each.rows, each.locks.row_estimate, is_done=False)
            self._figures.tables[each.name] = progress
        self._show_figures()

    def close(self) -> None:
        """Let the readers end; a query in flight is not awaited."""
        self._stop.set()

    def _ask(self) -> ServerSays:
        return ask_server(self._options.connection)

    # at the beginning of the session

    @property
    def on_records(self) -> Callable[[RecordBlock], None]:
        """The function that receives each block of records of the session."""
        return self.watch

    def watch(self, block: RecordBlock) -> None:
        """Process the next records of the stream, captured rows or not."""
        with self._sharing:
            if self._slots is None:  # the session is active: open transactions are known from now on
                still_open = self._ask().still_open
                self._slots, self._had_older = Slots(still_open), bool(still_open)
            self._slots.add(block)

    def may_leave_out_older(self, answer: Answer) -> bool:
        """Return whether a stream may begin although older transactions have not ended in the log.

        Their commits after the beginning would be in no chunk and in no change. So all of them must
        have ended on the server, and the stream must have passed that.
        """
        if not isinstance(answer, Read):
            return False
        unseen = answer.assembler.unseen_ids
        self._log_who_is_waited_for(unseen)
        return self._older_ends.are_passed(answer, lambda says: bool(unseen & says.still_open))

    def _log_who_is_waited_for(self, waited_for: frozenset[int]) -> None:
        if waited_for and self._clock() - self._logged_at >= _TELL_SECONDS:
            self._logged_at = self._clock()
            ids = ",".join(map(str, sorted(waited_for)[:20]))
            SNAPSHOT_WAITS.log(logger, transactions=len(waited_for), ids=ids)

    # for each stream event

    def due(self, answer: Answer, spool: Spool | None) -> bool:
        """Process an answer; return whether a chunk or table is due: pending rows are flushed then.

        Raises:
            InformixCdcError: a table cannot be read further, or the stream does not pass a chunk.
        """
        if self._failures:
            raise self._failures[0]
        if spool is None:
            return False
        self._record_place(spool.manifest.high_watermark.commit, answer)
        self._show_figures()
        self._log_who_is_waited_for(self._unknown)
        is_due = self._may_begin_next()
        if not isinstance(answer, Read) or answer.block is None:
            return is_due
        proof = Proof.of(answer.block)
        for snapshot in self._reading:  # all of them have to receive it
            is_due |= snapshot.on_read(proof)
        if not is_idle(answer):  # the stream moves, and the record that passes a chunk may still arrive
            self.reset_deadlines()
        elif not is_due:
            self._require_passage()
        return is_due

    def _record_place(self, commit: int, answer: Answer) -> None:
        now = self._clock()
        since = None if self._had_older else silent_since(answer)
        with self._sharing:
            self._aged.record(commit, now, since)
            self._older.record(commit, now)
            forgettable = self._older.place(now)
        if forgettable is not None:
            for snapshot in self._reading:
                snapshot.forget(forgettable)

    def _may_begin_next(self) -> bool:
        is_free = len(self._reading) < self._options.snapshots.parallelism
        return bool(self._planned) and is_free and self._capture.may_begin()

    def _begin_next(self, spool: Spool, encoder: ChangeEncoder) -> None:
        """Begin with the next tables; their keys are collected from the rows encoded next.

        If TRUNCATEs are delivered, a row of kind truncate comes first, so that a sink drops its rows of
        the table; or one of kind resync_begin, if each chunk has its interval. Everything read so far
        is in the spool, so no change is between that row and the collecting.
        """
        while self._may_begin_next():
            planned = self._planned.popleft()
            state = spool.manifest.present_tables[planned.name]
            if (kind := self._kind_of_beginning(planned, state.snapshot)) is not None:
                position, ordinal = spool.manifest.next_chunk()
                read_at = self._ask().clock
                rows = encoder.encode_beginning(planned.number, position.commit, ordinal, read_at, kind)
                self._capture.record(
                    spool.append_chunk(rows.schema, rows, {planned.name: state}), read_at
                )
            snapshot = TableSnapshot.begun(
                planned,
                state.snapshot or SnapshotState(),
                spool.manifest.high_watermark.commit,
                state.since,
                self._options.snapshots,
                self._clock,
            )
            if snapshot.touched is not None:
                self.touched.watch(planned.number, snapshot.touched)
            self._reading.append(snapshot)
            key = None if planned.key is None else ",".join(planned.key.names)
            SNAPSHOT_BEGUN.log(
                logger,
                stream=spool.stream,
                table=planned.name,
                key=key,
                rows_estimated=planned.locks.row_estimate,
            )
            self._read(snapshot)

    def _kind_of_beginning(self, planned: PlannedTable, state: SnapshotState | None) -> int | None:
        """Return the kind of the row before a snapshot from the first row; None: there is none."""
        if state is not None and (state.after or state.limit):
            return None
        if state is not None and _has_intervals(planned, state):
            return None if state.purpose == "verify" else RangeKind.RESYNC_BEGIN
        return RecordKind.TRUNCATE if self._options.rows.truncate == "emit" else None

    def _read(self, snapshot: TableSnapshot) -> None:
        reader = TableReader(
            snapshot,
            partial(
                SnapshotConnection,
                self._options.connection,
                self._source,
                snapshot.planned,
                self._options.snapshots.chunk_bytes,
            ),
            self._low,
            self._capture.has_room,
            self._options.snapshots.lock_seconds,
            self._stop,
            self._clock,
        )
        self._run(reader, self._failures.append)

    def _low(self, open_transactions: Callable[[], frozenset[int]]) -> int | None:
        """Return a settled low watermark: choose it first, then read the open transactions."""
        with self._sharing:
            low = self._aged.place(self._clock())
        if low is None or self._slots is None:
            return None
        still_open = open_transactions()
        with self._sharing:
            settled = self._slots.settled(low, still_open)
            self._unknown = frozenset() if settled is not None else self._slots.unknown
        return settled

    def reset_deadlines(self) -> None:
        """Reset the deadlines of chunks: the stream has moved, or was not read for a while."""
        for snapshot in self._reading:
            snapshot.reset_deadline()

    def _require_passage(self) -> None:
        """Fail if the log advances but the stream does not pass a chunk for too long.

        Raises:
            ServerRefused: the stream has returned nothing for a minute while a chunk waits for it.
        """
        for snapshot in self._reading:
            seconds = snapshot.waiting_seconds()
            if seconds <= self._options.snapshots.standstill_seconds:
                continue
            why = (
                "this server sends a session only transactions of captured tables, and none of"
                " these has changed."
                if snapshot.refusal is None
                else f"the marker could not be written: {snapshot.refusal.message}"
            )
            raise ServerRefused(
                "the snapshot timed out: the stream did not reach its marker within"
                f" {seconds:.0f} s: {why}",
                "Set option heartbeatTable to a table that the user may update, or that is updated"
                " every few seconds.",
                table=snapshot.planned.name,
            )

    # due rows

    def emit(self, spool: Spool | None, encoder: ChangeEncoder) -> None:
        """Insert due chunks into the stream; everything read so far is in the spool."""
        assert spool is not None  # otherwise nothing was due
        self._begin_next(spool, encoder)
        for snapshot in [*self._reading]:
            for outcome in snapshot.emit(spool.manifest.high_watermark.commit):
                if isinstance(outcome, Emitted):
                    self._append(snapshot, outcome, spool, encoder)
                else:
                    self._record_thrown_away(snapshot, outcome, spool.stream)
            if snapshot.is_done:
                self._leave(snapshot, spool.stream)
        self._show_figures()

    def _append(
        self, snapshot: TableSnapshot, emitted: Emitted, spool: Spool, encoder: ChangeEncoder
    ) -> None:
        planned = snapshot.planned
        position, ordinal = spool.manifest.next_chunk()
        state = spool.manifest.present_tables[planned.name]
        previous = state.snapshot or SnapshotState()
        chunk = ChunkRows(planned.number, emitted.rows, position.commit, ordinal, emitted.read_at)
        if planned.key is not None and _has_intervals(planned, previous):
            kinds = (_STARTS[previous.purpose], RangeKind.RANGE_SKIP, RangeKind.RANGE_END)
            described, of_rows = rows_with_interval(emitted, planned.key, previous.limit, kinds)
            chunk = replace(chunk, rows=described, kind=of_rows)
        rows = encoder.encode_chunk(chunk)
        known = replace(
            previous,
            after=sealed(emitted.last_key or (), planned.key),
            rows=previous.rows + len(emitted.rows),
            key=() if planned.key is None else planned.key.names,
        )
        if emitted.is_last:
            known = known.done()
        failpoint("snapshot.before_append")
        if planned.key is None:  # earlier changes are in the chunk, if the writers still wait
            snapshot.require_lock()
            state = replace(state, since=position.commit)
            encoder.join(planned.number, position.commit)
        changes = {planned.name: replace(state, snapshot=known)}
        segment = spool.append_chunk(rows.schema, rows, changes)
        self._capture.record(segment, emitted.read_at)
        failpoint("snapshot.after_append")
        self._figures.rows += len(emitted.rows)
        self._figures.dropped_rows += emitted.dropped
        self._figures.chunks += 1
        left_out = snapshot.dropped_rows + emitted.dropped
        estimate = planned.locks.row_estimate
        self._figures.tables[planned.name] = TableProgress(
            planned.name, known.rows + left_out, estimate, emitted.is_last, left_out
        )

    def _record_thrown_away(
        self, snapshot: TableSnapshot, outcome: ThrownAway, stream: str | None
    ) -> None:
        self._figures.thrown_away += outcome.chunks
        CHUNK_READ_AGAIN.log(
            logger,
            stream=stream,
            table=snapshot.planned.name,
            chunks=outcome.chunks,
            most_rows=outcome.most_rows,
        )

    def _leave(self, snapshot: TableSnapshot, stream: str) -> None:
        self._reading.remove(snapshot)
        self.touched.leave(snapshot.planned.number)
        SNAPSHOT_DONE.log(
            logger,
            stream=stream,
            table=snapshot.planned.name,
            rows=snapshot.rows,
            chunks=snapshot.chunk_count,
            dropped_rows=snapshot.dropped_rows,
            seconds=round(self._clock() - snapshot.begun_at, 1),
        )

    # figures

    def _show_figures(self) -> None:
        figures = self._figures
        figures.tables_left = len(self._planned) + len(self._reading)
        keys = [snapshot.touched for snapshot in self._reading if snapshot.touched is not None]
        figures.is_paused = bool(self._reading) and not self._capture.has_room()
        figures.touched_keys = sum(map(len, keys))
        waiting = [snapshot.waiting_seconds() for snapshot in self._reading]
        figures.waiting_seconds = max(waiting, default=0.0)
