"""truncate=fail: all rows before a TRUNCATE are delivered, then the query fails and names its table."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from checkpoints.spool.spools import SCHEMA, START, TABLE, batch, fill, numbers, open_spool
from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import Position, show
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.spool.spool import Spool
from informix_checkpoints.table_states import TableState

FAIL = BatchLimits(until_truncate=True)
# A segment: transactions of so many rows, of which a negative number truncates after its rows; or one
# number: the rows of a chunk.
Content = list[list[int] | int]
Rows = list[int | None]
LIMITS = st.builds(
    BatchLimits,
    rows=st.none() | st.integers(1, 6),
    chunk_alone=st.booleans(),
)


class Story:
    """A spool with this content, and the commit of its first TRUNCATE."""

    def __init__(self, folder: Path, content: Content) -> None:
        self.spool = open_spool(folder, durable=False)
        self.refused = 0
        self._count = 0
        commit = START.commit
        for each in content:
            if isinstance(each, int):
                after, _ = self.spool.manifest.next_chunk()
                self.spool.append_chunk(SCHEMA, [self._batch(each, after.commit)] * bool(each), {})
                continue
            batches = [self._batch(rows, commit + 20 * n) for n, rows in enumerate(each, start=1)]
            commit += 20 * len(each)
            self.spool.append(SCHEMA, batches, Position(commit, 90))

    def _batch(self, rows: int, commit: int) -> pa.RecordBatch:
        of = range(self._count, self._count + abs(rows))
        self._count = of.stop
        if rows < 0 and not self.refused:
            self.refused = commit
        return batch(*((n, commit) for n in of), *[(None, commit)] * (rows < 0))


def delivered(
    spool: Spool, limits: BatchLimits = FAIL, start: Position = START
) -> tuple[list[Rows], DataLoss | None]:
    """Return the rows of batch after batch, as Spark asks for them, and the error that ends them."""
    found: list[Rows] = []
    try:
        while (end := spool.end_of_batch(start, limits)) != start:
            found.append(numbers(spool.between(start.place, end.place)))
            start = end
    except DataLoss as loss:
        return found, loss
    return found, None


def names(loss: DataLoss | None, commit: int) -> bool:
    """Tell whether an error names the table and the transaction of a TRUNCATE."""
    told = f"table {TABLE} was truncated by the transaction that committed at {show(commit)}."
    return loss is not None and loss.message == told


def before_the_first_truncate(content: Content) -> Content:
    for place, each in enumerate(content):
        if isinstance(each, list) and min(each) < 0:
            return [*content[:place], list(itertools.takewhile(lambda rows: rows > 0, each))]
    return content


@given(
    content=st.lists(
        st.lists(st.integers(1, 3) | st.integers(-3, -1), min_size=1, max_size=4) | st.integers(0, 3),
        max_size=5,
    ),
    limits=LIMITS,
)
@example(content=[[2, 1, -1]], limits=BatchLimits(rows=2))
def test_batches_are_those_of_a_spool_that_ends_before_the_first_truncate(
    content: Content, limits: BatchLimits
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(Path(folder, "all"), content)
        batches, loss = delivered(story.spool, replace(limits, until_truncate=True))
        wanted = Story(Path(folder, "before"), before_the_first_truncate(content))
        assert (batches, None) == delivered(wanted.spool, limits)
        assert loss is None if not story.refused else names(loss, story.refused)
        for each in (story, wanted):
            each.spool.close()


@pytest.mark.parametrize(
    ("content", "batches"),
    [
        ([[-1]], []),
        ([[2, -1, 1]], [[0, 1]]),
        ([[1, -1]], [[0]]),
        ([[2], [-1, 1]], [[0, 1]]),
        ([2, [1, -2]], [[0, 1, 2]]),
        ([[1], 2, [-1]], [[0, 1, 2]]),
    ],
    ids=["alone", "within", "at the end", "at the begin", "after a chunk", "next to a chunk"],
)
def test_a_batch_ends_before_the_transaction_and_the_next_one_fails(
    content: Content, batches: list[Rows], tmp_path: Path
) -> None:
    story = Story(tmp_path, content)
    found, loss = delivered(story.spool)
    assert found == batches
    assert loss is not None
    assert names(loss, story.refused)
    assert story.refused - 10 < loss.facts["sequence_number"] < story.refused  # of its own record
    assert "option truncate" in loss.remedy


def test_a_query_that_has_got_a_truncate_may_refuse_those_after_it(tmp_path: Path) -> None:
    spool = Story(tmp_path, [[1, -1, 1, -1]]).spool
    assert delivered(spool, BatchLimits()) == ([[0, 1, None, 2, 3, None]], None)
    end = spool.end_of_batch(START, BatchLimits(rows=3))
    batches, loss = delivered(spool, start=end)
    assert (batches, names(loss, 180)) == ([[2]], True)


def test_a_truncate_that_begins_a_snapshot_is_not_refused(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    spool.append_chunk(SCHEMA, [batch((None, 141))], {})
    spool.append(SCHEMA, [batch((6, 150))], Position(150, 145))
    assert delivered(spool) == ([[1, 2, 3, 4, 5, None, 6]], None)


def test_a_batch_ends_where_tables_join_before_it_ends_at_a_truncate(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    spool.change_tables({"informix.late": TableState("l", 140)}, Position(140, 135))
    spool.append(SCHEMA, [batch((6, 150), (None, 160))], Position(160, 155))
    batches, loss = delivered(spool)
    assert (batches, names(loss, 160)) == ([[1, 2, 3, 4, 5], [], [6]], True)
