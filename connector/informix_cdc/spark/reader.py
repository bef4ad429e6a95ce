"""The stream reader: offsets, partitions, read, commit.

Rule: the same offsets give the same rows, however often Spark asks. This object exists in three kinds
of process: the runner (one per query, all methods but `read`) owns the captured stream; a planning
process pickles a copy without the password; executors only call `read`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from informix_capture_client.errors import BadOption
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import MANY_TABLES, READ_IN_PYTHON, ROW_FORM_CHANGED
from informix_capture_client.positions import show
from informix_capture_client.shapes import RowDelivery, has_flat_rows
from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.executors import share_out
from informix_cdc.monitoring import log_to_standard_error
from informix_cdc.options import SourceOptions
from informix_cdc.reading import CapturedStream, Trigger
from informix_cdc.spark.entry_points import one_line, one_line_rows
from informix_cdc.spark.partitions import SpoolPartition
from informix_cdc.spark.runner_process import is_runner, settle_in_runner
from informix_cdc.spark.schema import deserialized, require_same, serialized, values_in
from informix_cdc.spark.versions import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import NOT_STARTED, StreamOffset

logger = logging.getLogger("informix_cdc.connector.stream_reader")  # a logger name, not a module

# Spark requests everything (ReadAllAvailable) with Trigger.Once only; other triggers pass this back.
_NO_LIMIT = (1 << 63) - 1
_SHAPES_OF_STRUCTS = ("rows", "envelope")
_MANY_TABLES = 20
# CPU in the Python worker for each value of a delivered row: measured with 100 and 500 tables of ten
# columns (docs/evidence/performance.md). The cost of NULLs in the JVM comes in addition.
_MICROSECONDS_A_VALUE = 0.03


class InformixStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream of committed changes through the spool.

    Args:
        options: with the password.
        schema: of delivered rows.
        has_jar: whether the reader in the JVM stands between Spark and this object.
        clock: of the capture, where it is the query's own.
    """

    def __init__(
        self,
        options: SourceOptions,
        schema: StructType,
        *,
        has_jar: bool = False,
        clock: Clock = MONOTONIC,
    ) -> None:
        self._options = options
        self._has_jar = has_jar
        self._planned: Mapping[str, object] | None = None  # the end of the last batch
        self._committed: Mapping[str, object] | None = None
        self._schema = schema
        self._delivered: bytes | None = None  # the schema of rows, if this was unpickled
        self._trigger = Trigger.AVAILABLE_NOW if options.batches.stop_at_end else Trigger.CONTINUOUS
        self._captured: CapturedStream | None = CapturedStream(
            options, partial(require_same, schema), self._on_start, clock
        )
        self._restore_process: Callable[[], None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Exclude the password and the thread: unpickled readers only read."""
        return {
            **self.__dict__,
            "_options": self._options.without_secrets(),
            "_schema": StructType(),
            "_delivered": self._row_schema,
            "_captured": None,
            "_restore_process": None,
        }

    @property
    def captured(self) -> CapturedStream:
        """The captured stream; only the runner has it."""
        assert self._captured is not None
        return self._captured

    def log_who_reads(self) -> None:
        """Log in Spark's runner, before Spark looks at what the stream supports, that there is no jar.

        Spark's refusal of real-time mode (STREAMING_REAL_TIME_MODE.INPUT_STREAM_NOT_SUPPORTED) names a
        class of its own, and ends this process before it could say more.
        """
        is_arrow = self._options.row_form().shape == "arrow"  # which the jar does not read
        if is_runner() and not self._has_jar and not is_arrow:
            log_to_standard_error(self._options.reports.log_level)
            READ_IN_PYTHON.log(
                logger,
                remedy="start Spark with spark.jars set to informix_cdc.jar(), or to the path that"
                " `informix-cdc jar` prints; `informix-cdc doctor` says if it is missing",
                requires_jar="trigger(realTime), asyncProgressTrackingEnabled",
            )

    def initialOffset(self) -> dict[str, object]:
        """Return the constant "not started": Spark never stores the start of its first batch."""
        return NOT_STARTED.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the maximum number of rows of a batch; the other limits are applied here."""
        return ReadMaxRows(self._options.batch_limits().rows or _NO_LIMIT)

    def prepareForTriggerAvailableNow(self) -> None:
        """Stop when everything committed before the query's start has been delivered."""
        self._trigger = Trigger.AVAILABLE_NOW

    @one_line
    def latestOffset(self, start: Mapping[str, object], limit: ReadLimit) -> dict[str, object]:
        """Return the end of the next batch, or `start` if nothing is new."""
        takes_all = isinstance(limit, ReadAllAvailable)
        limits = self._options.batch_limits()
        if takes_all:
            limits = BatchLimits(until_truncate=limits.until_truncate)
        if isinstance(limit, ReadMaxRows) and limit.max_rows < (limits.rows or _NO_LIMIT):
            # A range in real-time mode: Spark may end a batch within it, but for a chunk.
            limits = replace(limits, rows=limit.max_rows, chunk_alone=True)
        return self._offset_after(start, limits, Trigger.ONLY_BATCH if takes_all else self._trigger)

    def _offset_after(
        self, start: Mapping[str, object], limits: BatchLimits, trigger: Trigger
    ) -> dict[str, object]:
        failpoint("reader.latest_offset")
        end = self.captured.next_offset(StreamOffset.from_json(start), limits, trigger)
        if end is None:
            return dict(start)
        if end.lost is None:
            end = replace(end, row_form=self.captured.form.of_keys)
        return end.to_json()

    def reportLatestOffset(self) -> dict[str, object] | None:
        """Return figures of the capture for Spark's progress."""
        figures = self.captured.figures()
        return None if figures is None else dict(figures)

    @one_line
    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        """Return the location of a range's rows."""
        failpoint("reader.partitions")
        self._require_commits(start)
        self._planned = end
        ranges = self.captured.ranges(StreamOffset.from_json(start), StreamOffset.from_json(end))
        if not ranges:
            return []
        places, options = self.captured.places, self._options
        shares = share_out(ranges, options.batches.min_partitions, options.batches.max_partition_bytes)
        form = self.captured.form
        is_flat = has_flat_rows(deserialized(self._row_schema), form)
        return [SpoolPartition(tuple(ranges), places, form, is_flat) for ranges in shares]

    @one_line_rows
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; repeated calls yield the same rows."""
        assert isinstance(partition, SpoolPartition)
        log_to_standard_error(self._options.reports.log_level)
        delivery = RowDelivery(partition.form, deserialized(self._row_schema))
        failpoint("reader.read")
        whole_updates = partition.form.joins_images
        stored = partition.places.stored(partition.ranges, whole_updates=whole_updates)
        yield from delivery.rows(stored)

    @one_line
    def commit(self, end: Mapping[str, object]) -> None:
        """Release the rows up to `end`; Spark will not request them again."""
        failpoint("reader.commit")
        self._committed = end
        self.captured.commit(StreamOffset.from_json(end))

    def stop(self) -> None:
        """Close the captured stream; Spark rarely calls this, so SIGTERM does it too."""
        failpoint("reader.stop")
        self.captured.close()
        if self._restore_process is not None:
            self._restore_process()

    def _require_commits(self, start: Mapping[str, object]) -> None:
        """Refuse asynchronous progress without the jar, which shows in the order of Spark's calls.

        Spark commits a batch before it plans the next one, unless asyncProgressTrackingEnabled is set.
        Then it also commits after it has stopped the source, whose process has gone: the query stays
        registered, and cannot be started again in its session
        (AsyncProgressTrackingMicroBatchExecution.cleanup). The jar leaves that commit out.

        Raises:
            BadOption: names the option and the jar.
        """
        if not self._has_jar and is_runner() and self._planned == start != self._committed:
            raise BadOption(
                "the query has asyncProgressTrackingEnabled, which requires the jar: without it Spark"
                " cannot end such a query.",
                "Restart Spark, with the path that `informix-cdc jar` prints in its setting spark.jars,"
                " or start the query without that option.",
            )

    @property
    def _row_schema(self) -> bytes:
        """The schema of delivered rows, here and after unpickling."""
        return self._delivered or serialized(self._schema)

    def _on_start(self, start: StreamOffset) -> None:
        """Set up the process, and log what a user should know about the rows."""
        self._log_form(start)
        self._log_cost()
        self._restore_process = self._restore_process or settle_in_runner()
        log_to_standard_error(self._options.reports.log_level)

    def _log_form(self, start: StreamOffset) -> None:
        """Log that rows have another form from here on."""
        now = self.captured.form.of_keys
        if start.row_form not in ("", now):
            ROW_FORM_CHANGED.log(
                logger,
                stream=start.stream,
                after=show(start.position.commit),
                former=start.row_form,
                now=now,
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
