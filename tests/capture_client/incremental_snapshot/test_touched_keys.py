"""Which rows of a chunk the stream has already: those whose keys a transaction has touched."""

from __future__ import annotations

import datetime
import string
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capture.tables import make_table
from harness.runs.examples import examples
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption
from informix_capture_client.incremental_snapshot import SnapshotKey, TouchedKeys, TouchedTables
from informix_capture_client.shapes.announced_tables import table_schema

Row = tuple[Any, ...]
REPLACED = "\N{REPLACEMENT CHARACTER}"


def key_of(columns: str, replaceable: tuple[int, ...] = ()) -> SnapshotKey:
    table = make_table("orders", columns)
    return SnapshotKey(table.name, table.columns, replaceable)


def schema_of(key: SnapshotKey) -> pa.Schema:
    described = make_table("orders", ", ".join(f"{c.name} {c.type_text}" for c in key.columns))
    return table_schema(described, DecodeRules())


def columns_of(key: SnapshotKey, rows: Sequence[Row]) -> list[pa.Array]:
    return [pa.array([r[n] for r in rows], f.type) for n, f in enumerate(schema_of(key))]


def chunk_of(key: SnapshotKey, rows: Sequence[Row]) -> pa.Table:
    """Rows as a SELECT gives them: the key's columns, and one that is none of it."""
    names = [*key.names, "place"]
    return pa.table([*columns_of(key, rows), pa.array(range(len(rows)), pa.int64())], names)


def touch(keys: TouchedKeys, commit: int, *rows: Row) -> None:
    keys.touch(columns_of(keys.key, rows), np.full(len(rows), commit))


def left(keys: TouchedKeys, rows: Sequence[Row], low: int) -> list[int]:
    return keys.untouched(chunk_of(keys.key, rows), low)["place"].to_pylist()


ONE = key_of("id integer")
TWO = key_of("id integer, line smallint")


def test_a_row_whose_key_was_touched_is_left_out() -> None:
    keys = TouchedKeys(ONE, 10)
    touch(keys, 20, (2,), (9,))
    assert left(keys, [(1,), (2,), (3,)], 10) == [0, 2]


def test_what_was_touched_at_or_below_the_low_watermark_does_not_count() -> None:
    keys = TouchedKeys(ONE, 10)
    touch(keys, 20, (1,))
    touch(keys, 21, (2,))
    assert left(keys, [(1,), (2,)], 20) == [0]
    assert left(keys, [(1,), (2,)], 19) == []


def test_of_a_key_that_is_touched_often_the_last_commit_counts() -> None:
    keys = TouchedKeys(ONE, 10)
    for commit in (20, 40, 30):
        touch(keys, commit, (1,))
    assert left(keys, [(1,)], 39) == []
    assert left(keys, [(1,)], 40) == [0]


def test_a_key_of_several_columns_is_touched_as_a_whole_and_rows_keep_their_order() -> None:
    keys = TouchedKeys(TWO, 10)
    touch(keys, 20, (1, 2), (2, 1))
    rows = [(9, 9), (1, 1), (1, 2), (2, 1), (2, 2), (0, 0)]
    assert left(keys, rows, 10) == [0, 1, 4, 5]


def test_a_truncate_touches_every_key() -> None:
    keys = TouchedKeys(ONE, 10)
    keys.truncate(20)
    assert left(keys, [(1,), (2,)], 19) == []
    assert left(keys, [(1,), (2,)], 20) == [0, 1]


def test_an_older_truncate_takes_nothing_back() -> None:
    keys = TouchedKeys(ONE, 10)
    keys.truncate(20)
    keys.truncate(15)
    assert left(keys, [(1,)], 19) == []


@pytest.mark.parametrize("rows", [[], [(1,), (2,)]])
def test_without_a_touched_key_every_row_stays(rows: list[Row]) -> None:
    assert left(TouchedKeys(ONE, 10), rows, 10) == [n for n, _ in enumerate(rows)]


