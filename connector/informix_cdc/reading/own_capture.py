"""The capture of a query, in a thread of its process, and the query as its reader.

Rule: it exists only in that process. The capture starts with the first request, from the offset that
Spark passes, and captures again what its spool does not have: the checkpoint decides, and not a folder.
Requests of a stream that reported a data loss are refused before anything is captured.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.errors import DataLoss
from informix_capture_client.log_events import BATCH_LOST, LOSS_NOT_NOTED
from informix_capture_client.positions import Position, RecordPlace, show
from informix_cdc.capture import CaptureState, CaptureThread, can_recover
from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.executors import SegmentPlaces, SegmentPublisher
from informix_cdc.monitoring import progress_figures
from informix_cdc.options import SourceOptions
from informix_cdc.reading.next_offset import NextOffset, has_rows
from informix_cdc.reading.reader import CaptureReader
from informix_cdc.reading.trigger import Figure, Trigger
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.readers import ReaderState
from informix_checkpoints.requests import RESYNC, Request, RequestFolder
from informix_checkpoints.shared_captures import PreviousStream, PublishedCapture
from informix_checkpoints.spool import ReportedLosses, SegmentRange, StoredStream

if TYPE_CHECKING:
    from informix_cdc.monitoring import MetricsServer

logger = logging.getLogger("informix_cdc.connector.stream_reader")  # a logger name, not a module

_FOR_EVER: RecordPlace = ((1 << 63) - 1, 0)


class OwnCapture:
    """A capture in this process; for its reader, the same as the folder of one in another.

    Args:
        options: with the password.
        check_schema: refuses the schema of the tables if it differs from that of the query.
        clock: of the captures.
        on_switched_on: as in `CaptureThread`.
    """

    def __init__(
        self,
        options: SourceOptions,
        check_schema: Callable[[pa.Schema], None] = lambda _: None,
        clock: Clock = MONOTONIC,
        on_switched_on: Callable[[Table], None] | None = None,
    ) -> None:
        self.path = Path(options.spool.path)
        self._options = options
        self._check_schema = check_schema
        self._clock = clock
        self._on_switched_on = on_switched_on
        self._known: tuple[object, ...] = ()  # what `_published` was made of
        self._published = PublishedCapture(tables=(), options={})
        self.thread: CaptureThread | None = None
        self.state: CaptureState | None = None  # of the current or the last capture

    def begin(self, start: StreamOffset, planned: Position | None = None) -> CaptureState:
        """Start a capture at an offset, unless one runs; return its state.

        Args:
            start: where it begins.
            planned: the end of a batch that Spark asks for again.
        """
        if self.thread is None or self.state is None:
            self.state = self.state.successor() if self.state else CaptureState(clock=self._clock)
            self.thread = CaptureThread(
                self._options,
                start,
                planned,
                lambda source: self._check_schema(source.schema()),
                self.state,
                self._on_switched_on,
            )
            self.thread.start()
        return self.state

    def end(self) -> None:
        """End the capture; the next request begins another one."""
        if self.thread is not None:
            self.thread.stop()
            self.thread = None

    # as its reader sees it

    @property
    def published(self) -> PublishedCapture:
        """What a capture publishes; it is current at any time."""
        state = self._begun
        if (spool := state.spool) is None:
            # between two streams, of which the next one is not known yet
            left = list(state.previous_streams.items())
            previous = {name: PreviousStream(end, "") for name, end in left}
            return PublishedCapture(tables=(), options={}, previous=previous)
        manifest = spool.manifest
        known = (manifest, state.logged, state.settling, state.waits_for_spark)
        if len(self._known) != len(known) or any(map(operator.is_not, known, self._known)):
            begins = manifest.start.place
            self._published = PublishedCapture(
                tables=(),
                options={},
                offset=state.offset(spool),
                previous={
                    name: PreviousStream(end, spool.stream, begins)
                    for name, end in list(state.previous_streams.items())
                    if name != spool.stream  # it may be left at this moment
                },
                waits=state.waits_for_spark,
            )
            self._known = known
        return self._published

    def spool(self, stream: str) -> StoredStream | None:
        """Return the stored rows of a stream; None if it is another one than the current."""
        spool = self._begun.spool
        return spool if spool is not None and spool.stream == stream else None

    @property
    def readers(self) -> OwnCapture:
        """Where readers are registered: there is one, whose place is in Spark's checkpoint."""
        return self

    def register(self, name: str, run: str) -> ReaderState:
        """Return what is known of the reader: nothing."""
        return ReaderState(name=name, run=run)

    def update(self, reader: ReaderState) -> ReaderState:
        """Tell the capture what its reader has taken."""
        self._begun.ack(reader.stream, reader.taken)
        return reader

    def question(self, _reader: ReaderState) -> int:
        """Return no number: the capture looks for the end of the log when it begins."""
        return 0

    def has_all(self, _name: str, _question: int) -> bool:
        """Return whether everything from before the run's start is stored."""
        return self._begun.has_all

    @property
    def is_away(self) -> bool:
        """Whether the capture has ended for a while; its error says so at once."""
        return False

    def wait_for(
        self,
        is_true: Callable[[], bool],
        timeout_seconds: float | None,
        _most_seconds: float,
        _name: str,
    ) -> None:
        """Wait until a condition holds, or until the time has passed.

        Raises:
            InformixCdcError: the condition does not hold, and the capture has ended.
        """
        self._begun.wait_for(is_true, timeout_seconds)

    @property
    def _begun(self) -> CaptureState:
        assert self.state is not None  # it begins before its reader asks
        return self.state


