"""Divide the rows of a micro-batch into partitions.

Rule: few partitions: each costs Spark about 20 ms, and one task reads a million rows per second. Order
is kept: partition after partition, the rows are in commit order. Shares have equal sizes in bytes, so a
segment may be split inside a transaction; the batch as a whole still ends between two transactions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from informix_checkpoints.spool import SegmentRange


def share_out(
    ranges: Sequence[SegmentRange], min_partitions: int, max_partition_bytes: int
) -> list[list[SegmentRange]]:
    """Return the ranges in groups of about equal size, in order.

    Args:
        ranges: the ranges of a micro-batch, in commit order.
        min_partitions: approximate minimum number of groups; rows are never split.
        max_partition_bytes: approximate maximum size of a group in bytes of segment files.
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
    """Return the pieces of a range between bounds in bytes, each with its number; none is empty."""
    row_bytes = wanted.size_bytes / wanted.rows
    cuts = np.clip(np.ceil(bounds / row_bytes), 0, wanted.end - wanted.first).astype(np.int64)
    places = (cuts + wanted.first).tolist()
    return [
        (int(number), wanted.part(places[number], places[number + 1]))
        for number in np.flatnonzero(np.diff(cuts))
    ]