def test_nothing_is_said_of_what_was_before_or_is_forgotten() -> None:
    keys = TouchedKeys(ONE, 10)
    with pytest.raises(ValueError, match="known above 10, not above 9"):
        left(keys, [(1,)], 9)
    touch(keys, 20, (1,))
    keys.forget_up_to(15)
    assert left(keys, [(1,)], 15) == []
    with pytest.raises(ValueError, match="known above 15, not above 14"):
        left(keys, [(1,)], 14)


def test_what_is_forgotten_takes_no_room() -> None:
    keys = TouchedKeys(ONE, 10)
    touch(keys, 20, (1,), (2,))
    touch(keys, 30, (2,), (3,))
    keys.forget_up_to(20)
    assert len(keys) == 2
    keys.forget_up_to(19)  # an older place brings nothing back
    assert keys.complete_above == 20


@pytest.mark.slow
def test_a_key_that_changes_again_and_again_is_kept_once() -> None:
    keys = TouchedKeys(ONE, 0, most_keys=100)
    for commit in range(1, 2001):
        touch(keys, commit, (commit % 50,), (commit % 50,))
    assert keys.overflows == 0
    assert len(keys) <= 300
    assert left(keys, [(n,) for n in range(60)], 0) == list(range(50, 60))
    assert len(keys) == 50


def test_more_keys_than_may_be_kept_are_all_forgotten() -> None:
    keys = TouchedKeys(ONE, 0, most_keys=100)
    for commit in range(1, 203):
        touch(keys, commit, (commit,))
        if keys.overflows:
            break
    assert keys.overflows == 1
    assert keys.complete_above == commit
    assert len(keys) == 0
    touch(keys, commit, (7,))  # of the same commit, from the next batch of its rows
    touch(keys, commit + 1, (8,))
    assert left(keys, [(7,), (8,), (9,)], commit) == [0, 2]


def test_what_nobody_needs_is_forgotten_first() -> None:
    keys = TouchedKeys(ONE, 0, most_keys=100)
    for commit in range(1, 400):
        touch(keys, commit, (commit,))
        keys.needed_above = max(commit - 50, 0)
    assert keys.overflows == 0
    assert 0 < keys.complete_above < 399


def test_many_small_pieces_are_joined() -> None:
    keys = TouchedKeys(ONE, 0)
    for commit in range(1, 2000):
        touch(keys, commit, (commit,))
    assert len(keys._pieces) <= 257
    assert left(keys, [(5,), (0,)], 0) == [1]


def test_blanks_at_the_end_of_a_char_are_no_difference() -> None:
    keys = TouchedKeys(key_of("code char(8), tag nchar(4)"), 0)
    touch(keys, 1, ("a  ", "x"), ("b", "y   "))
    assert left(keys, [("a", "x "), ("b ", "y"), ("b", " y")], 0) == [2]


def test_blanks_at_the_end_of_a_varchar_are_one() -> None:
    keys = TouchedKeys(key_of("code varchar(8,0)"), 0)
    touch(keys, 1, ("a",))
    assert left(keys, [("a",), ("a ",)], 0) == [1]


@pytest.mark.parametrize("columns", ["code varchar(20,0)", "id integer, code char(20)"])
def test_a_row_is_not_left_out_for_a_key_that_may_only_look_like_its_own(columns: str) -> None:
    count = len(columns.split(", "))
    keys = TouchedKeys(key_of(columns, (count - 1,)), 0)
    bad, good = (*[1] * (count - 1), f"M{REPLACED}ller"), (*[1] * (count - 1), "Meyer")
    touch(keys, 1, bad, good)
    assert left(keys, [good], 0) == []
    with pytest.raises(BadOption, match="'badCharacters=replace' may make different keys equal"):
        left(keys, [bad], 0)


def test_a_replaced_character_that_nothing_has_touched_does_no_harm() -> None:
    keys = TouchedKeys(key_of("code varchar(20,0)", (0,)), 0)
    touch(keys, 1, ("other",))
    assert left(keys, [(f"M{REPLACED}ller",)], 0) == [0]


def test_a_character_that_is_the_database_s_own_is_no_replaced_one() -> None:
    keys = TouchedKeys(key_of("code varchar(20,0)"), 0)
    touch(keys, 1, (REPLACED,))
    assert left(keys, [(REPLACED,)], 0) == []