class OwnReader:
    """Reads a stream for the query that captures it.

    Args:
        options: with the password.
        capture: of the query.
        clock: of the query.
    """

    def __init__(self, options: SourceOptions, capture: OwnCapture, clock: Clock = MONOTONIC) -> None:
        self.capture = capture
        self._options = options
        self._form = options.row_form().of_keys
        self._reader = CaptureReader(capture, "query", row_form=self._form, next=NextOffset(clock))
        self._metrics: MetricsServer | None = None
        self._loss: DataLoss | None = None  # reported by this process
        self._stream = ""  # of the last request

    def next_offset(
        self, start: StreamOffset, limits: BatchLimits, trigger: Trigger
    ) -> StreamOffset | None:
        """Wait for the end of the next batch; return None if nothing is new.

        Raises:
            InformixCdcError: the capture has ended, and no rows are left.
        """
        state = self._begun(start)
        self._forget_losses_before(start.stream)
        if trigger is Trigger.ONLY_BATCH and limits.are_none:
            state.plan(start.stream, _FOR_EVER)  # the spool must hold all of it
        try:
            return self._reader.next_offset(start, limits, trigger)
        except DataLoss as loss:
            return self._reported(start, loss)

    def ranges(self, start: StreamOffset, end: StreamOffset) -> Sequence[SegmentRange]:
        """Return the ranges of a batch; capture it again if this process does not have it.

        Raises:
            InformixCdcError: the rows cannot be delivered.
        """
        self._require_sound(end)
        is_recovery = start.stream != end.stream and not self._options.stream.fails_on_data_loss
        if is_recovery or not has_rows(start, end, self._form):
            return []
        state = self._begun(start, end.position)
        state.plan(start.stream, end.position.place)
        try:
            return self._reader.ranges(start, end)
        except DataLoss as loss:
            if state.has_left(start.stream):  # Spark had processed all its rows before
                return []
            if self._options.stream.fails_on_data_loss or not can_recover(loss):
                self._store_mark(start, loss)
                raise
            after, upto = show(start.position.commit), show(end.position.commit)
            BATCH_LOST.log(logger, stream=start.stream, after=after, upto=upto, reason=loss)
            state.counters.count_loss()
            if self._options.stream.on_data_loss == "resync":
                folder = RequestFolder(Path(self._options.spool.path) / start.stream)
                folder.submit(Request(kind=RESYNC, tables=tuple(start.tables)))
            self.capture.end()
            return []

    def places(self, publisher: SegmentPublisher) -> SegmentPlaces:
        """Return where executors find the ranges."""
        return self._reader.places(publisher)

    def commit(self, end: StreamOffset) -> None:
        """Remove the rows up to an offset from the spool."""
        spool = self.capture.state.spool if self.capture.thread and self.capture.state else None
        if spool is not None and spool.stream == end.stream:
            spool.trim(end.position.place)

    def figures(self) -> Mapping[str, Figure] | None:
        """Return the figures of the capture; `figures.py` declares them."""
        return progress_figures(self.capture.state) if self.capture.state else None

    def close(self) -> None:
        """Close the capture session, the spool and the port of metrics; can be called twice."""
        if self._metrics is not None:
            self._metrics.close()
        if self.capture.thread is not None:
            self.capture.thread.stop()

    def _begun(self, start: StreamOffset, planned: Position | None = None) -> CaptureState:
        if self.capture.thread is None:
            losses = ReportedLosses.beside(self._options.spool.path)
            if start.is_started and start.lost is None:
                start = replace(start, lost=losses.find(start.stream))
            self._require_sound(start)
            self._show_metrics()
        return self.capture.begin(start, planned)

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
        if wanted.lost is not None and self._options.stream.fails_on_data_loss:
            raise wanted.lost.error()

    def _store_mark(self, start: StreamOffset, loss: DataLoss) -> None:
        """Record a loss in a planned batch, whose offset is already in the checkpoint."""
        losses = ReportedLosses.beside(self._options.spool.path)
        try:
            losses.record(start.stream, start.source, loss)
        except OSError as reason:
            LOSS_NOT_NOTED.log(logger, stream=start.stream, reason=reason)

    def _forget_losses_before(self, stream: str) -> None:
        """Remove the records of streams that were left, once Spark's checkpoint has the next one."""
        state = self.capture.state
        if stream == self._stream or state is None:
            return
        self._stream = stream
        losses = ReportedLosses.beside(self._options.spool.path)
        for left in state.previous_streams.keys() - {stream}:
            losses.remove(left)

    def _show_metrics(self) -> None:
        """Serve the metrics, if requested, before anything is captured."""
        if self._options.reports.metrics is not None and self._metrics is None:
            from informix_cdc.monitoring import metrics_of

            self._metrics = metrics_of(self._options, lambda: self.capture.state)
