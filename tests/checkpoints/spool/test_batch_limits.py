"""Batches end between transactions, at the limit that is reached first, with a pair that is valid."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from informix_capture_client.positions import Position
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.spool.batch_ends import end_of_batch
from informix_checkpoints.spool.manifest import Manifest
from informix_checkpoints.spool.segments import Segment, Transactions

START = Position(100, 90, (7,))
BYTES_PER_ROW = 10

# a segment is a list of transactions, of which only the number of rows matters
Content = list[list[int]]


def held(content: Content) -> tuple[Manifest, dict[str, Transactions]]:
    """A manifest of such segments: commits 110, 120, ...; restarts lie 5 below the last commit."""
    segments, inside, commit = [], {}, START.commit
    for number, counts in enumerate(content):
        commits = [commit + 10 * (n + 1) for n in range(len(counts))]
        commit = commits[-1]
        rows = sum(counts)
        position = Position(commit, commit - 5)
        size = rows * BYTES_PER_ROW
        segments.append(Segment(str(number), rows, size, 0, len(counts), commits[0], position))
        inside[str(number)] = Transactions(np.array(commits), np.array(counts))
    return Manifest("s", "d", START, START, segments=tuple(segments)), inside


def batches(content: Content, limits: BatchLimits) -> list[Position]:
    """Ask again and again, as Spark does."""
    manifest, inside = held(content)
    ends, reached = [], START
    while True:
        end = end_of_batch(manifest, reached, limits, lambda segment: inside[segment.file])
        if end == reached:
            return ends
        ends.append(end)
        reached = end


@pytest.mark.parametrize(
    ("limits", "commits"),
    [
        (BatchLimits(), [160]),
        (BatchLimits(rows=3), [110, 140, 150, 160]),
        (BatchLimits(rows=4), [120, 140, 150, 160]),
        (BatchLimits(rows=9), [140, 150, 160]),
        (BatchLimits(size_bytes=40), [120, 140, 150, 160]),
        (BatchLimits(rows=3, size_bytes=10_000), [110, 140, 150, 160]),
    ],
    ids=str,
)
def test_the_limit_that_is_reached_first_ends_a_batch(limits: BatchLimits, commits: list[int]) -> None:
    content = [[3, 1], [1, 1], [50], [2]]
    assert [position.commit for position in batches(content, limits)] == commits


def test_a_batch_that_ends_within_a_segment_keeps_the_restart_position_before_it() -> None:
    ends = batches([[1, 1], [1, 1]], BatchLimits(rows=1))
    assert ends == [Position(110, 90, (7,)), Position(120, 115), Position(130, 115), Position(140, 135)]


def test_nothing_new_is_the_start_itself() -> None:
    manifest, _ = held([[1]])
    start = Position(110, 200)
    assert (
        end_of_batch(
            manifest, start, BatchLimits(rows=1), lambda _: pytest.fail("looked into a segment")
        )
        is start
    )


@given(
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), max_size=5),
    st.builds(
        BatchLimits,
        st.none() | st.integers(1, 20),
        st.none() | st.integers(1, 200),
    ),
)
def test_batches_cover_everything_once_and_exceed_a_limit_by_one_transaction_alone_at_most(
    content: Content, limits: BatchLimits
) -> None:
    counts = [count for segment in content for count in segment]
    ends = [0, *((end.commit - START.commit) // 10 for end in batches(content, limits))]
    taken = [counts[first:end] for first, end in itertools.pairwise(ends)]
    assert [count for batch in taken for count in batch] == counts
    for batch in taken:
        fits = sum(batch) <= (limits.rows or 10**9) and sum(batch) * BYTES_PER_ROW <= (
            limits.size_bytes or 10**9
        )
        assert fits or len(batch) == 1
    restarts = [START, *batches(content, limits)]
    assert all(one.restart <= other.restart for one, other in itertools.pairwise(restarts))
