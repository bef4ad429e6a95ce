"""The capture loop: from the server's log into the spool. Read this first.

Rule: data flows down through this one loop; stages never call each other. It knows no Spark and can
run in any process.

    stream.next_events  ->  transactions, in commit order        (capture_client)
    encoder.encode      ->  Arrow batches in the delivered shape (capture_client)
    spool.append        ->  a segment and its place in the manifest (checkpoints)
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event as StopFlag
from typing import Protocol

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import READING_PAUSED, READING_RESUMED
from informix_capture_client.positions import Position
from informix_capture_client.records import TableSchema
from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.stream import ChangeStream
from informix_capture_client.transactions import Event, Passed, RowRecords, Transactions
from informix_cdc.capture.spooled import Appended
from informix_cdc.capture.state import CaptureState
from informix_checkpoints.spool import Spool

logger = logging.getLogger("informix_cdc.connector.capture_loop")

# Each segment makes the manifest longer; this many double the time between two of them.
SEGMENTS_PER_INTERVAL = 32
_SEGMENT_BYTES = 16 << 20
_STOP_POLL_SECONDS = 0.1
# How long a first start waits for transactions that were open before it.
UNSEEN_WAIT_SECONDS = 5.0


class Guard(Protocol):
    """Ends a capture that does not move; `CaptureGuard` does."""

    def connect(self) -> None:
        """Begin to count the time of silence."""

    def excuse(self) -> None:
        """Take that the capture did not read."""

    def hear(self, reached: int | None) -> None:
        """Note a read; None says that no bytes came."""

    def judge(self, mark: Position | None) -> None:
        """Judge once what was read is in the spool."""


class Unguarded:
    """Lets everything pass."""

    def connect(self) -> None:
        """Do nothing."""

    def excuse(self) -> None:
        """Do nothing."""

    def hear(self, reached: int | None) -> None:
        """Do nothing."""

    def judge(self, mark: Position | None) -> None:
        """Do nothing."""


def capture(
    stream: ChangeStream,
    encoder: ChangeEncoder,
    pending: Pending,
    state: CaptureState,
    stop: StopFlag,
    guard: Guard = Unguarded(),  # noqa: B008 - it has no state
) -> None:
    """Move committed transactions from the server into the spool until told to stop.

    Raises:
        InformixCdcError: the stream cannot go on; whatever is whole is in the spool.
    """
    guard.connect()
    ignored_before = state.ignored_truncates
    while not stop.is_set():
        if pending.is_far_ahead(state):
            state.pause(lambda: not pending.is_far_ahead(state), _STOP_POLL_SECONDS)
            guard.excuse()
            continue
        events = _take(stream, encoder, pending)
        if stream.assembler is None:
            guard.connect()  # still at it, or reading the log for what was open at the start
        else:
            guard.hear(None if events is None else stream.reached)
        catches_up = state.catches_up(events, stream)
        if catches_up or pending.is_due(is_idle=events is None):
            pending.flush(encoder)
            state.notify()
        if pending.is_anchor_overdue() and stream.assembler is not None:
            stream.assembler.stop_waiting_for_unseen()
        state.observe(events, stream, catches_up)
        state.ignored_truncates = ignored_before + encoder.ignored_truncates
        if stream.assembler is not None:
            guard.judge(state.spool.mark if state.spool else None)


def _take(stream: ChangeStream, encoder: ChangeEncoder, pending: Pending) -> list[Event] | None:
    """Take the next events into what is pending; None when no bytes came."""
    try:
        events = stream.next_events(pending.patience_seconds())
        if events and stream.assembler is not None:
            pending.begin_at(stream.assembler.anchor)
        for event in events or ():
            if isinstance(event, TableSchema):
                pending.flush(encoder)  # rows that came before it have the layout before it
                encoder.announce(event)
            else:
                pending.add(event)
    except InformixCdcError:
        pending.flush(encoder)  # what is whole does not wait for what is broken
        raise
    return events


class Pending:
    """What has been committed but is not yet in the spool.

    Args:
        open_spool: called with the anchor of a first start, when there is no spool yet.
        clock: seconds from anywhere.
        latency_seconds: how long rows wait for company; a flush costs about a millisecond.
        segment_bytes: how many bytes of records are worth a segment; a larger transaction goes whole.
        most_bytes_ahead: how much may lie in the spool that Spark has not taken.
        appended: counts what goes into the spool.
    """

    def __init__(
        self,
        spool: Spool | None,
        open_spool: Callable[[Position], Spool],
        clock: Callable[[], float] = time.monotonic,
        *,
        latency_seconds: float = 0.02,
        segment_bytes: int = _SEGMENT_BYTES,
        most_bytes_ahead: int = 1 << 62,
        appended: Appended | None = None,
    ) -> None:
        self._appended = appended or Appended()
        self._latency_seconds = latency_seconds
        self._segment_bytes = segment_bytes
        self._most_bytes_ahead = most_bytes_ahead
        self._clock = clock
        self._spool = spool
        self._open_spool = open_spool
        self._transactions: list[Transactions] = []
        self._position: Position | None = None
        self._bytes = 0
        self._holds_spilled = False  # what lies on the disk twice goes on at once
        self._flushed_at = 0.0
        self._begun_at = self._clock()

    def begin_at(self, anchor: Position | None) -> None:
        """Open the spool as soon as it is known where the stream begins."""
        if self._spool is None and anchor is not None:
            self._spool = self._open_spool(anchor)

    def add(self, event: Event) -> None:
        """Take the next event in stream order."""
        if isinstance(event, Transactions):
            self._transactions.append(event)
            self._bytes += sum(rows.size_bytes for rows in event.rows if isinstance(rows, RowRecords))
            self._holds_spilled |= event.is_spilled
            self._position = event.position
        elif isinstance(event, Passed):
            self._position = event.position

    def is_far_ahead(self, state: CaptureState) -> bool:
        """Tell whether reading must wait for Spark, and say so when that changes.

        A single transaction may exceed the bound, and what Spark has taken does not count: there is
        always something new for Spark, or something is read on.
        """
        ahead = state.bytes_ahead
        is_far = ahead > self._most_bytes_ahead
        if is_far != state.is_paused:
            event = READING_PAUSED if is_far else READING_RESUMED
            limit = self._most_bytes_ahead
            event.log(logger, stream=state.stream, ahead_bytes=ahead, limit_bytes=limit)
            state.is_paused = is_far
            state.pauses += is_far
            state.notify()
        return is_far

    def is_anchor_overdue(self) -> bool:
        """Tell whether a first start has waited long enough for older transactions to end."""
        return self._spool is None and self._clock() - self._begun_at > UNSEEN_WAIT_SECONDS

    def patience_seconds(self) -> float:
        """Return how long the next bytes may take before what is here should go on."""
        if not self._transactions:
            return _STOP_POLL_SECONDS
        return self._flushed_at + self._interval_seconds() - self._clock()

    def _interval_seconds(self) -> float:
        """Return the time between two flushes: longer the more segments Spark has left lying."""
        segments = self._spool.segment_count if self._spool else 0
        return self._latency_seconds * (1 + segments / SEGMENTS_PER_INTERVAL)

    def is_due(self, is_idle: bool) -> bool:
        """Tell whether to flush: nothing more is coming, enough is here, or it has waited enough."""
        if not self._transactions:
            return self._position is not None
        is_enough = self._bytes >= self._segment_bytes or self._holds_spilled
        return is_idle or is_enough or self.patience_seconds() <= 0

    def flush(self, encoder: ChangeEncoder) -> None:
        """Append what is here to the spool, in one segment, with the newest valid position."""
        transactions, position = self._transactions, self._position
        self._transactions, self._position, self._bytes = [], None, 0
        self._holds_spilled = False
        if position is None:
            return
        failpoint("capture.before_flush")
        try:
            self._append(transactions, encoder)
        except InformixCdcError:
            self._append(encoder.sound_part(transactions), encoder)
            raise
        if self._spool is not None and position != self._spool.mark:
            self._spool.note(position)
        self._flushed_at = self._clock()

    def _append(self, transactions: list[Transactions], encoder: ChangeEncoder) -> None:
        if transactions:
            assert self._spool is not None  # a transaction is delivered only after an anchor
            last = transactions[-1].position
            segment = self._spool.append(encoder.stored_schema, encoder.encode(transactions), last)
            first_time = int(transactions[0].commit_times[0])
            self._appended.note(segment, first_time)
