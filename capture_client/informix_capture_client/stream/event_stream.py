"""Turn bytes into events: read ahead, cut, parse, assemble (docs/design.md, section 2, steps 1 to 3).

Rule: these steps are called only here. Events are in the order of the stream.

    read       session/session.py        bytes of one lo_read: part of a record, or many
    read ahead session/read_ahead.py     the same in a thread, small reads joined  -> list of bytes
    cut        records/framing.py        whole records; a partial one waits        -> RawRecords
    number     in_our_numbers            the server's record numbers become `RecordKind`
    parse      records/records.py        columns, up to the first bad record       -> RecordBlock
    drop       _without                  rows of the heartbeat table
    assemble   transactions/assembler.py whole transactions, with their positions  -> Event
    skip       PreviousTables            rows of a table that had a partition's number before
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from informix_capture_client.errors import InformixCdcError, ProtocolViolation
from informix_capture_client.failpoints import failpoint
from informix_capture_client.records import (
    BOUNDS,
    OF_A_TABLE,
    RawRecords,
    RecordBlock,
    RecordCutter,
    RecordKind,
    ServerError,
    TableSchema,
    is_one_of,
    parse_block,
)
from informix_capture_client.session import CaptureSession, ReadAhead
from informix_capture_client.transactions import (
    BlockRecords,
    CommittedTransactions,
    Piece,
    PositionPassed,
    PreviousRows,
    StreamCounters,
    StreamEvent,
    TransactionAssembler,
)


class Creation(NamedTuple):
    """When a captured table's youngest partition was created, in seconds since 1970."""

    table: str
    time: int


@dataclass(slots=True)
class PreviousTables:
    """The creation times of the captured tables, in the order of their numbers."""

    tables: Sequence[Creation] = ()
    _noted: set[int] = field(default_factory=set)

    def without_their_rows(
        self, event: CommittedTransactions, counters: StreamCounters
    ) -> Iterator[CommittedTransactions | PositionPassed]:
        """Yield an event without rows of previous tables; only a position if no row remains.

        The first skipped rows of each table are recorded in `counters`.
        """
        newest = max((created.time for created in self.tables), default=-1)
        if int(event.begin_times.min()) > newest:
            yield event
            return
        for one in event.each():
            yield self._of_one(one, counters)

    def _of_one(
        self, one: CommittedTransactions, counters: StreamCounters
    ) -> CommittedTransactions | PositionPassed:
        begun = int(one.begin_times[0])
        previous = [number for number, created in enumerate(self.tables) if begun <= created.time]
        kept, rows_left = list[Piece](), 0
        for piece in one.rows:
            rows = piece.loaded()  # what is spilled, portion by portion
            is_row = OF_A_TABLE[rows.block.raw.kinds[rows.places]]
            labels = rows.block.table_ids[rows.places]
            is_previous = is_row & np.isin(labels, previous)
            for number in set(np.unique(labels[is_previous]).tolist()) - self._noted:
                self._noted.add(number)
                counters.previous_rows.append(
                    PreviousRows(
                        self.tables[number].table,
                        self.tables[number].time,
                        begun,
                        int(one.commit_sequence_numbers[0]),
                    )
                )
            rows_left += int(np.count_nonzero(is_row & ~is_previous))
            kept.append(
                BlockRecords(rows.block, rows.places[~is_previous]) if is_previous.any() else piece
            )
        if not rows_left:
            return PositionPassed(one.position, is_timeout=False)
        pieces = tuple(rows for rows in kept if len(rows))
        return replace(one, rows=pieces, record_counts=np.array([sum(map(len, pieces))]))


_HAS_SEQUENCE = ~is_one_of(RecordKind.TABSCHEMA, RecordKind.ERROR)
_TIMEOUT = int(RecordKind.TIMEOUT)


