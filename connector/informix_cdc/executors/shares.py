"""Share the rows of a micro-batch out to tasks.

Rule: few partitions: each costs Spark about 20 ms, and one task reads a million rows a second. Order
is kept: partition after partition, the rows are in commit order. Shares are equal in bytes, so a
segment may be cut between two rows of a transaction; the batch as a whole still ends between two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from informix_checkpoints.spool import SegmentRange


def share_out(
    ranges: Sequence[SegmentRange], min_partitions: int, max_partition_bytes: int
) -> list[list[SegmentRange]]:
    """Return the ranges in groups of about equal size, in their order.

    Args:
        ranges: what a micro-batch reads, in commit order.
        min_partitions: about how many groups there are at least; a row is never cut.
        max_partition_bytes: about how many bytes of segment files a group has at most.
    """
    total = sum(wanted.estimated_bytes for wanted in ranges)
    rows = sum(wanted.end - wanted.first for wanted in ranges)
    count = min(max(min_partitions, math.ceil(total / max_partition_bytes)), rows)
    bounds = np.linspace(0, total, count + 1)
    bounds[:1], bounds[count:] = -np.inf, np.inf  # rounding must not lose a row at either end
    groups: list[list[SegmentRange]] = [[] for _ in range(count)]
    before = 0.0
    for wanted in ranges:
        for number, piece in _cut(wanted, bounds - before):
            groups[number].append(piece)
        before += wanted.estimated_bytes
    return [group for group in groups if group]


def _cut(wanted: SegmentRange, bounds: np.ndarray) -> list[tuple[int, SegmentRange]]:
    """Return the pieces of a range between bounds in bytes, each with its number, none empty."""
    row_bytes = wanted.size_bytes / wanted.rows
    cuts = np.clip(np.ceil(bounds / row_bytes), 0, wanted.end - wanted.first).astype(np.int64)
    places = (cuts + wanted.first).tolist()
    return [
        (int(number), wanted.part(places[number], places[number + 1]))
        for number in np.flatnonzero(np.diff(cuts))
    ]
