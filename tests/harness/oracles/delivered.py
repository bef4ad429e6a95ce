"""What arrived in the sink and what the checkpoint says, compared with the workload's account."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from harness.servers.stores import Change, CommittedTransaction

Row = dict[str, Any]


def assert_delivered_exactly_once(
    sink: Path, checkpoint: Path, account: list[CommittedTransaction]
) -> None:
    """Check rows, order, transactions and offsets of a stream that has caught up."""
    batches = batches_of(sink)
    rows = [row for batch in batches for row in batch]
    places = [(row["_commit_version"], row["_change_ordinal"]) for row in rows]
    assert places == sorted(set(places)), "rows are repeated or out of order"
    _assert_transactions_are_whole(batches)
    assert _transactions_in(rows) == account
    _assert_offsets_only_move_forward(offsets_of(checkpoint))


def batches_of(sink: Path) -> list[list[Row]]:
    """Return the rows of every micro-batch in the order in which they were written."""
    folders = sorted(sink.glob("batch=*"), key=lambda path: int(path.name.partition("=")[2]))
    return [_rows_of(folder) for folder in folders]


def last_commit_of(sink: Path) -> int:
    """Return the place in the log up to which rows arrived."""
    return max((row["_commit_version"] for batch in batches_of(sink) for row in batch), default=0)


def offsets_of(checkpoint: Path) -> list[dict[str, Any]]:
    """Return the end of every planned batch; Spark's log has a version, its own line and then ours."""
    files = [checkpoint / "offsets" / str(number) for number in sorted(planned_batches(checkpoint))]
    texts = [file.read_text() for file in files]
    return [json.loads(text.splitlines()[2]) for text in texts]


def planned_batches(checkpoint: Path) -> set[int]:
    """Return the batches whose range Spark has noted."""
    return _numbers_in(checkpoint / "offsets")


def committed_batches(checkpoint: Path) -> set[int]:
    """Return the batches that Spark counts as done."""
    return _numbers_in(checkpoint / "commits")


def _numbers_in(folder: Path) -> set[int]:
    return {int(path.name) for path in folder.glob("*") if path.name.isdigit()}


def _rows_of(folder: Path) -> list[Row]:
    return [
        row for file in sorted(folder.glob("*.parquet")) for row in parquet.read_table(file).to_pylist()
    ]


def _transactions_in(rows: list[Row]) -> list[CommittedTransaction]:
    return [
        CommittedTransaction(commit, [_change(row) for row in group])
        for commit, group in groupby(rows, key=lambda row: int(row["_commit_version"]))
    ]


def _change(row: Row) -> Change:
    return row["_change_type"], (row["order_num"], row["customer_num"], row["note"], row["amount"])


def _assert_transactions_are_whole(batches: list[list[Row]]) -> None:
    commits = [{row["_commit_version"] for row in batch} for batch in batches]
    assert sum(map(len, commits)) == len(set().union(*commits)), "a transaction lies in two batches"


def _assert_offsets_only_move_forward(offsets: list[dict[str, Any]]) -> None:
    assert len({(offset["stream"], offset["source"]) for offset in offsets}) == 1
    for former, later in pairwise(offsets):
        assert former["commit"] <= later["commit"]
        assert former["restart"] <= later["restart"]
