"""Chunks of texts are compared with a target however the server orders characters below the blank."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.lake.rows_of_batches import Change, batch_row
from informix_cdc.lake.delta_tables import DeltaTarget
from informix_cdc.lake.intervals import KeyInterval, compare
from informix_cdc.lake.table_changes import TableChanges

COLUMNS = {"id": pa.string(), "note": pa.string()}
ORDERS: dict[str, Callable[[str], str]] = {"padded": lambda text: text.ljust(9), "plain": str}
TEXTS = st.sets(st.text(" \t\rAB", max_size=4).map(lambda text: text.rstrip(" ")), max_size=9)


def rows(keys: Sequence[str]) -> pa.Table:
    return pa.table({"id": [*keys], "note": [None] * len(keys)}, pa.schema([*COLUMNS.items()]))


def differences(
    chunks: Sequence[Sequence[str]], target_rows: Callable[[KeyInterval], pa.Table]
) -> set[tuple[str, str]]:
    """Return what differs in all chunks of a table, and its key."""
    found = set()
    for number, chunk in enumerate(chunks):
        low = chunks[number - 1][-1] if number else None
        high = chunk[-1] if number < len(chunks) - 1 else None
        inserts: list[Change] = [("insert", 1, {"id": key, "note": None}) for key in chunk]
        start: Change = ("verify_start", 1, {"id": low, "note": None})
        end: Change = ("range_end", 1, {"id": high, "note": None})
        delivered = batch_row("informix.orders", COLUMNS, [start, *inserts, end])
        changes = TableChanges.of([delivered["arrow"]])
        for each in compare(changes, ["id"], target_rows).differences:
            found.add((each.what, json.loads(each.key)["id"]))
    return found


def chunks_of(keys: set[str], order: str, size: int) -> list[list[str]]:
    ordered = sorted(keys, key=ORDERS[order])
    return [ordered[n : n + size] for n in range(0, len(ordered), size)] or [[]]


@given(TEXTS, TEXTS, TEXTS, st.sampled_from([*ORDERS]), st.integers(1, 4))
def test_no_row_is_reported_that_is_equal_and_each_that_is_missing(
    equal: set[str], missing: set[str], extra: set[str], order: str, size: int
) -> None:
    missing, extra = missing - equal, extra - equal - missing
    there = rows([*equal, *extra])
    found = differences(chunks_of(equal | missing, order, size), lambda _: there)
    assert {key for what, key in found if what == "missing"} == missing
    ghosts = {key for what, key in found if what == "extra"}
    assert len(found) == len(missing) + len(ghosts)
    assert ghosts <= extra
    ends = [chunk[-1] for chunk in chunks_of(equal | missing, order, size)[:-1]]
    assert ghosts >= {
        key
        for key in extra
        if all((key <= end) == (ORDERS["padded"](key) <= ORDERS["padded"](end)) for end in ends)
    }


@pytest.mark.parametrize("order", ORDERS)
def test_delta_returns_the_rows_of_a_chunk_without_a_known_order(order: str, tmp_path: Path) -> None:
    keys = {"A1", "A1\r", "A1\tb", "A1 \n", "A2", "B", "\tC"}
    target = DeltaTarget(str(tmp_path / "t"), "informix-cdc/1")
    target.create(rows([]).schema, "t", "")
    target.append(rows([*keys, "A3"]), 1)
    read = partial(target.rows_between, open_column=None)
    assert read(KeyInterval(("id",), (), ())).num_rows == 8
    DeltaTarget(target.place, target.application).append(rows(["A4"]), 2)  # another process
    for size in range(1, 5):
        assert differences(chunks_of(keys, order, size), read) == {("extra", "A3"), ("extra", "A4")}