@dataclass(frozen=True, slots=True)
class Begun:
    """An active session, and the assembler for its start position.

    Rows of table number `heartbeat` are dropped; its commits still advance the stream. `previous`
    detects records of a table that had the same partition number before.
    """

    session: CaptureSession
    assembler: TransactionAssembler
    heartbeat: int | None = None
    previous: PreviousTables = field(default_factory=PreviousTables)


@dataclass(frozen=True, slots=True)
class Starting:
    """No session is active yet: it is being opened, or the log is read for older transactions."""


@dataclass(frozen=True, slots=True)
class Silence:
    """No bytes arrived in time.

    Attributes:
        empty_reads: the number of reads that returned without a byte.
    """

    empty_reads: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """The contents of the latest bytes.

    Attributes:
        events: in stream order; empty if no transaction ended and no position passed.
        reached: the highest sequence number of any record, 0 before the first. The log is
            read in order, so all commits below it have been read.
        latest_time: the latest time of a BEGINTX or COMMTX record, in seconds since 1970.
        assembler: the open transactions after these bytes.
        block: all records; None if an error ended them, in which case
            `events` may be incomplete.
        began_at: when the last read of them began, by the monotonic clock: reads wait in a queue, so
            that a TIMEOUT may be older than something that was seen in between.
    """

    events: Sequence[StreamEvent]
    reached: int
    latest_time: int
    assembler: TransactionAssembler
    block: RecordBlock | None = None
    began_at: float = 0.0

    @property
    def is_silent(self) -> bool:
        """Whether the server had nothing: all records are TIMEOUTs."""
        return self.block is not None and bool((self.block.raw.kinds == RecordKind.TIMEOUT).all())


Answer = Starting | Silence | Read


class SessionReader(Protocol):
    """Provides the bytes of a session; `ReadAhead` reads them in a separate thread.

    Attributes:
        began_at: when the last of the reads that `read` returned began, by the monotonic clock.
    """

    began_at: float

    def read(self, timeout_seconds: float) -> list[bytes] | None:
        """Return the bytes read; None if none arrived in time."""
        ...

    def stop(self, timeout_seconds: float) -> bool:
        """Close the session; return whether that happened in time."""
        ...


MakeReader = Callable[[Callable[[], CaptureSession], Callable[[], None]], SessionReader]


