"""Determine what a query needs to resume from its checkpoint.

Rule: no I/O; the checkpoint's offsets and the spool's manifest are passed as values. The decisions are
those of `Spool` and `InformixStreamReader` in a new process.
"""

from __future__ import annotations

from dataclasses import dataclass

from informix_capture_client.positions import log_number
from informix_checkpoints.offsets.offsets import StreamOffset
from informix_checkpoints.offsets.spark_checkpoint import SourceProgress
from informix_checkpoints.spool import Manifest


@dataclass(frozen=True, slots=True)
class BatchAgain:
    """A planned batch that the sink may not have: its number and its range of commits.

    Attributes:
        is_empty: whether it has no rows, so that nothing is captured for it.
    """

    number: int
    above: int
    up_to: int
    is_in_spool: bool
    is_empty: bool


@dataclass(frozen=True, slots=True)
class RestartNeeds:
    """The start of a new capture session, and the batch that is run again first.

    Attributes:
        restart: the position that the log must reach back to.
        batch: the planned batch that is run again, if any.
        is_spool_used: whether the existing spool is used.
    """

    restart: int
    batch: BatchAgain | None
    is_spool_used: bool

    @property
    def oldest_log(self) -> int:
        """The oldest logical log that must still exist, with all later ones."""
        return log_number(self.restart)


def restart_needs_of(progress: SourceProgress, spool: Manifest | None) -> RestartNeeds:
    """Return what a restart of one source needs.

    Args:
        progress: the source's progress in the checkpoint.
        spool: the manifest of the stream's folder under spoolPath, None if there is none.
    """
    start, planned = _captured_from(progress), progress.planned[1]
    spool_held = spool if spool is not None and _is_taken_over(spool, start) else None
    restart = start.position.restart
    if spool_held is not None:
        restart = max(restart, spool_held.high_watermark.restart)
    is_held = spool_held is not None and spool_held.high_watermark.place >= planned.position.place
    return RestartNeeds(restart, _batch_again(progress, is_held), spool_held is not None)


def _batch_again(progress: SourceProgress, is_in_spool: bool) -> BatchAgain | None:
    if not progress.is_run_again:
        return None
    number, planned = progress.planned
    above = (_range_begins(progress) or planned).position
    up_to = planned.position
    return BatchAgain(number, above.commit, up_to.commit, is_in_spool, above.place == up_to.place)


def _captured_from(progress: SourceProgress) -> StreamOffset:
    """Return the capture's start: before a batch with rows that is run again, otherwise after it."""
    planned, begins = progress.planned[1], _range_begins(progress)
    has_rows = begins is not None and begins.position.place < planned.position.place
    return begins if begins and has_rows and progress.is_run_again else planned


def _range_begins(progress: SourceProgress) -> StreamOffset | None:
    """Return the start offset of the planned batch; None for the first batch of a stream."""
    begins = progress.begins
    return begins if begins is not None and begins.stream == progress.planned[1].stream else None


def _is_taken_over(spool: Manifest, start: StreamOffset) -> bool:
    is_same = spool.stream == start.stream
    return is_same and spool.start.place <= start.position.place <= spool.end.place
