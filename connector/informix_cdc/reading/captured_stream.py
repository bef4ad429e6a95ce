"""The interface between a stream reader of Spark and a captured stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol

from informix_capture_client.choices import RowForm
from informix_cdc.executors import SegmentPlaces
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.spool import SegmentRange

Figure = int | float | bool | str | None


class Trigger(Enum):
    """When a run of a query ends.

    Attributes:
        CONTINUOUS: never.
        AVAILABLE_NOW: when everything committed before its start has been delivered.
        ONLY_BATCH: the same, but with a single batch (Trigger.Once).
    """

    CONTINUOUS = "continuous"
    AVAILABLE_NOW = "available-now"
    ONLY_BATCH = "only-batch"


class CapturedStream(Protocol):
    """A captured stream, for one query."""

    @property
    def form(self) -> RowForm:
        """What the query makes of stored changes."""
        ...

    def next_offset(
        self, start: StreamOffset, limits: BatchLimits, trigger: Trigger
    ) -> StreamOffset | None:
        """Wait for the end of the next batch; return None if nothing is new.

        Raises:
            InformixCdcError: the stream cannot continue, and no rows are left.
        """
        ...

    def ranges(self, start: StreamOffset, end: StreamOffset) -> Sequence[SegmentRange]:
        """Return the ranges of the rows of a batch, in commit order.

        Raises:
            InformixCdcError: the rows cannot be delivered.
        """
        ...

    @property
    def places(self) -> SegmentPlaces:
        """The places where executors find the ranges."""
        ...

    def commit(self, end: StreamOffset) -> None:
        """Release the rows up to an offset, which are not requested again."""
        ...

    def figures(self) -> Mapping[str, Figure] | None:
        """Return figures for Spark's progress; None if there are none yet."""
        ...

    def close(self) -> None:
        """Release everything; can be called twice."""
        ...
