"""Keys have the same hash if and only if they are equal, however their columns were written."""

from __future__ import annotations

import tempfile
from datetime import date, datetime
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from informix_cdc.merge_on_read import key_index
from informix_cdc.merge_on_read.key_hashes import hashes_of
from informix_cdc.merge_on_read.key_index import KeyIndex, distinct, rows_by_file

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "integer": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "decimal": (
        pa.decimal128(38, 4),
        st.integers(-(10**37), 10**37).map(lambda n: Decimal(n).scaleb(-4)),
    ),
    "float": (pa.float64(), st.floats(allow_nan=False)),
    "date": (pa.date32(), st.dates()),
    "datetime": (pa.timestamp("us"), st.datetimes()),
    "text": (pa.string(), st.text(max_size=40)),
    "bytes": (pa.binary(), st.binary(max_size=20)),
    "boolean": (pa.bool_(), st.booleans()),
}


def hashed(values: list[Any], kind: pa.DataType) -> list[tuple[int, int]]:
    (high, low), is_whole = hashes_of(pa.table({"k": pa.array(values, kind)}), 7)
    assert is_whole.tolist() == [value is not None for value in values]
    return list(zip(high.tolist(), low.tolist(), strict=True))


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_hashes_are_equal_if_and_only_if_keys_are(name: str, data: st.DataObject) -> None:
    kind, values = KINDS[name]
    drawn = data.draw(st.lists(st.one_of(values, st.none()), min_size=1, max_size=12))
    found = hashed(drawn, kind)
    for one, other in combinations(range(len(drawn)), 2):
        if drawn[one] is not None and drawn[other] is not None:
            assert (found[one] == found[other]) == (drawn[one] == drawn[other])
    first = data.draw(st.integers(0, len(drawn)))
    whole = pa.chunked_array([pa.array(drawn[:first], kind), pa.array(drawn, kind).slice(first)])
    (high, low), _ = hashes_of(pa.table({"k": whole}), 7)
    assert list(zip(high.tolist(), low.tolist(), strict=True)) == found


WIDENED = [
    ([-5, 0, 32767], pa.int16(), pa.int64()),
    ([Decimal("1.50"), Decimal("-3.00")], pa.decimal128(5, 2), pa.decimal128(20, 2)),
    ([0.0, 1.5], pa.float32(), pa.float64()),
    (["a", ""], pa.string(), pa.large_string()),
    ([date(1, 1, 1)], pa.date32(), pa.date64()),
    ([datetime(2026, 1, 1)], pa.timestamp("ms"), pa.timestamp("us")),
]


@pytest.mark.parametrize(("values", "old", "new"), WIDENED, ids=str)
def test_a_wider_column_has_the_same_hashes(
    values: list[Any], old: pa.DataType, new: pa.DataType
) -> None:
    assert hashed(values, old) == hashed(values, new)


def test_zeros_are_one_key_and_so_are_numbers_that_are_none() -> None:
    nan, other = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    found = hashed([0.0, -0.0, nan, other, 1.0], pa.float64())
    assert (found[0], found[2]) == (found[1], found[3])
    assert len(set(found)) == 3


def test_parts_of_a_key_do_not_run_together() -> None:
    (high, _), _ = hashes_of(pa.table({"a": ["ab", "a", ""], "b": ["c", "bc", "abc"]}), 7)
    assert len(set(high.tolist())) == 3


@given(st.lists(st.lists(st.integers(0, 30), max_size=60), max_size=30))
def test_all_rows_of_a_key_are_found_through_merges_of_levels(files: list[list[int]]) -> None:
    index = KeyIndex(Path(tempfile.gettempdir()))
    gone = {number for number in range(len(files)) if number % 3 == 0}
    for number, keys in enumerate(files):
        hashes, _ = hashes_of(pa.table({"k": pa.array(keys, pa.int32())}), 7)
        index.add(hashes, number, np.arange(len(keys)))
        index.merge_levels(lambda of: ~np.isin(of, list(gone)))
    wanted = pa.table({"k": pa.array(range(0, 31, 7), pa.int64())})
    places, of = index.find(hashes_of(wanted, 7)[0])
    by_file = [(f, zip(rows.tolist(), of[at], strict=True)) for f, rows, at in rows_by_file(places)]
    pairs = [(f, row, key) for f, rows in by_file for row, key in rows]
    assert all(files[f][row] == 7 * key for f, row, key in pairs)
    found = {(f, row) for f, row, _ in pairs}
    expected = {(f, r) for f, keys in enumerate(files) for r, k in enumerate(keys) if k % 7 == 0}
    assert {each for each in expected if each[0] not in gone} <= found <= expected


def test_large_levels_of_two_tables_in_one_folder_do_not_mix() -> None:
    keys = np.arange(100_000)
    hashes, _ = hashes_of(pa.table({"k": keys}), 7)
    one, other = (KeyIndex(Path(tempfile.gettempdir())) for _ in range(2))
    one.add(hashes, 1, keys)
    other.add(hashes, 2, keys[::-1].copy())
    for index, number, rows in ((one, 1, [0, 1, 2]), (other, 2, [99_997, 99_998, 99_999])):
        ((file, found, _),) = rows_by_file(index.find((hashes[0][:3], hashes[1][:3]))[0])
        assert (file, found.tolist()) == (number, rows)


def test_the_last_row_of_a_key_counts() -> None:
    hashes, _ = hashes_of(pa.table({"k": [3, 1, 3, 2, 1]}), 7)
    assert distinct(hashes).tolist() == [2, 3, 4]
    nothing, _ = hashes_of(pa.table({"k": pa.array([], pa.int32())}), 7)
    assert distinct(nothing).tolist() == []


def test_an_index_is_as_large_as_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files come and go; entries of those that went go too, also from levels too large to be merged."""
    monkeypatch.setattr(key_index, "_MOST_ROWS", 1000)
    index, keys = KeyIndex(Path(tempfile.gettempdir())), np.arange(700)
    for number in range(60):
        hashes, _ = hashes_of(pa.table({"k": keys}), 7)
        index.add(hashes, number, keys)
        live = {number, number - 1}
        index.merge_levels(lambda of, live=live: np.isin(of, list(live)))  # type: ignore[misc]
    assert sum(each.shape[1] for each in index._levels) < 6 * 700
    found = {file for file, _, _ in rows_by_file(index.find((hashes[0][:5], hashes[1][:5]))[0])}
    assert found >= {58, 59}


@pytest.mark.parametrize("rows", [1000, 250, 190, 60])
def test_a_key_is_searched_in_few_levels(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels are merged as far as a part takes them, also if all of a size do not fit."""
    monkeypatch.setattr(key_index, "_MOST_ROWS", 1000)
    index = KeyIndex(Path(tempfile.gettempdir()))
    for number in range(20_000 // rows):
        hashes, _ = hashes_of(pa.table({"k": np.arange(rows) + number * rows}), 7)
        index.add(hashes, number, np.arange(rows))
        index.merge_levels(lambda of: np.ones(len(of), bool))
    # Parts are at least half full, and no size has as many levels as are merged.
    assert len(index._levels) <= 2 * 20_000 / 1000 + 3 * 8
    assert sum(each.shape[1] for each in index._levels) == 20_000 // rows * rows
