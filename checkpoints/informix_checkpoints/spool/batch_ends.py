"""Determine where a micro-batch ends in the spool.

Rule: a batch ends between two transactions. The first limit that is reached ends it; a transaction that
is larger than a limit is a batch alone. A batch may end within a segment. The position there consists
of the commit reached and the restart position of an earlier pair: {C, R} valid makes {C', R} valid for
every C' above C, since what commits above C' also commits above C (docs/design.md, section 5). A chunk
is never split. A batch also ends where tables join or leave, so that no batch has two lists of them
(decision 0071).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from informix_capture_client.positions import Position
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.spool.manifest import Manifest
from informix_checkpoints.spool.segments import Segment, Transactions, Truncate


@dataclass(slots=True)
class _Room:
    rows: float
    size_bytes: float
    is_untouched: bool = True

    @classmethod
    def of(cls, limits: BatchLimits) -> _Room:
        given = (limits.rows, limits.size_bytes)
        rows, size_bytes = (float("inf") if most is None else most for most in given)
        return cls(rows, size_bytes)

    def fitting(self, counts: NDArray[np.int64], row_bytes: float) -> int:
        """Return how many of the next transactions fit; the first always fits an empty batch."""
        rows = np.cumsum(counts)
        fits = (rows <= self.rows) & (rows * row_bytes <= self.size_bytes)
        number = int(np.count_nonzero(fits))
        return max(number, 1) if self.is_untouched else number

    def take(self, rows: int, size_bytes: float) -> None:
        self.rows -= rows
        self.size_bytes -= size_bytes
        self.is_untouched = False

    def holds(self, segment: Segment) -> bool:
        return segment.rows <= self.rows and segment.size_bytes <= self.size_bytes


def end_of_batch(
    manifest: Manifest,
    start: Position,
    limits: BatchLimits,
    transactions_of: Callable[[Segment], Transactions],
    refused: Truncate | None = None,
) -> Position:
    """Return the end position of a batch that begins at `start`; `start` if there is nothing new.

    Args:
        manifest: of the spool.
        start: the end of the previous batch.
        limits: of the batch.
        transactions_of: reads the transactions of a segment; called only if a batch ends within it.
        refused: a TRUNCATE above `start`, before whose transaction the batch must end.
    """
    room, reached = _Room.of(limits), start
    change = next((epoch for epoch in manifest.changes if epoch.position.place > start.place), None)
    up_to = (1 << 63, 0) if change is None else change.position.place
    segments = [s for s in manifest.segments_above(start.place) if s.place < up_to]
    if change is not None and not segments:
        return change.position
    for segment in segments:
        if limits.chunk_alone and segment.chunk:
            return segment.position if room.is_untouched else reached
        is_whole = segment.first_place > start.place
        if refused is not None and not segment.chunk and segment.last_commit >= refused.commit:
            last = _last_before(segment, start, room, transactions_of(segment), refused)
            return _within(segment, reached, last)
        if is_whole and (room.holds(segment) or (segment.chunk and room.is_untouched)):
            room.take(segment.rows, segment.size_bytes)
            reached = segment.position
            continue
        if segment.chunk:
            return reached
        last = _last_commit(segment, start.commit, room, transactions_of(segment))
        if last == segment.last_commit:
            reached = segment.position
            continue
        return _within(segment, reached, last)
    return reached


def _within(segment: Segment, reached: Position, last: int | None) -> Position:
    """Return the position after a transaction of a segment; None: where it was."""
    return reached if last is None else replace(reached, commit=last, chunk=segment.position.chunk)


def _last_before(
    segment: Segment, start: Position, room: _Room, committed: Transactions, refused: Truncate
) -> int | None:
    """Return the commit of the last transaction of a segment that fits before a refused TRUNCATE."""
    is_before = committed.commits < refused.commit
    before = Transactions(committed.commits[is_before], committed.counts[is_before])
    if not len(before.commits) or before.commits[-1] <= start.commit:
        return None
    return _last_commit(segment, start.commit, room, before)


def _last_commit(segment: Segment, after: int, room: _Room, committed: Transactions) -> int | None:
    """Return the commit of the last transaction of a segment that fits."""
    begin = int(np.searchsorted(committed.commits, after, side="right"))
    counts = committed.counts[begin:]
    if not len(counts):  # the last of its transactions has no rows: a TRUNCATE that is ignored
        return segment.last_commit
    row_bytes = segment.size_bytes / segment.rows
    number = room.fitting(counts, row_bytes)
    if number == 0:
        return None
    rows = int(counts[:number].sum())
    room.take(rows, rows * row_bytes)
    return int(committed.commits[begin + number - 1])
