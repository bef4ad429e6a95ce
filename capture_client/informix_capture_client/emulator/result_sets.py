"""A statement's answer as the private protocol carries it: text, whole numbers, NULL.

Rule: a value is shown as Informix's drivers show it in a text. Where answers were recorded so, and
have no types, these are taken from the values: text is VARCHAR, a number INTEGER or BIGINT.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from .answers import Check, ResultColumn, SqlSession, Value
from .catalog import Value as Cell
from .column_list import TypeText
from .encoding import ColumnType, column_type

_LONGEST_VARCHAR = 255
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


def columns_of(result: ResultSet, codec: str) -> list[ResultColumn]:
    """Return the columns of a result whose values have no declared types."""
    return [
        ResultColumn(name, _type([row[place] for row in result.rows], codec))
        for place, name in enumerate(result.columns)
    ]


def cells(result: ResultSet, columns: Sequence[ResultColumn]) -> Iterable[list[Value]]:
    """Return rows in the types of their columns."""
    are_numbers = [column.type.coltype in (2, 52) for column in columns]
    for row in result.rows:
        yield [
            value if value is None else int(value) if is_number else str(value)
            for value, is_number in zip(row, are_numbers, strict=True)
        ]


def varchar(size: int, codec: str) -> ColumnType:
    """Return a type that holds so many bytes of text."""
    name = "varchar" if size <= _LONGEST_VARCHAR else "lvarchar"
    return column_type(TypeText(name, (size,)), codec)


def integer(largest: int = 0) -> ColumnType:
    """Return the type of numbers up to one."""
    return column_type(TypeText("integer" if largest < 1 << 31 else "bigint"), "ascii")


def _type(values: list[Value], codec: str) -> ColumnType:
    given = [value for value in values if value is not None]
    if given and all(isinstance(value, int) for value in given):
        return integer(max(abs(value) for value in given if isinstance(value, int)))
    longest = max((len(str(value).encode(codec, "replace")) for value in given), default=0)
    return varchar(max(longest, _LONGEST_VARCHAR), codec)
