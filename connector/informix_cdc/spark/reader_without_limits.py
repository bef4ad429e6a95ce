"""The stream reader for Spark 4.0 and 4.1, whose `latestOffset` has no arguments.

Rule: it only determines Spark's offset and the beginning of a run; the reader does everything else.
`make matrix` verifies which methods these versions call, in this order:

    a new checkpoint      latestOffset, initialOffset, partitions(initial, first)
    a restart             partitions(end, end) of the last planned batch; partitions(start, end) if that
                          batch was not finished; latestOffset, commit(end), partitions(end, next)
    AvailableNow          the same with one latestOffset, and so one new batch, in each run
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from informix_cdc.options import SourceOptions
from informix_cdc.reading import Trigger
from informix_cdc.spark.entry_points import one_line
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.offsets import NOT_STARTED


class ReaderWithoutLimits(InformixStreamReader):
    """Reads a stream if Spark neither limits a batch nor passes its start."""

    def __init__(self, options: SourceOptions, schema: StructType, *, has_jar: bool = False) -> None:
        super().__init__(options, schema, has_jar=has_jar)
        self._reached: Mapping[str, object] = NOT_STARTED.to_json()
        self._is_first = True

    @one_line
    def latestOffset(self) -> dict[str, object]:  # type: ignore[override]
        """Return the end of the next batch, within the limits of the options.

        The first batch of a run waits until a limit is reached, or until everything committed before
        the run is read: under Trigger.AvailableNow there is no other batch, unless option stopAtEnd
        is set.
        """
        limits = self._options.batch_limits()
        is_only = self._is_first and self._reached != NOT_STARTED.to_json()
        self._is_first = False
        trigger = Trigger.ONLY_BATCH if is_only else self._trigger
        self._reached = self._offset_after(self._reached, limits, trigger)
        return dict(self._reached)

    @one_line
    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        """Return the location of a range's rows, and record its end: the next batch begins there."""
        self._reached = end
        return super().partitions(start, end)
