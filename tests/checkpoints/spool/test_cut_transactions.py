"""What is left of a range after Spark has ended a batch within a transaction."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.spool.spools import SCHEMA, START, batch, fill, numbers, open_spool
from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import Position
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.spool import CutTransaction

FIRST = START.commit + 10
SIZES = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=4)


@given(SIZES, st.data())
def test_the_rest_begins_after_the_last_delivered_row(
    sizes: list[list[int]], data: st.DataObject
) -> None:
    """Each list is a segment, each number a transaction of so many rows."""
    rows = list[tuple[int, int]]()
    commits = list[int]()
    with tempfile.TemporaryDirectory() as folder:
        spool = open_spool(Path(folder), durable=False)
        for segment in sizes:
            here = list[tuple[int, int]]()
            for count in segment:
                commits.append(FIRST + 10 * len(commits))
                first = len(rows) + len(here)
                here += [(first + number, commits[-1]) for number in range(count)]
            spool.append(SCHEMA, [batch(*here)], Position(commits[-1], 90))
            rows += here
        delivered = data.draw(st.integers(1, len(rows)), "delivered rows")
        commit = rows[delivered - 1][1]
        cut = CutTransaction(commit, sum(of == commit for _, of in rows[:delivered]))
        start = data.draw(st.sampled_from([START.commit, *(c for c in commits if c < commit)]), "start")
        end = data.draw(st.sampled_from(commits), "end")
        found = numbers(spool.between((start, 0), (max(start, end), 0), cut))
        assert found == [n for n, of in rows[delivered:] if of <= end]
        spool.close()


def test_a_chunk_is_delivered_again(tmp_path: Path) -> None:
    """Its rows may be others when it is read again."""
    spool = open_spool(tmp_path)
    spool.append_chunk(SCHEMA, [batch((8, 101), (9, 101))], {})
    fill(spool)
    spool.append_chunk(SCHEMA, [batch((6, 141))], {})
    assert numbers(spool.between((100, 0), (141, 2), CutTransaction(130, 1))) == [8, 9, 5, 6]


def test_a_transaction_with_fewer_rows_than_were_delivered_is_refused(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    assert numbers(spool.between((100, 0), (140, 0), CutTransaction(110, 2))) == [3, 4, 5]
    with pytest.raises(
        DataLoss, match=r"3 changes of the transaction at 0:0x6e were delivered.* has 2"
    ):
        spool.between((100, 0), (140, 0), CutTransaction(110, 3))


def test_a_batch_that_ends_before_the_cut_has_no_rows(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    end = spool.end_of_batch(START, BatchLimits(rows=1))
    assert end.commit == 110
    assert spool.between(START.place, end.place, CutTransaction(130, 1)) == []
