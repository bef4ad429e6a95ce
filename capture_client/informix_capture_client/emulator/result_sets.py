"""A statement's answer as the private protocol carries it: text, whole numbers, NULL.

Rule: it goes with that protocol; a value is shown as Informix's drivers show it in a text.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from .answers import Check, SqlSession, Value
from .catalog import Value as Cell

_PADDED = (0, 15)  # CHAR and NCHAR: this protocol shows them without the blanks that fill them


@dataclass(frozen=True, slots=True)
class ResultSet:
    """The answer of a query: column names, and rows of text, numbers or NULL."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


def answer(
    session: SqlSession, statement: str, parameters: Sequence[str | None], check: Check
) -> ResultSet:
    """Run a statement; SqlError if it is refused."""
    prepared = session.prepare(statement)
    outcome = prepared.run(parameters, check)
    names = tuple(column.name for column in prepared.columns)
    padded = [column.type.coltype in _PADDED for column in prepared.columns]
    return ResultSet(names, [tuple(map(_cell, row, padded)) for row in outcome.rows])


def _cell(value: Value, is_padded: bool) -> Cell:
    if value is None or type(value) is int:
        return value
    text = _SHOWN.get(type(value), str)(value)
    return text.rstrip(" ") if is_padded else text


def _date(value: Value) -> str:
    assert isinstance(value, datetime.date)
    return f"{value.month:02}/{value.day:02}/{value.year:04}"


_SHOWN: dict[type, Callable[[Value], str]] = {
    datetime.date: _date,
    bool: lambda value: "t" if value else "f",
    Decimal: lambda value: f"{value:f}",
}
