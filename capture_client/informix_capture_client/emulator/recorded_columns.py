"""The columns of a recorded answer, whose values came as text without their types.

Rule: types are taken from the values, so that text is VARCHAR and a number INTEGER or BIGINT.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .answers import ResultColumn, Value
from .column_list import TypeText
from .encoding import ColumnType, column_type
from .result_sets import ResultSet

_LONGEST_VARCHAR = 255


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
