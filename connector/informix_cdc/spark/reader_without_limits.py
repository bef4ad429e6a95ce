"""The stream reader for Spark 4.0 and 4.1, whose `latestOffset` is told nothing.

Rule: this only finds out where Spark stands and when a run begins; all else is the reader's. What
those Sparks call, in which order, is held by `make matrix`:

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
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.offsets import NOT_STARTED


class ReaderWithoutLimits(InformixStreamReader):
    """Reads a stream where Spark neither limits a batch nor says where it begins."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._reached: Mapping[str, object] = NOT_STARTED.to_json()
        self._is_first = True

    def latestOffset(self) -> dict[str, object]:  # type: ignore[override]
        """Return how far the next batch goes: never more than the options' limits allow.

        The first batch of a run waits until a limit is reached, or all is read that was committed
        before the run: under Trigger.AvailableNow there will be no other.
        """
        limits = self._options.batch_limits()
        is_only = self._is_first and self._reached != NOT_STARTED.to_json()
        self._is_first = False
        self._reached = self._offset_after(self._reached, limits, is_only=is_only)
        return dict(self._reached)

    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        """Return where the rows of a range lie, and note its end: the next batch begins there."""
        self._reached = end
        return super().partitions(start, end)
