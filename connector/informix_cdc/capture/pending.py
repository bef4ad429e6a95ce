"""Collects transactions between stream and spool until they are worth a segment.

Rule: everything added is written as one segment with the newest valid position, or up to the first
encoding error. It also decides, by the rows that Spark has not read, whether to continue reading.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator

from informix_capture_client.errors import ConnectionLost, InformixCdcError
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import READING_PAUSED, READING_RESUMED
from informix_capture_client.positions import Position
from informix_capture_client.records import TableSchema
from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.stream import Answer, Read
from informix_capture_client.transactions import CommittedTransactions, PositionPassed, StreamEvent
from informix_cdc.capture.counts import Counters
from informix_cdc.capture.state import CaptureState
from informix_checkpoints.spool import Spool

logger = logging.getLogger("informix_cdc.connector.capture_loop")  # a logger name, not a module

# Each segment is one more to read; this many that Spark has not read double the interval between two.
SEGMENTS_PER_INTERVAL = 32
_SEGMENTS_BEHIND_PER_INTERVAL = 512  # that only readers need which are away
_SHARE_WHILE_SPARK_WAITS = 0.25
_SEGMENT_BYTES = 16 << 20
_STOP_POLL_SECONDS = 0.1
# How long a first start waits for transactions that were open before it.
UNSEEN_WAIT_SECONDS = 5.0


class Pending:
    """Committed transactions that are not in the spool yet.

    Args:
        open_spool: called with the start offset of a first start, when there is no spool yet.
        clock: a monotonic clock.
        latency_seconds: maximum time that rows are buffered; a flush costs about a millisecond.
        segment_bytes: bytes of records that make a segment; a larger transaction is not split.
        most_bytes_ahead: maximum bytes in the spool that Spark has not read.
        segments_ahead: returns the numbers of segments that the slowest reader has not processed, and
            the one that waits for rows.
        counters: count what is written to the spool.
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
        segments_ahead: Callable[[], tuple[int, int]] = lambda: (0, 0),
        counters: Counters | None = None,
    ) -> None:
        self._segments_ahead = segments_ahead
        self._counters = counters or Counters()
        self._latency_seconds = latency_seconds
        self._segment_bytes = segment_bytes
        self._most_bytes_ahead = most_bytes_ahead
        self._clock = clock
        self._spool = spool
        self._open_spool = open_spool
        self._transactions: list[CommittedTransactions] = []
        self._position: Position | None = None
        self._bytes = 0
        self._holds_spilled = False  # rows spilled to disk are written at once
        self._flushed_at = 0.0
        self._begun_at = self._clock()

    @property
    def high_watermark(self) -> Position | None:
        """The newest position in the spool; None before the stream has begun."""
        return self._spool.manifest.high_watermark if self._spool else None

    def append(self, answer: Answer, encoder: ChangeEncoder, *, at_once: bool = False) -> bool:
        """Add an answer, and write the pending rows if due or `at_once`; return whether written.

        Raises:
            DataLoss, ProtocolViolation: rows or their metadata cannot be encoded.
            AccessRefused: the spool cannot be written.
        """
        if isinstance(answer, Read):
            self._append_events(answer, encoder)
        is_due = at_once or self.is_due(is_idle=not isinstance(answer, Read))
        if is_due:
            self.flush(encoder)
        return is_due

    def _append_events(self, read: Read, encoder: ChangeEncoder) -> None:
        if self._spool is None and read.events and read.assembler.start_offset is not None:
            self._spool = self._open_spool(read.assembler.start_offset)
        for event in read.events:
            if isinstance(event, TableSchema):
                self.flush(encoder)  # earlier rows have the previous layout
                encoder.announce(event)
            else:
                self.add(event)

    @contextlib.contextmanager
    def stored_on_error(self, encoder: ChangeEncoder) -> Iterator[None]:
        """Write complete transactions before an error is raised."""
        try:
            yield
        except InformixCdcError:
            self.flush(encoder)
            raise

    def add(self, event: StreamEvent) -> None:
        """Add the next event in stream order."""
        if isinstance(event, CommittedTransactions):
            self._transactions.append(event)
            contents = event.record_count * self._counters.content_bytes_a_row
            self._bytes += event.bytes_in_memory + int(contents)
            self._holds_spilled |= event.is_spilled
            self._position = event.position
        elif isinstance(event, PositionPassed):
            self._position = event.position

    def is_far_ahead(self, state: CaptureState) -> bool:
        """Return whether reading must wait for Spark; log it when that changes.

        A single transaction may exceed the limit, and rows that Spark has read do not count, so there
        is always something for Spark to read, or reading continues.
        """
        ahead = state.bytes_ahead
        is_far = ahead > self._most_bytes_ahead
        if is_far != state.gauges.is_paused:
            event = READING_PAUSED if is_far else READING_RESUMED
            limit = self._most_bytes_ahead
            event.log(logger, stream=state.stream, ahead_bytes=ahead, limit_bytes=limit)
            state.gauges.is_paused = is_far
            self._counters.pauses += is_far
            state.notify()
        return is_far

    def wait_for_room(self, state: CaptureState) -> None:
        """Wait for a moment, or until Spark has read enough."""
        state.wait_for_spark(lambda: state.bytes_ahead <= self._most_bytes_ahead, _STOP_POLL_SECONDS)

    def is_start_overdue(self) -> bool:
        """Return whether a first start has waited long enough for older transactions to end."""
        return self._spool is None and self._clock() - self._begun_at > UNSEEN_WAIT_SECONDS

    def patience_seconds(self) -> float:
        """Return how long to wait for the next bytes before pending rows must be written."""
        if not self._transactions:
            return _STOP_POLL_SECONDS
        return self._flushed_at + self._interval_seconds() - self._clock()

    def _interval_seconds(self) -> float:
        """Return the time between two flushes, which grows with the segments that Spark has to read.

        Where one reader keeps up and another one is away, it grows slowly: the first one waits for it,
        and each segment costs the capture some memory.

        While Spark waits for rows, it is short. With the whole of it, transactions that come at that
        very interval would each wait for the one before, and all of them as long as the slowest.
        """
        most, ahead = self._segments_ahead()
        share = 1 + ahead / SEGMENTS_PER_INTERVAL if ahead else _SHARE_WHILE_SPARK_WAITS
        return self._latency_seconds * (share + (most - ahead) / _SEGMENTS_BEHIND_PER_INTERVAL)

    def is_due(self, is_idle: bool) -> bool:
        """Return whether to flush: no more data arrives, there is enough, or it has waited enough."""
        if not self._transactions:
            return self._position is not None
        is_enough = self._bytes >= self._segment_bytes or self._holds_spilled
        return is_idle or is_enough or self.patience_seconds() <= 0

    def flush(self, encoder: ChangeEncoder) -> None:
        """Append the pending rows to the spool, in one segment, with the newest valid position."""
        transactions, position = self._transactions, self._position
        self._transactions, self._position, self._bytes = [], None, 0
        self._holds_spilled = False
        if position is None:
            return
        failpoint("capture.before_flush")
        try:
            self._append(transactions, encoder)
        except ConnectionLost:
            raise  # large objects could not be read; the records are fine
        except InformixCdcError:
            self._append(encoder.sound_part(transactions), encoder)
            raise
        if self._spool is not None:
            self._spool.advance(position)
        self._flushed_at = self._clock()

    def _append(self, transactions: list[CommittedTransactions], encoder: ChangeEncoder) -> None:
        if not transactions:
            return
        assert self._spool is not None  # a transaction is delivered only after a start offset
        rows = encoder.encode(transactions)
        segment = self._spool.append(rows.schema, rows, transactions[-1].position)
        self._counters.appended.record(segment, int(transactions[0].commit_times[0]))
        self._counters.truncates += segment.truncates
