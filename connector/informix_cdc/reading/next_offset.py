"""Choose the next offset for Spark.

Rule: it does not know Spark and opens nothing; it reads the state of the capture and the manifest. A
new offset compares only places; if nothing is new the answer is None, and the caller returns the given
start offset unchanged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from informix_capture_client.errors import NEW_STREAM, BadOption, DataLoss
from informix_capture_client.positions import LogEnd, Position, SettlingRestart
from informix_cdc.reading.trigger import Trigger
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.spool import StoredStream
from informix_checkpoints.table_states import listed

ANCHOR_WAIT_SECONDS = 30.0  # Spark would run an empty batch if the first answer were "not started"
LONG_POLL_SECONDS = 0.2  # reduces Spark's polling when idle, and answers at once when rows arrive
# Interval in which the restart position of a quiet stream is written to the checkpoint.
RESTART_PUBLICATION_SECONDS = 120.0


class CaptureView(Protocol):
    """What the choice of an offset needs to know of a capture."""

    @property
    def spool(self) -> StoredStream | None:
        """The rows of the current stream; None before it has begun, or after it was abandoned."""
        ...

    @property
    def previous_streams(self) -> Collection[str]:
        """Streams that this one continues after a data loss."""
        ...

    @property
    def logged(self) -> LogEnd | None:
        """As in `StreamOffset`."""
        ...

    @property
    def settling(self) -> SettlingRestart | None:
        """As in `StreamOffset`."""
        ...

    @property
    def has_all(self) -> bool:
        """Whether all changes and snapshots from before the run's start are in the spool."""
        ...

    @property
    def waits_for_spark(self) -> bool:
        """Whether the log or a snapshot is not read further until Spark has read more."""
        ...

    def wait_for(self, is_true: Callable[[], bool], timeout_seconds: float | None) -> None:
        """Wait until a condition holds, or until the time has passed.

        Raises:
            InformixCdcError: the condition does not hold, and the capture has ended.
        """
        ...


@dataclass(slots=True)
class NextOffset:
    """Chooses offsets for one run of a query.

    With `Trigger.AVAILABLE_NOW`, until everything is delivered, a batch is delivered when a limit is
    reached or the capture waits for Spark.
    """

    clock: Callable[[], float] = time.monotonic
    _final: tuple[str, Position] | None = field(default=None, init=False)  # stream and its end
    _published_at: float | None = field(default=None, init=False)
    _is_closed: bool = field(default=False, init=False)

    def wait(
        self,
        state: CaptureView,
        start: StreamOffset,
        limits: BatchLimits,
        trigger: Trigger = Trigger.CONTINUOUS,
    ) -> None:
        """Wait until there is something to return: for a while, or as long as necessary.

        Args:
            state: of the capture.
            start: end of the previous batch.
            limits: of the next batch.
            trigger: of the run.

        Raises:
            InformixCdcError: the capture has ended, and no rows are left.
        """
        patience = LONG_POLL_SECONDS if start.is_started else ANCHOR_WAIT_SECONDS
        is_last = trigger is not Trigger.CONTINUOUS
        timeout_seconds = None if is_last else patience
        state.wait_for(lambda: self._has_news(state, start, limits, is_last), timeout_seconds)

    def choose(
        self,
        state: CaptureView,
        start: StreamOffset,
        limits: BatchLimits,
        trigger: Trigger = Trigger.CONTINUOUS,
    ) -> StreamOffset | None:
        """Return the end of the next batch, or None if nothing is new.

        Raises:
            DataLoss: `start` is an offset of another stream.
        """
        if (spool := state.spool) is None:
            return None
        if _is_new_to(spool, state, start):
            position: Position | None = spool.manifest.start
        else:
            position = self._next_position(spool, state, start, limits, trigger)
        if position is None:
            return None
        tables = spool.manifest.tables_at(position)
        end = StreamOffset(
            spool.stream,
            spool.manifest.source,
            position,
            state.logged,
            tables=tables,
            settling=state.settling,
            left=spool.manifest.left_at(position),
        ).with_cut_of(start)
        # The restart position of a new stream can move back for a BEGINTX that is read late.
        return end.not_before(start)

    def _has_news(
        self, state: CaptureView, start: StreamOffset, limits: BatchLimits, is_last: bool
    ) -> bool:
        if (spool := state.spool) is None:
            return False
        if _is_new_to(spool, state, start) or (is_last and state.has_all):
            return True
        end = spool.end_of_batch(start.position, limits)
        is_new = end.place > start.position.place
        if is_last:
            return is_new and (state.waits_for_spark or end.place < spool.manifest.end.place)
        return is_new

    def _next_position(
        self,
        spool: StoredStream,
        state: CaptureView,
        start: StreamOffset,
        limits: BatchLimits,
        trigger: Trigger,
    ) -> Position | None:
        end = spool.end_of_batch(start.position, limits)
        is_available_now = trigger is Trigger.AVAILABLE_NOW
        if is_available_now and state.has_all:
            if self._final is None or self._final[0] != spool.stream:
                self._final = (spool.stream, spool.manifest.end)
            end = min(end, self._final[1], key=lambda position: position.place)
        if end.place > start.position.place:
            high_watermark = spool.manifest.high_watermark
            return (
                high_watermark if high_watermark.place == end.place else end
            )  # it may have a later restart position
        return self._quiet_position(spool, state, start, is_available_now=is_available_now)

    def _quiet_position(
        self, spool: StoredStream, state: CaptureView, start: StreamOffset, *, is_available_now: bool
    ) -> Position | None:
        """Return an offset that only advances the restart position, for quiet tables.

        A run of AvailableNow that cannot advance it yet leaves the possible value for the next run.
        """
        now = self.clock()
        published = self._published_at  # None: due now, because the query may be restarted often
        is_due = published is None or now - published > RESTART_PUBLICATION_SECONDS
        high_watermark, end = spool.manifest.high_watermark, spool.manifest.end
        before = start.position
        has_chunk = (
            high_watermark.chunk > before.chunk
        )  # without rows, progress of a table is published at once
        is_later = high_watermark.restart > before.restart or has_chunk
        if is_available_now:
            is_later |= state.settling is not None and state.settling != start.settling
        is_news = end.place <= before.place and is_later
        is_due = is_due or has_chunk or is_available_now
        if self._is_closed or not is_due or not is_news:
            return None
        self._is_closed = is_available_now  # one final offset, then the run ends
        self._published_at = now
        return high_watermark


