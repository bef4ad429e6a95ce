"""Find an object again by the key of its row, where the handle of the log is not to be relied on.

Rule: the procedure of the CDC guide ("Handling smart large objects"): take the columns that identify
the captured row, SELECT the row by them, open the object from its column, read, close. So it is the
object that the row has now: of a later change of the same row too, which then follows in the stream.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import quoted
from informix_capture_client.transport import Argument
from informix_capture_client.values import Column, compile_type


@dataclass(frozen=True, slots=True)
class ByKey:
    """An object as the row of a key has it: the SELECT of its column, and the key's values."""

    statement: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Reselecting:
    """How the objects of one table are found again.

    Attributes:
        key: the names of the columns that identify a row.
        statements: the SELECT of each column of large objects.
    """

    key: tuple[str, ...]
    statements: Mapping[str, str]

    def of_rows(self, column: str, key: Sequence[pa.Array]) -> list[ByKey]:
        """Return where the objects of rows are, given the key's columns."""
        statement = self.statements[column]
        rows = zip(*(_arguments(values) for values in key), strict=True)
        return [ByKey(statement, arguments) for arguments in rows]


def reselecting(table: Table, key: Sequence[Column], rules: DecodeRules) -> Reselecting:
    """Return how the objects of a table are found again by a key.

    Raises:
        BadOption: a column of the key is of a type whose values do not go back as they came.
    """
    for column in key:
        kind = compile_type(column, str(table.name), rules).arrow_type
        if not any(is_one(kind) for is_one in _COMPARABLE):
            raise BadOption(
                f"large objects of table {table.name} cannot be found again by its key: column"
                f" {quoted(column.name)} is a {column.type_text.upper()}.",
                "Set lobs to content or handle; or name another key with option snapshotKey, of"
                " numbers, texts and dates.",
                option="lobs",
            )
    owner = table.name.owner.replace('"', '""')
    where = " AND ".join(f"{quoted(column.name)} = ?" for column in key)
    rest = f'FROM "{owner}".{quoted(table.name.table)} WHERE {where}'
    names = [column.name for column in table.columns if column.type_text in ("blob", "clob")]
    return Reselecting(
        tuple(column.name for column in key),
        {name: f"SELECT {quoted(name)} {rest}" for name in names},
    )


_COMPARABLE: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_date,
    pa.types.is_decimal,
)


def _arguments(values: pa.Array) -> list[Argument]:
    return [_argument(value) for value in values.to_pylist()]


def _argument(value: object) -> Argument:
    if isinstance(value, int | str | datetime.date):
        return value
    assert isinstance(value, Decimal)  # by the choice above
    return format(value, "f")
