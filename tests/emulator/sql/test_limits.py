"""Statements that are too much: each is refused by a number, and the session goes on."""

from __future__ import annotations

import pytest

from emulator.sql.asking import Asked
from informix_emulator.sql import reading

COLUMNS = ", ".join(f"c{n} integer" for n in range(3000))


def nested_case(depth: int) -> str:
    text = "1"
    for _ in range(depth):
        text = f"(case when {text} = 1 then 1 else 0 end)"
    return text


@pytest.mark.parametrize(
    ("text", "native"),
    [
        (f"CREATE TABLE wide ({COLUMNS})", -201),
        (f"CREATE TEMP TABLE wide ({COLUMNS})", -201),
        (f"SELECT tabid FROM systables WHERE {nested_case(60)} = 1", -201),
        (f"SELECT tabid FROM systables WHERE {'(' * 2000}1{')' * 2000} = 1", -201),
        (f"SELECT tabid FROM systables WHERE {'(' * 2000}tabid = 1{')' * 2000}", -201),
        ("SELECT tabid /* FROM systables", -201),
        (f"SELECT tabid FROM systables {'/*' * 300_000}", -201),
        (f"SELECT FIRST {'0' * 5000}1 tabid FROM systables", -201),
        (f"SELECT tabid + {'9' * 5000} FROM systables", -201),
        (f"SELECT FIRST {2**63} tabid FROM systables", -201),
        (f"SELECT 1{'::int' * 60_000} FROM systables WHERE tabid = 1", -201),
        (f"SELECT '{'a' * 40_000}' FROM systables", -1279),
        ("SELECT datetime (2020 '' 1) year to month FROM systables", -1264),
        ("CREATE TABLE wide (a char(2147483648))", -201),
        ("CREATE TABLE wide (a lvarchar(32740))", -201),
        ("CREATE TABLE wide (a char(32000), b char(32000))", -201),
        ("CREATE TEMP TABLE wide (a char(32000), b char(32000))", -201),
    ],
    ids=[
        *("columns", "columns of a temporary table", "case", "parentheses", "conditions"),
        *("an open comment", "open comments", "a number of rows", "digits"),
        *("rows beyond 64 bits", "pieces", "a text", "an empty piece of a moment"),
        *("a char", "an lvarchar", "a row", "a row of a temporary table"),
    ],
)
def test_what_is_too_much_is_refused(db: Asked, text: str, native: int) -> None:
    assert db.refused(text).native == native
    db.run("CREATE TABLE wide (id integer)")
    assert db.value("1 + 1") == 2


@pytest.mark.parametrize("depth", [8, 16])
def test_nested_cases_are_read_in_their_order(db: Asked, depth: int) -> None:
    """Each level was read twice, as a condition and then as an expression: 18 took over a minute."""
    text = f"SELECT tabid FROM systables WHERE {nested_case(depth)} = 1 AND tabid = 1"
    assert db.rows(text) == [(1,)]


@pytest.mark.parametrize("depth", [1, 40])
def test_parentheses_around_conditions_and_expressions(db: Asked, depth: int) -> None:
    left, right = "(" * depth, ")" * depth
    condition = f"{left}tabid = 1{right} AND {left}1{right} = 1 AND ({left}tabid{right} + 1) * 2 = 4"
    assert db.rows(f"SELECT tabid FROM systables WHERE {condition}") == [(1,)]


def test_a_pattern_of_133_bytes_harms_nobody(db: Asked) -> None:
    text = f"SELECT tabid FROM systables WHERE '{'a' * 60}' LIKE '{'%a' * 10}b'"
    assert db.rows(text) == []


def test_rows_that_a_query_finds_at_once_have_a_most(
    db: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.run("CREATE TABLE t (n integer, text lvarchar(2000))")
    for number in range(20):
        db.run("INSERT INTO t VALUES (?, ?)", number, "a" * 2000)
    monkeypatch.setattr(reading, "MOST_ANSWER_BYTES", 100_000)
    assert len(db.rows("SELECT text, text FROM t")) == 20
    assert db.refused(f"SELECT {', '.join(['text'] * 4)} FROM t").native == -208
    assert db.rows("SELECT count(*) FROM t") == [(20,)]


def test_each_row_counts_and_each_number(db: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    db.run("CREATE TABLE t (n integer, text lvarchar(2000))")
    for number in range(32):  # the first of each 16 rows is short
        db.run("INSERT INTO t VALUES (?, ?)", number, "a" * (2000 if number % 16 else 1))
    monkeypatch.setattr(reading, "MOST_ANSWER_BYTES", 50_000)
    assert db.refused("SELECT text FROM t").native == -208
    assert len(db.rows("SELECT n FROM t")) == 32
    assert db.refused("SELECT a.n FROM t a, t b").native == -208


@pytest.mark.parametrize("change", ["RENAME COLUMN t.a TO b", "ALTER TABLE t ADD (b integer)"])
def test_two_columns_of_one_name_are_refused(db: Asked, change: str) -> None:
    db.run("CREATE TABLE t (a integer, b integer)")
    error = db.refused(change)
    assert (error.native, error.argument) == (-328, "b")
    db.run("INSERT INTO t (a, b) VALUES (1, 2)")
    assert db.rows("SELECT a, b FROM t") == [(1, 2)]


def test_a_row_does_not_grow_beyond_what_the_catalogue_tells(db: Asked) -> None:
    db.run("CREATE TABLE t (a char(32000))")
    assert db.refused("ALTER TABLE t ADD (b char(32000))").native == -201
    assert db.rows("SELECT rowsize FROM systables WHERE tabname = 't'") == [(32000,)]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (f"tabid IN ({', '.join(map(str, range(5000)))})", [(1,), (2,)]),
        (f"tabid NOT IN ({', '.join(map(str, range(3, 5000)))})", [(1,), (2,)]),
        (" OR ".join(f"tabid = {number}" for number in range(2000)), [(1,), (2,)]),
        (" AND ".join(f"tabid <> {number}" for number in range(2, 2000)), [(1,)]),
    ],
    ids=["in", "not in", "or", "and"],
)
def test_a_condition_may_be_a_long_list(db: Asked, condition: str, found: list[tuple[int]]) -> None:
    text = f"SELECT tabid FROM systables WHERE tabid <= 2 AND ({condition}) ORDER BY tabid"
    assert db.rows(text) == found


@pytest.mark.parametrize(
    ("kind", "last", "native", "first"),
    [
        ("serial", 2**31 - 1, -1215, -1215),
        ("serial8", 2**63 - 1, -1284, -201),
        ("bigserial", 2**63 - 1, -1284, -201),
    ],
)
def test_numbers_of_a_serial_column_end(
    db: Asked, kind: str, last: int, native: int, first: int
) -> None:
    assert db.refused(f"CREATE TABLE t (n {kind}({last + 1}))").native == first
    db.run(f"CREATE TABLE t (n {kind}({last}))")
    db.run("INSERT INTO t VALUES (0)")
    assert db.refused("INSERT INTO t VALUES (0)").native == native
    assert db.rows("SELECT n FROM t") == [(last,)]