def _is_new_to(spool: StoredStream, state: CaptureView, start: StreamOffset) -> bool:
    """Return whether an offset is from before this stream: not started, or of an abandoned stream.

    Raises:
        DataLoss: the offset is of another stream.
    """
    if not start.is_started:
        return True
    # The spool of the offset's own stream may still be open while the capture leaves it.
    if start.stream != spool.stream and start.stream in state.previous_streams:
        return True
    require_same_stream(start, spool.stream, spool.manifest.source)
    return False


def require_same_stream(start: StreamOffset, stream: str, source: str) -> None:
    """Refuse an offset of another stream.

    Raises:
        DataLoss: names both streams.
    """
    if (start.stream, start.source) != (stream, source):
        raise DataLoss(
            f"the checkpoint has offsets of two streams: stream {start.stream} of source"
            f" {start.source}, and stream {stream} of source {source}.",
            f"The checkpoint cannot be used: {NEW_STREAM}.",
        )


def has_rows(start: StreamOffset, end: StreamOffset, row_form: str) -> bool:
    """Return whether a range may have rows.

    Raises:
        DataLoss: the offsets are of two streams.
        BadOption: the range was planned with options that make other rows.
    """
    if not start.is_started or start == end or _is_change_of_tables(start, end):
        return False
    require_same_stream(start, end.stream, end.source)
    if start.position.place == end.position.place:
        return False
    _require_same_form(end, row_form)
    return True


def _is_change_of_tables(start: StreamOffset, end: StreamOffset) -> bool:
    """Return whether tables join or leave at the end of a range, which then has no rows."""
    return start.stream == end.stream and listed(start.tables) != listed(end.tables)


def _require_same_form(planned: StreamOffset, row_form: str) -> None:
    """Refuse to repeat a planned batch with options for other rows.

    A cut transaction may be continued with others: it counts stored changes.

    Raises:
        BadOption: names both.
    """
    if planned.row_form != row_form:
        raise BadOption(
            f"Spark continues a batch that was planned with {planned.row_form}, but the options"
            f" are now {row_form}: it would have other rows.",
            "Run the query once with the previous options until that batch is done, then change them.",
        )