def test_tables_are_watched_by_their_numbers_and_left() -> None:
    tables, orders, items = TouchedTables(), TouchedKeys(ONE, 0), TouchedKeys(TWO, 0)
    assert tables.key_columns() == {}
    tables.watch(3, orders)
    tables.watch(1, items)
    assert tables.key_columns() == {3: ("id",), 1: ("id", "line")}
    tables.touch(3, columns_of(ONE, [(5,)]), np.array([1]))
    tables.truncate(1, 9)
    assert left(orders, [(5,), (6,)], 0) == [1]
    assert left(items, [(5, 1)], 0) == []
    tables.leave(3)
    tables.leave(3)
    assert tables.key_columns() == {1: ("id", "line")}


texts = st.text(string.ascii_letters + "äß€ ", max_size=4)
TYPES: dict[str, st.SearchStrategy[Any]] = {
    "smallint": st.integers(-3, 3),
    "integer": st.sampled_from([-(2**31) + 1, -1, 0, 1, 2**31 - 1]),
    "serial": st.integers(1, 6),
    "bigint": st.sampled_from([-(2**63) + 1, -1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
    "int8": st.sampled_from([-(2**63) + 1, 0, 2**53, 2**53 + 1]),
    "char(4)": texts,
    "nchar(4)": texts,
    "varchar(10,0)": texts,
    "nvarchar(10,0)": texts,
    "lvarchar(20)": texts,
    "boolean": st.booleans(),
    "date": st.dates(datetime.date(1999, 12, 30), datetime.date(2000, 1, 3)),
    "datetime year to fraction(5)": st.datetimes(
        datetime.datetime(2000, 1, 1), datetime.datetime(2000, 1, 1, 0, 0, 0, 30)
    ),
    "datetime hour to second": st.sampled_from(["10:00:00", "10:00:01", "23:59:59"]),
    "interval day to second": st.timedeltas(
        datetime.timedelta(seconds=-2), datetime.timedelta(seconds=2)
    ).map(lambda each: datetime.timedelta(seconds=round(each.total_seconds()))),
    "interval year to month": st.integers(-5, 5),
    "decimal(8,2)": st.integers(-300, 300).map(lambda cents: Decimal(cents).scaleb(-2)),
    "money(16,2)": st.integers(0, 5).map(lambda cents: Decimal(cents).scaleb(-2)),
    "decimal(8)": st.sampled_from(["1", "1.5", "-1E+20", "0"]),
}


def compared(kind: str, value: Any) -> Any:
    return value.rstrip(" ") if kind.startswith(("char", "nchar")) else value


def check_against_an_oracle(kinds: Sequence[str], data: st.DataObject) -> None:
    key = key_of(", ".join(f"k{n} {kind}" for n, kind in enumerate(kinds)))
    keys = TouchedKeys(key, 0, most_keys=data.draw(st.sampled_from([6, 1000])))
    values = st.tuples(*(TYPES[kind] for kind in kinds))
    low, last = data.draw(st.integers(0, 6)), dict[Row, int]()
    for commit, rows in enumerate(data.draw(st.lists(st.lists(values, max_size=4), max_size=6)), 1):
        touch(keys, commit, *rows)
        last |= {tuple(map(compared, kinds, row)): commit for row in rows}
    low = max(low, keys.complete_above)
    chunk = data.draw(st.lists(values, max_size=6))
    expected = [
        n for n, row in enumerate(chunk) if last.get(tuple(map(compared, kinds, row)), 0) <= low
    ]
    assert left(keys, chunk, low) == expected


@pytest.mark.parametrize("kind", TYPES)
@given(st.data())
@examples(40)
def test_one_column_of_each_type_is_dropped_as_a_naive_oracle_says(kind: str, data: Any) -> None:
    check_against_an_oracle([kind], data)


@given(st.lists(st.sampled_from(sorted(TYPES)), min_size=2, max_size=4), st.data())
@examples(200)
def test_keys_of_several_columns_are_dropped_as_a_naive_oracle_says(
    kinds: list[str], data: Any
) -> None:
    check_against_an_oracle(kinds, data)
