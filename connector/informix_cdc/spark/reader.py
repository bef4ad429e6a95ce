"""The stream reader: offsets, partitions, read, commit.

Rule: the same offsets give the same rows, however often Spark asks. This object exists in three kinds
of process: the runner (one per query, all methods but `read`) owns the capture thread; a planning
process pickles a copy without the password; executors only call `read`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from informix_capture_client.errors import DataLoss
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import (
    BATCH_LOST,
    LOSS_NOT_NOTED,
    MANY_TABLES,
    ROW_FORM_CHANGED,
)
from informix_capture_client.positions import Position, RecordPlace, show
from informix_cdc.capture import CaptureState, CaptureThread, can_recover
from informix_cdc.executors import SegmentPublisher, share_out
from informix_cdc.monitoring import progress_figures
from informix_cdc.options import SourceOptions
from informix_cdc.spark.entry_points import one_line, one_line_rows
from informix_cdc.spark.next_offset import (
    NextOffset,
    is_change_of_tables,
    require_same_form,
    require_same_stream,
)
from informix_cdc.spark.partitions import SpoolPartition
from informix_cdc.spark.runner_log import log_to_standard_error
from informix_cdc.spark.runner_process import settle_in_runner
from informix_cdc.spark.schema import deserialized, require_same, serialized, values_in
from informix_cdc.spark.versions import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import NOT_STARTED, StreamOffset
from informix_checkpoints.receipts import load_receipt
from informix_checkpoints.requests import RESYNC, Request, RequestFolder
from informix_checkpoints.spool import ReportedLosses, Spool

if TYPE_CHECKING:
    from informix_cdc.monitoring import MetricsServer

logger = logging.getLogger("informix_cdc.connector.stream_reader")  # a logger name, not a module

# Spark requests everything (ReadAllAvailable) with Trigger.Once only; other triggers pass this back.
_NO_LIMIT = (1 << 63) - 1
_FOR_EVER: RecordPlace = (_NO_LIMIT, 0)
_SHAPES_OF_STRUCTS = ("rows", "envelope")
_MANY_TABLES = 20
# CPU in the Python worker for each value of a delivered row: measured with 100 and 500 tables of ten
# columns (docs/evidence/performance.md). The cost of NULLs in the JVM comes in addition.
_MICROSECONDS_A_VALUE = 0.03


class InformixStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream of committed changes through the spool."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._delivered: bytes | None = None  # the schema of rows, if this was unpickled
        self._capture: CaptureThread | None = None
        self._publisher = SegmentPublisher(options)
        self._next = NextOffset()
        self._state: CaptureState | None = None  # of the current or the last capture
        self._metrics: MetricsServer | None = None
        self._restore_process: Callable[[], None] | None = None
        self._loss: DataLoss | None = None  # reported by this process

    def __getstate__(self) -> dict[str, Any]:
        """Exclude the password and the thread: unpickled readers only read."""
        return {
            **self.__dict__,
            "_options": self._options.without_secrets(),
            "_schema": StructType(),
            "_delivered": self._row_schema,
            "_capture": None,
            "_state": None,
            "_publisher": None,
            "_metrics": None,
            "_restore_process": None,
            "_loss": None,
        }

    def initialOffset(self) -> dict[str, object]:
        """Return the constant "not started": Spark never stores the start of its first batch."""
        return NOT_STARTED.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the maximum number of rows of a batch; the other limits are applied here."""
        return ReadMaxRows(self._options.batch_limits().rows or _NO_LIMIT)

    def prepareForTriggerAvailableNow(self) -> None:
        """Stop when everything committed before the query's start has been delivered."""
        self._next.is_available_now = True

    @one_line
    def latestOffset(self, start: Mapping[str, object], limit: ReadLimit) -> dict[str, object]:
        """Return the end of the next batch, or `start` if nothing is new."""
        takes_all = isinstance(limit, ReadAllAvailable)
        limits = BatchLimits() if takes_all else self._options.batch_limits()
        return self._offset_after(start, limits, is_only=takes_all)

    def _offset_after(
        self, start: Mapping[str, object], limits: BatchLimits, *, is_only: bool
    ) -> dict[str, object]:
        """Return the end of a batch; `is_only` if this run may have no other batch."""
        failpoint("reader.latest_offset")
        begun = StreamOffset.from_json(start)
        state = self._running(begun).state
        state.ack(begun.stream, begun.position)
        if is_only and limits.are_none:
            state.plan(begun.stream, _FOR_EVER)  # the spool must hold all of it
        try:
            self._next.wait(state, begun, limits, takes_all=is_only)
        except DataLoss as loss:
            return self._reported(begun, loss).to_json()
        end = self._next.choose(state, begun, limits)
        return dict(start) if end is None else replace(end, row_form=self._row_form).to_json()

    def reportLatestOffset(self) -> dict[str, object] | None:
        """Return figures of the capture for Spark's progress; `figures.py` declares them."""
        return dict(progress_figures(self._state)) if self._state else None

    @one_line
    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        """Return the location of a range's rows; capture it again if this process does not have it."""
        failpoint("reader.partitions")
        begun, wanted = StreamOffset.from_json(start), StreamOffset.from_json(end)
        after, up_to = begun.position.place, wanted.position.place
        self._require_sound(wanted)
        if not begun.is_started or begun == wanted or self._is_recovery(begun, wanted):
            return []
        if is_change_of_tables(begun, wanted):
            return []
        is_same_version = (begun.tables is None) == (wanted.tables is None)
        require_same_stream(begun, wanted.stream, wanted.source if is_same_version else begun.source)
        if after == up_to:
            return []
        require_same_form(wanted, self._row_form)
        spool = self._spool_that_holds(begun, wanted.position)
        if spool is None:
            return []
        places, options = self._publisher.places(spool), self._options
        shares = share_out(
            spool.between(after, up_to), options.min_partitions, options.max_partition_bytes
        )
        return [SpoolPartition(tuple(ranges), places) for ranges in shares]

    @one_line_rows
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; repeated calls yield the same rows."""
        assert isinstance(partition, SpoolPartition)
        log_to_standard_error(self._options.log_level)
        schema = deserialized(self._row_schema)
        for wanted in partition.ranges:
            failpoint("reader.read")
            yield from partition.places.read(wanted, schema)

    @one_line
    def commit(self, end: Mapping[str, object]) -> None:
        """Release the rows up to `end`; Spark will not request them again."""
        failpoint("reader.commit")
        done = StreamOffset.from_json(end)
        spool = self._capture.state.spool if self._capture else None
        if spool is not None and spool.stream == done.stream:
            spool.trim(done.position.place)

    def stop(self) -> None:
        """Close the capture session; Spark rarely calls this, so SIGTERM does it too."""
        failpoint("reader.stop")
        self._publisher.close()
        if self._metrics is not None:
            self._metrics.close()
        if self._capture is not None:
            self._capture.stop()
        if self._restore_process is not None:
            self._restore_process()

    @property
    def _row_schema(self) -> bytes:
        """The schema of delivered rows, here and after unpickling."""
        return self._delivered or serialized(self._schema)

    @property
    def _row_form(self) -> str:
        return self._options.row_form().of_keys

    def _reported(self, begun: StreamOffset, loss: DataLoss) -> StreamOffset:
        """Return an offset that records a loss in the checkpoint; `partitions` raises the error.

        Spark plans an empty batch up to there before it asks for partitions, and asks again for them
        whenever the query is restarted.

        Raises:
            DataLoss: it need not be recorded, because a restart detects it again.
        """
        marked = begun.lost_by(self._to_remember(loss))
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
        if wanted.lost is None or not self._options.fail_on_data_loss or self._is_explained(wanted):
            return
        raise wanted.lost.error()

    def _to_remember(self, loss: DataLoss) -> DataLoss:
        """Return a loss to record in the checkpoint; no receipt covers one after its `acquire`."""
        path = self._options.schema_change
        is_complete = bool(path) and load_receipt(Path(path)).acquired is not None
        return DataLoss(loss.message, loss.remedy, gap=loss.gap) if is_complete else loss

    def _is_explained(self, offset: StreamOffset) -> bool:
        """Return whether the receipt of option schemaChange shows that a reported loss is none."""
        from informix_cdc.table_changes import explains

        path = self._options.schema_change
        receipt = load_receipt(Path(path)) if path and offset.lost else None
        return offset.lost is not None and explains(receipt, offset, offset.lost)

    def _running(self, start: StreamOffset, planned: Position | None = None) -> CaptureThread:
        if self._capture is None:
            if start.is_started and start.lost is None:
                high_watermark = ReportedLosses.beside(self._options.spool_path).find(start.stream)
                start = replace(start, lost=high_watermark)
            self._require_sound(start)
            if self._is_explained(start):
                ReportedLosses.beside(self._options.spool_path).remove(start.stream)
                start = replace(start, lost=None)
            self._log_form(start)
            self._log_cost()
            self._restore_process = self._restore_process or settle_in_runner()
            log_to_standard_error(self._options.log_level)
            self._show_metrics()
            self._publisher.open()
            check = partial(require_same, self._schema)
            self._state = self._state.successor() if self._state else CaptureState()
            self._capture = CaptureThread(self._options, start, planned, check, self._state)
            self._capture.start()
        return self._capture

    def _show_metrics(self) -> None:
        """Open the metrics port, if requested, before anything is captured."""
        options = self._options
        if options.metrics_port and self._metrics is None:
            from informix_cdc.monitoring import MetricsServer

            choice = options.table_choice()
            tables = ",".join(map(str, (*choice.names, *choice.patterns)))
            self._metrics = MetricsServer(
                options.metrics_host,
                options.metrics_port,
                {"server": options.server, "database": options.database, "tables": tables},
                lambda: self._state,
                options.dialect_name,
            )

    def _store_mark(self, start: StreamOffset, loss: DataLoss) -> None:
        """Record a loss in a planned batch, whose offset is already in the checkpoint."""
        losses = ReportedLosses.beside(self._options.spool_path)
        try:
            losses.record(start.stream, start.source, self._to_remember(loss))
        except OSError as reason:
            LOSS_NOT_NOTED.log(logger, stream=start.stream, reason=reason)

    def _log_form(self, start: StreamOffset) -> None:
        """Log that rows have another form from here on."""
        if start.row_form not in ("", self._row_form):
            ROW_FORM_CHANGED.log(
                logger,
                stream=start.stream,
                after=show(start.position.commit),
                former=start.row_form,
                now=self._row_form,
            )

    def _log_cost(self) -> None:
        """Log the cost of rows of many tables, each of which carries NULLs for all others."""
        structs = sum(isinstance(field.dataType, StructType) for field in self._schema)
        shape = self._options.row_form().shape
        tables = max(len(self._options.table_names()), structs)
        if shape in _SHAPES_OF_STRUCTS and tables > _MANY_TABLES:
            values = values_in(self._schema)
            microseconds = round(values * _MICROSECONDS_A_VALUE)
            MANY_TABLES.log(
                logger, shape=shape, tables=tables, values=values, microseconds=microseconds
            )

    def _is_recovery(self, start: StreamOffset, end: StreamOffset) -> bool:
        """Return whether a range leads from a lost stream to the one that continues."""
        return start.stream != end.stream and not self._options.fail_on_data_loss

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
                folder.submit(Request(kind=RESYNC, tables=tuple(start.tables or ())))
            capture.stop()
            self._capture = None  # the next request for an offset starts a new capture
            return None
        return None if state.has_left(start.stream) else state.spool


def _holds(spool: Spool | None, up_to: Position) -> bool:
    return spool is not None and spool.manifest.high_watermark.place >= up_to.place
