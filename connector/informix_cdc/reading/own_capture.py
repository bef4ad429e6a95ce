"""A stream that the query captures itself, in a thread of Spark's runner process.

Rule: it exists only in that process. The capture starts with the first request, from the offset that
Spark passes; requests of a stream that reported a data loss are refused before anything is captured.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from informix_capture_client.errors import DataLoss
from informix_capture_client.log_events import BATCH_LOST, LOSS_NOT_NOTED
from informix_capture_client.positions import Position, RecordPlace, show
from informix_cdc.capture import CaptureState, CaptureThread, can_recover
from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.executors import SegmentPlaces, SegmentPublisher
from informix_cdc.monitoring import progress_figures
from informix_cdc.options import SourceOptions
from informix_cdc.reading.next_offset import NextOffset, has_rows
from informix_cdc.reading.trigger import Figure, Trigger
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.requests import RESYNC, Request, RequestFolder
from informix_checkpoints.spool import ReportedLosses, SegmentRange, Spool

if TYPE_CHECKING:
    from informix_cdc.monitoring import MetricsServer

logger = logging.getLogger("informix_cdc.connector.stream_reader")  # a logger name, not a module

_FOR_EVER: RecordPlace = ((1 << 63) - 1, 0)


class OwnCapture:
    """Captures a stream for one query.

    Args:
        options: with the password.
        check_schema: refuses the schema of the tables if it differs from that of the query.
        clock: of the captures.
    """

    def __init__(
        self,
        options: SourceOptions,
        check_schema: Callable[[pa.Schema], None] = lambda _: None,
        clock: Clock = MONOTONIC,
    ) -> None:
        self._options = options
        self._check_schema = check_schema
        self._form = options.row_form().of_keys
        self._metrics: MetricsServer | None = None
        self._loss: DataLoss | None = None  # reported by this process
        self._stream = ""  # of the last request
        self._clock = clock
        self.next = NextOffset(clock)
        self.thread: CaptureThread | None = None
        self.state: CaptureState | None = None  # of the current or the last capture

    def next_offset(
        self, start: StreamOffset, limits: BatchLimits, trigger: Trigger
    ) -> StreamOffset | None:
        """Wait for the end of the next batch; return None if nothing is new.

        Raises:
            InformixCdcError: the capture has ended, and no rows are left.
        """
        state = self._running(start).state
        state.ack(start.stream, start.position)
        self._forget_losses_before(start.stream)
        if trigger is Trigger.ONLY_BATCH and limits.are_none:
            state.plan(start.stream, _FOR_EVER)  # the spool must hold all of it
        try:
            self.next.wait(state, start, limits, trigger)
        except DataLoss as loss:
            return self._reported(start, loss)
        return self.next.choose(state, start, limits, trigger)

    def ranges(self, start: StreamOffset, end: StreamOffset) -> Sequence[SegmentRange]:
        """Return the ranges of a batch; capture it again if this process does not have it.

        Raises:
            InformixCdcError: the rows cannot be delivered.
        """
        self._require_sound(end)
        is_recovery = start.stream != end.stream and not self._options.fail_on_data_loss
        if is_recovery or not has_rows(start, end, self._form):
            return []
        spool = self._spool_that_holds(start, end.position)
        return spool.between(start.position.place, end.position.place, start.cut) if spool else []

    def places(self, publisher: SegmentPublisher) -> SegmentPlaces:
        """Return where executors find the ranges."""
        assert self.state is not None
        assert self.state.spool is not None  # otherwise there are no ranges
        return publisher.places(self.state.spool)

    def commit(self, end: StreamOffset) -> None:
        """Remove the rows up to an offset from the spool."""
        spool = self.thread.state.spool if self.thread else None
        if spool is not None and spool.stream == end.stream:
            spool.trim(end.position.place)

    def figures(self) -> Mapping[str, Figure] | None:
        """Return the figures of the capture; `figures.py` declares them."""
        return progress_figures(self.state) if self.state else None

    def close(self) -> None:
        """Close the capture session, the spool and the port of metrics; can be called twice."""
        if self._metrics is not None:
            self._metrics.close()
        if self.thread is not None:
            self.thread.stop()

    def _running(self, start: StreamOffset, planned: Position | None = None) -> CaptureThread:
        if self.thread is None:
            losses = ReportedLosses.beside(self._options.spool_path)
            if start.is_started and start.lost is None:
                start = replace(start, lost=losses.find(start.stream))
            self._require_sound(start)
            self._show_metrics()
            self.state = self.state.successor() if self.state else CaptureState(clock=self._clock)
            self.thread = CaptureThread(
                self._options,
                start,
                planned,
                lambda source: self._check_schema(source.schema()),
                self.state,
            )
            self.thread.start()
        return self.thread

    def _spool_that_holds(self, start: StreamOffset, up_to: Position) -> Spool | None:
        """Wait for the rows of a range; return None if it has none, or if lost rows may be skipped."""
        capture = self._running(start, up_to)
        state = capture.state
        state.plan(start.stream, up_to.place)
        try:
            state.wait_for(lambda: state.has_left(start.stream) or _holds(state.spool, up_to), None)
        except DataLoss as loss:
            if self._options.fail_on_data_loss or not can_recover(loss):
                self._store_mark(start, loss)
                raise
            after = show(start.position.commit)
            end = show(up_to.commit)
            BATCH_LOST.log(logger, stream=start.stream, after=after, upto=end, reason=loss)
            state.counters.count_loss()
            if self._options.on_data_loss == "resync":
                folder = RequestFolder(Path(self._options.spool_path) / start.stream)
                folder.submit(Request(kind=RESYNC, tables=tuple(start.tables)))
            capture.stop()
            self.thread = None  # the next request for an offset starts a new capture
            return None
        return None if state.has_left(start.stream) else state.spool

    # data losses that were reported before

    def _reported(self, begun: StreamOffset, loss: DataLoss) -> StreamOffset:
        """Return an offset that records a loss in the checkpoint; `ranges` raises the error.

        Spark plans an empty batch up to there before it asks for partitions, and asks again for them
        whenever the query is restarted.

        Raises:
            DataLoss: it need not be recorded, because a restart detects it again.
        """
        marked = begun.lost_by(loss)
        if not begun.is_started or marked.lost is None:
            raise loss
        self._loss = loss
        return marked

    def _require_sound(self, wanted: StreamOffset) -> None:
        """Refuse to continue after a reported loss, unless the query may continue without the data.

        Raises:
            DataLoss: the loss.
        """
        if self._loss is not None and wanted.lost is not None:
            raise self._loss
        if wanted.lost is not None and self._options.fail_on_data_loss:
            raise wanted.lost.error()

    def _store_mark(self, start: StreamOffset, loss: DataLoss) -> None:
        """Record a loss in a planned batch, whose offset is already in the checkpoint."""
        losses = ReportedLosses.beside(self._options.spool_path)
        try:
            losses.record(start.stream, start.source, loss)
        except OSError as reason:
            LOSS_NOT_NOTED.log(logger, stream=start.stream, reason=reason)

    def _forget_losses_before(self, stream: str) -> None:
        """Remove the records of streams that were left, once Spark's checkpoint has the next one."""
        if stream == self._stream or self.state is None:
            return
        self._stream = stream
        losses = ReportedLosses.beside(self._options.spool_path)
        for left in self.state.previous_streams.keys() - {stream}:
            losses.remove(left)

    def _show_metrics(self) -> None:
        """Open the metrics port, if requested, before anything is captured."""
        if self._options.metrics_port and self._metrics is None:
            from informix_cdc.monitoring import metrics_of

            self._metrics = metrics_of(self._options, lambda: self.state)


def _holds(spool: Spool | None, up_to: Position) -> bool:
    return spool is not None and spool.manifest.high_watermark.place >= up_to.place