class ChangeStream:
    """Yields the events of one session.

    Args:
        begin: connects, opens and activates a session; runs in the reading thread.
        close_connection: closes the connection of `begin`; runs last in that thread.
        read: creates the reader from these two.
        counters: of all sessions of the stream.
        on_block: called with each block of records, before its events are returned.
    """

    def __init__(
        self,
        begin: Callable[[], Begun],
        close_connection: Callable[[], None],
        read: MakeReader = ReadAhead,
        counters: StreamCounters | None = None,
        on_block: Callable[[RecordBlock], None] | None = None,
    ) -> None:
        self._on_block = on_block
        self._block: RecordBlock | None = None
        self._counters = counters or StreamCounters()
        self._reached = self._latest_time = 0
        self._begun: Begun | None = None
        self._begin = begin
        self._cutter = RecordCutter()
        self._failure: InformixCdcError | None = None
        self._reader = read(self._open, close_connection)

    def stop_waiting_for_unseen(self) -> None:
        """Start without the transactions that were open before the stream; no effect afterwards."""
        if self._begun is not None:
            self._begun.assembler.stop_waiting_for_unseen()

    def next(self, timeout_seconds: float) -> Answer:
        """Return the contents of the next bytes, or why there are none.

        Raises:
            InformixCdcError: the session ended, or its bytes are invalid. Events of the records
                before that are returned first; the error is raised by the next call.
        """
        if self._failure is not None:
            raise self._failure
        chunks = self._reader.read(timeout_seconds)
        if (begun := self._begun) is None:
            return Starting()
        if chunks is None:
            return Silence()
        if not any(chunks):
            return Silence(len(chunks))
        events: list[StreamEvent] = []
        self._block = None
        try:
            events.extend(self._events_of(chunks, begun))
        except InformixCdcError as reason:
            self._failure = reason
            if not events:
                raise
        return Read(
            events,
            self._reached,
            self._latest_time,
            begun.assembler,
            self._block,
            self._reader.began_at,
        )

    def _events_of(self, chunks: list[bytes], begun: Begun) -> Iterator[StreamEvent]:
        """Yield the events of bytes; an error is raised after the events of all records before it."""
        self._counters.received_bytes += sum(map(len, chunks))
        if (raw := self._cutter.feed(*chunks)) is None:
            return
        block, failure = _sound_part(raw, begun.session.record_kinds)
        failpoint("capture.in_assembly")
        if block is not None:
            self._note_progress(block)
        left = _without(begun.heartbeat, block) if block is not None else None
        for event in begun.assembler.feed(left) if left else ():
            if isinstance(event, TableSchema) and event.table_id == begun.heartbeat:
                continue
            if isinstance(event, ServerError):
                raise begun.session.codes.error("capture", event.error_code)
            if isinstance(event, CommittedTransactions):
                yield from begun.previous.without_their_rows(event, self._counters)
            else:
                yield event
        if (broken := failure or self._cutter.failure) is not None:
            raise broken
        self._block = block

    def _note_progress(self, block: RecordBlock) -> None:
        if self._on_block is not None:
            self._on_block(block)
        self._counters.received_records += len(block)
        self._counters.timeouts += int(np.count_nonzero(block.raw.kinds == _TIMEOUT))
        numbers = block.sequence_numbers[_HAS_SEQUENCE[block.raw.kinds]]
        self._reached = max(self._reached, int(numbers.max(initial=0)))
        bounds = np.flatnonzero(BOUNDS[block.raw.kinds])
        self._latest_time = max(self._latest_time, int(block.times(bounds).max(initial=0)))

    def stop(self, timeout_seconds: float) -> bool:
        """Close the session; return whether that happened in time."""
        return self._reader.stop(timeout_seconds)

    def _open(self) -> CaptureSession:
        self._begun = self._begin()
        return self._begun.session


def _without(table_id: int | None, block: RecordBlock) -> RecordBlock | None:
    """Return a block without the rows of a table; None if nothing else is left."""
    if table_id is None:
        return block
    kept = np.flatnonzero(~(OF_A_TABLE[block.raw.kinds] & (block.table_ids == table_id)))
    if len(kept) == len(block):
        return block
    return block.only(kept) if len(kept) else None


def _sound_part(
    raw: RawRecords, kinds: Mapping[int, RecordKind]
) -> tuple[RecordBlock | None, ProtocolViolation | None]:
    """Parse records up to the first invalid one; return them with the error of that record."""
    failure = None
    while True:
        try:
            return parse_block(in_our_numbers(raw, kinds)), failure
        except ProtocolViolation as reason:
            failure = reason
            if not reason.record:  # not known, or the first: nothing before it is sound
                return None, failure
            raw = raw.only(reason.record)


def in_our_numbers(raw: RawRecords, kinds: Mapping[int, RecordKind]) -> RawRecords:
    """Return records with the server's record numbers replaced by `RecordKind` numbers.

    Raises:
        ProtocolViolation: the stream has a number that is not in `syscdcrectypes`.
    """
    if all(number == kind for number, kind in kinds.items()):
        return raw
    table = np.full(max(kinds) + 2, -1, np.int64)
    for number, kind in kinds.items():
        table[number] = kind
    ours = table[np.minimum(raw.kinds, len(table) - 1)]
    if (ours < 0).any():
        first = int(np.flatnonzero(ours < 0)[0])
        place = raw.origin + int(raw.starts[first])
        raise ProtocolViolation(
            f"record number {int(raw.kinds[first])} at stream byte {place} is not in the server's"
            " syscdcrectypes.",
            "The stream is corrupt, or the server uses a newer protocol: report the server's version.",
            record=first,
        )
    return replace(raw, kinds=ours)
