"""Chunks between transactions: any cut into batches gives the same rows, and versions are unique.

The model of the design, over the real spool: transactions and chunks in any order, several chunks where
the log has not moved, and batches that end anywhere, also between two chunks of one version.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.spool.spools import SCHEMA, START, batch, numbers, open_spool
from informix_capture_client.positions import Position
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.spool.spool import Spool
from informix_checkpoints.table_states import SnapshotState, TableState

TABLE = "informix.items"
# a chunk's rows, or how many rows each transaction of a segment has
Step = int | list[int] | str
STEPS = st.lists(
    st.one_of(
        st.integers(0, 3),
        st.lists(st.integers(1, 3), min_size=1, max_size=4),
        st.sampled_from(["quiet", "again", "trim"]),
    ),
    max_size=12,
)
LIMITS = st.builds(BatchLimits, st.none() | st.integers(1, 6), st.none(), st.booleans())


class Row(NamedTuple):
    n: int
    version: int
    ordinal: int


class Story:
    """A spool, and all that was put into it."""

    def __init__(self, folder: Path) -> None:
        self.spool = open_spool(folder / "spool")
        self.folder = folder
        self.rows: list[Row] = []
        self.commit = START.commit
        self.chunks = 0

    def play(self, steps: list[Step]) -> None:
        for step in steps:
            if isinstance(step, int):
                self.chunk(step)
            elif isinstance(step, list):
                self.transactions(step)
            else:
                {"quiet": self.quiet, "again": self.again, "trim": lambda: None}[step]()

    def chunk(self, count: int) -> None:
        after, ordinal = self.spool.manifest.next_chunk()
        self.chunks += 1
        rows = [Row(len(self.rows) + k, after.commit, ordinal + k) for k in range(count)]
        batches = [batch(*((row.n, row.version) for row in rows))] if rows else []
        segment = self.spool.append_chunk(SCHEMA, batches, {TABLE: state(self.chunks)})
        assert (segment.rows, segment.chunk, segment.transactions) == (count, self.chunks, bool(count))
        self.rows += rows

    def transactions(self, counts: list[int]) -> None:
        rows = []
        for count in counts:
            self.commit += 24  # a record is longer than a byte
            rows += [Row(len(self.rows) + len(rows) + k, self.commit, k) for k in range(count)]
        self.spool.append(SCHEMA, [batch(*((r.n, r.version) for r in rows))], Position(self.commit, 90))
        self.rows += rows

    def quiet(self) -> None:
        """A pair of the log that knows nothing of chunks."""
        self.spool.advance(Position(self.commit, 95))

    def again(self) -> None:
        """Another process: what lies behind the last rows is not on the disk."""
        self.spool.close()
        self.spool = open_spool(self.folder / "spool")
        self.chunks = self.spool.manifest.high_watermark.chunk

    def batches(self, limits: BatchLimits) -> Iterator[Position]:
        reached = START
        while (end := self.spool.end_of_batch(reached, limits)) != reached:
            yield end
            reached = end


def state(chunks: int) -> TableState:
    return TableState("d", 0, SnapshotState((str(chunks),), chunks, key=("id",)))


@given(STEPS, LIMITS)
def test_any_batches_give_the_rows_once_in_their_order_and_again(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], limits: BatchLimits
) -> None:
    story = Story(tmp_path_factory.mktemp("places"))
    story.play(steps)
    keys = [(row.version, row.ordinal) for row in story.rows]
    assert keys == sorted(set(keys))  # unique, and rising
    ends = [START, *story.batches(limits)]
    for _ in range(2):
        found = [
            numbers(story.spool.between(after.place, up_to.place))
            for after, up_to in itertools.pairwise(ends)
        ]
        assert list(itertools.chain(*found)) == [row.n for row in story.rows]
    assert all(found) or not story.rows or limits.chunk_alone  # an empty chunk is one too
    assert all(a.restart <= b.restart for a, b in itertools.pairwise(ends))
    story.spool.close()


@given(STEPS, st.integers(0, 30))
def test_what_is_known_of_a_table_is_what_the_chunks_up_to_a_place_have_made(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], trimmed: int
) -> None:
    story = Story(tmp_path_factory.mktemp("states"))
    story.play(steps)
    ends = list(story.batches(BatchLimits(rows=1)))
    for end in ends[:trimmed]:
        story.spool.trim(end.place)
    for end in ends[trimmed:]:
        known = story.spool.manifest.tables_at(end).get(TABLE)
        assert known == (state(end.chunk) if end.chunk else None)
    assert story.spool.manifest.tables_at(story.spool.manifest.high_watermark).get(TABLE) == (
        state(story.chunks) if story.chunks else None
    )
    story.spool.close()


def test_a_limit_between_two_chunks_at_one_commit_ends_a_batch_there(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.play([[1], 2, 2, [1]])
    assert [row[1:] for row in story.rows[1:5]] == [(125, 0), (125, 1), (125, 2), (125, 3)]
    ends = list(story.batches(BatchLimits(rows=3)))
    assert [end.place for end in ends] == [(125, 1), (148, 2)]
    first, second = [story.spool.between(*places) for places in pairs(ends)]
    assert (numbers(first), numbers(second)) == ([0, 1, 2], [3, 4, 5])


def pairs(ends: list[Position]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return [(a.place, b.place) for a, b in itertools.pairwise([START, *ends])]


def test_a_chunk_is_taken_whole_although_it_is_above_the_limit(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.play([[1], 3, [1]])
    ends = list(story.batches(BatchLimits(rows=2)))
    assert [numbers(story.spool.between(*places)) for places in pairs(ends)] == [[0], [1, 2, 3], [4]]


def test_a_chunk_is_a_batch_alone_where_the_limits_say_so(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.play([[1], [2], 3, 1, [1]])
    ends = list(story.batches(BatchLimits(rows=100, chunk_alone=True)))
    found = [numbers(story.spool.between(*places)) for places in pairs(ends)]
    assert found == [[0, 1, 2], [3, 4, 5], [6], [7]]


def test_a_chunk_has_a_version_above_every_commit_before_it_and_below_every_later_one(
    tmp_path: Path,
) -> None:
    story = Story(tmp_path)
    story.play([[1], 1, 1, [1], 1])
    assert [row.version for row in story.rows] == [124, 125, 125, 148, 149]


def test_a_chunk_keeps_its_version_apart_when_all_before_it_is_trimmed_and_the_process_is_another(
    tmp_path: Path,
) -> None:
    story = Story(tmp_path)
    story.play([[1], 2])
    story.spool.trim(story.spool.manifest.end.place)
    story.again()
    again = open_again(story)
    assert again.manifest.next_chunk() == (Position(125, 90, chunk=2), 2)


def open_again(story: Story) -> Spool:
    story.spool.close()
    return open_spool(story.folder / "spool", Position(125, 90, chunk=1))


def test_a_pair_of_the_log_does_not_move_the_mark_back_before_a_chunk(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.play([[1], 1, "quiet"])
    assert story.spool.manifest.high_watermark == Position(125, 95, chunk=1)


def test_tables_join_between_two_batches_at_a_place_of_their_own(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.play([[1], [1]])
    joined = {"informix.late": TableState("l", 148)}
    story.spool.change_tables(joined, Position(148, 70))
    story.play([[1]])
    ends = list(story.batches(BatchLimits()))
    assert [end.place for end in ends] == [(148, 0), (148, 1), (172, 1)]
    assert ends[1].restart == 70  # for a table that has joined, later is not as good
    assert [sorted(story.spool.manifest.tables_at(end)) for end in ends] == [
        [],
        ["informix.late"],
        ["informix.late"],
    ]
    assert story.spool.between(ends[0].place, ends[1].place) == []


def test_a_restart_position_of_before_a_table_joined_is_not_its_own(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.play([[1]])
    story.spool.change_tables({"informix.late": TableState("l", 124)}, Position(124, 70))
    story.spool.close()
    again = open_spool(tmp_path / "spool", Position(124, 90))
    assert again.manifest.high_watermark == Position(124, 70, chunk=1)
    assert list(again.manifest.present_tables) == ["informix.late"]


def test_rows_of_a_table_that_is_not_captured_any_more_are_left(tmp_path: Path) -> None:
    first = open_spool(tmp_path, tables={"a": TableState("1"), "b": TableState("2")})
    first.append(SCHEMA, [batch((1, 110))], Position(110, 105))
    first.close()
    again = open_spool(tmp_path, tables={"a": TableState("1"), "b": TableState("2")}, captured=["a"])
    assert (again.manifest.row_count, again.manifest.high_watermark) == (0, START)
    again.change_tables({"b": None})
    again.append(SCHEMA, [batch((1, 110))], Position(110, 105))
    again.close()
    left = Position(100, 90, chunk=1)
    assert (
        open_spool(tmp_path, left, tables={"a": TableState("1")}, captured=["a"]).manifest.row_count
        == 1
    )
