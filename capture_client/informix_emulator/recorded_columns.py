"""Types for answers that were recorded as text: the narrowest that hold all of a column's values.

Rule: text is VARCHAR, or LVARCHAR where it is longer than one; a number is INTEGER or BIGINT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .answers import ResultColumn, SqlValue
from .column_list import TypeText
from .encoding import EmulatedType, column_type

RecordedRow = Sequence[str | None]
_LONGEST_VARCHAR = 255
_NUMBERS = (2, 52)  # INTEGER, BIGINT


def recorded_columns(
    rows: Sequence[RecordedRow], codec: str, *, is_function: bool
) -> list[ResultColumn]:
    """Return columns that hold all recorded rows; a function's answer is a number if it always is."""
    if not rows:
        return [ResultColumn("x", varchar(_LONGEST_VARCHAR, codec))]
    columns = [[row[place] for row in rows] for place in range(len(rows[0]))]
    return [
        ResultColumn(f"column{number}", _type(values, codec, is_function))
        for number, values in enumerate(columns, 1)
    ]


def typed(rows: Sequence[RecordedRow], columns: Sequence[ResultColumn]) -> Iterator[list[SqlValue]]:
    """Yield rows in the types of their columns."""
    are_numbers = [column.type.coltype in _NUMBERS for column in columns]
    for row in rows:
        yield [
            int(value) if is_number and value is not None else value
            for value, is_number in zip(row, are_numbers, strict=True)
        ]


def varchar(size: int, codec: str) -> EmulatedType:
    """Return a type that holds so many bytes of text."""
    name = "varchar" if size <= _LONGEST_VARCHAR else "lvarchar"
    return column_type(TypeText(name, (size,)), codec)


def _type(values: Sequence[str | None], codec: str, is_function: bool) -> EmulatedType:
    given = [value for value in values if value is not None]
    if is_function and given and all(value.lstrip("-").isdigit() for value in given):
        largest = max(abs(int(value)) for value in given)
        return column_type(TypeText("integer" if largest < 1 << 31 else "bigint"), codec)
    longest = max((len(value.encode(codec, "replace")) for value in given), default=0)
    return varchar(max(longest, _LONGEST_VARCHAR), codec)
