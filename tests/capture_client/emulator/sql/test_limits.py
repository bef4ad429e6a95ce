"""Statements that are too much: each is refused by a number, and the session goes on."""

from __future__ import annotations

import pytest

from capture_client.emulator.sql.asking import Asked

COLUMNS = ", ".join(f"c{n} integer" for n in range(3000))


def nested_case(depth: int) -> str:
    text = "1"
    for _ in range(depth):
        text = f"(case when {text} = 1 then 1 else 0 end)"
    return text


def nested_replace(depth: int) -> str:
    text = "'" + "a" * 200 + "'"
    for _ in range(depth):
        text = f"replace({text}, 'a', '{'a' * 200}')"
    return text


@pytest.mark.parametrize(
    ("text", "native"),
    [
        (f"CREATE TABLE wide ({COLUMNS})", -201),
        (f"CREATE TEMP TABLE wide ({COLUMNS})", -201),
        (f"SELECT length({nested_replace(4)}) FROM systables WHERE tabid = 1", -1279),
        (f"SELECT tabid FROM systables WHERE {nested_case(60)} = 1", -201),
        (f"SELECT tabid FROM systables WHERE {'(' * 2000}1{')' * 2000} = 1", -201),
        (f"SELECT tabid FROM systables WHERE {'(' * 2000}tabid = 1{')' * 2000}", -201),
        ("SELECT tabid /* FROM systables", -201),
        (f"SELECT tabid FROM systables {'/*' * 300_000}", -201),
        (f"SELECT FIRST {'0' * 5000}1 tabid FROM systables", -201),
        (f"SELECT tabid + {'9' * 5000} FROM systables", -201),
    ],
    ids=[
        *("columns", "columns of a temporary table", "replace", "case", "parentheses", "conditions"),
        *("an open comment", "open comments", "a number of rows", "digits"),
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
