"""Find an object by the key of its row, if the handle in the log is not reliable.

Rule: the procedure of the CDC guide ("Handling smart large objects"): take the columns that identify
the captured row, SELECT the row by them, open the object from its column, read, close. So the result is
the row's current object, possibly of a later change, which then follows in the stream.
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
from informix_capture_client.locales import characters_of_two_forms
from informix_capture_client.sql_names import column_of, quoted
from informix_capture_client.transport import Argument
from informix_capture_client.values import Column, compile_type, is_large_object

NOWHERE = b""  # the place of an object that cannot be found, and is not read


@dataclass(frozen=True, slots=True)
class ByKey:
    """An object identified by a row's key: the SELECT of its column, and the key's values.

    Attributes:
        is_value: whether the column is a TEXT or BYTE; the SELECT then starts with its LENGTH.
    """

    statement: str
    arguments: tuple[Argument, ...]
    is_value: bool = False


@dataclass(frozen=True, slots=True)
class Reselecting:
    """How to find the objects of a table by key.

    Attributes:
        key: the names of the columns that identify a row.
        statements: the SELECT of each such column of large objects.
        values: those of them that are TEXT or BYTE.
        ambiguous: characters that may stand for others in a key: with two encodings, and U+FFFD for
            replaced invalid bytes (`badCharacters`).
    """

    key: tuple[str, ...]
    statements: Mapping[str, str]
    values: frozenset[str] = frozenset()
    ambiguous: frozenset[str] = frozenset()

    def of_rows(self, column: str, key: Sequence[pa.Array]) -> list[ByKey | bytes]:
        """Return the places of the objects of rows, from the key's columns.

        An object cannot be identified by a key with an ambiguous character: another row may have it.
        """
        statement, is_value = self.statements[column], column in self.values
        rows = zip(*(_arguments(values) for values in key), strict=True)
        return [
            NOWHERE if self._may_be_another(row) else ByKey(statement, row, is_value) for row in rows
        ]

    def _may_be_another(self, key: Sequence[Argument]) -> bool:
        if not self.ambiguous:
            return False
        return any(isinstance(value, str) and not self.ambiguous.isdisjoint(value) for value in key)


def reselecting(table: Table, key: Sequence[Column], rules: DecodeRules) -> Reselecting:
    """Return how to find the objects of a table by a key.

    Raises:
        BadOption: a key column has a type whose values cannot be sent back exactly.
    """
    values = [column.name for _, column in table.reselected]
    option = "simpleLobs" if values else "lobs"
    for column in key:
        kind = compile_type(column, str(table.name), rules).arrow_type
        is_number_of_units = column.type_text.startswith("interval") and not pa.types.is_string(kind)
        if is_number_of_units or not any(is_one(kind) for is_one in _COMPARABLE):
            raise BadOption(
                f"large objects of table {table.name} cannot be read by its key: column"
                f" {quoted(column.name)} is a {column.type_text.upper()}.",
                "Name a key of numbers, strings and dates with option snapshotKey, or set lobs to"
                " content or handle, and simpleLobs to unsupported.",
                option=option,
            )
    where = " AND ".join(f"{column_of(column.name)} = ?" for column in key)
    rest = f"FROM {table.name.aliased} WHERE {where}"
    is_asked = rules.lobs == "reselect"
    names = [each.name for each in table.columns if is_asked and is_large_object(each.type_text)]
    # LENGTH of a TEXT or BYTE is all its bytes (Guide to SQL: Syntax, "LENGTH Function")
    of_values = {n: f"SELECT LENGTH({column_of(n)}), {column_of(n)} {rest}" for n in values}
    return Reselecting(
        tuple(column.name for column in key),
        {**{name: f"SELECT {column_of(name)} {rest}" for name in names}, **of_values},
        frozenset(values),
        _ambiguous(rules),
    )


def any_object(table: Table, column: Column) -> ByKey:
    """Return the place of any object of a column."""
    name, is_value = column_of(column.name), not is_large_object(column.type_text)
    wanted = f"LENGTH({name}), {name}" if is_value else name
    return ByKey(
        f"SELECT FIRST 1 {wanted} FROM {table.name.aliased} WHERE {name} IS NOT NULL",
        (),
        is_value,
    )


_COMPARABLE: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_date,
    pa.types.is_decimal,
)


def _arguments(values: pa.Array) -> list[Argument]:
    return [_argument(value) for value in values.to_pylist()]


def _ambiguous(rules: DecodeRules) -> frozenset[str]:
    of_two_forms = characters_of_two_forms(rules.codec)
    return of_two_forms | {"\ufffd"} if rules.bad_characters == "replace" else of_two_forms


def _argument(value: object) -> Argument:
    if isinstance(value, int | str | datetime.date):
        return value
    assert isinstance(value, Decimal)  # by the choice above
    return format(value, "f")
