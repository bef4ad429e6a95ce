"""Check that the column types described by a server match the declared ones.

Rule: two types are one if every value of them lies in a row in the same way and means the same. What
differs is refused before a row is read: the table was altered between the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.transport import sqli
from informix_capture_client.transport.sqli import SqliType
from informix_capture_client.values import Column

Form = tuple[object, ...]


class DescribedColumn(Protocol):
    """A column as a server or driver describes it, by numbers of its own."""

    @property
    def type(self) -> int:
        """The type's number."""
        ...

    @property
    def length(self) -> int:
        """Its length, size or qualifier."""
        ...


Described = TypeVar("Described", bound=DescribedColumn)

_TYPE = re.compile(r"([a-z0-9_ ]+?)(?:\((\d+)(?:,(\d+))?\))?")
_QUALIFIED = re.compile(r"(datetime|interval) (\w+)(?:\((\d)\))? to (\w+)(?:\((\d)\))?")
_FIELDS = ("year", "month", "day", "hour", "minute", "second", "fraction")
_FLOATING = 255

_WORDS = {
    "smallint": "smallint",
    **dict.fromkeys(("integer", "int", "serial"), "integer"),
    **dict.fromkeys(("bigint", "bigserial"), "bigint"),
    **dict.fromkeys(("int8", "serial8"), "int8"),
    **dict.fromkeys(("smallfloat", "real"), "smallfloat"),
    **dict.fromkeys(("float", "double precision"), "float"),
    "date": "date",
    "boolean": "boolean",
    **dict.fromkeys(("varchar", "nvarchar", "character varying"), "varchar"),
    "lvarchar": "lvarchar",
    "blob": "blob",
    "clob": "clob",
}
_CODES = {
    SqliType.SMALLINT: "smallint",
    SqliType.INTEGER: "integer",
    SqliType.SERIAL: "integer",
    SqliType.BIGINT: "bigint",
    SqliType.BIGSERIAL: "bigint",
    SqliType.INT8: "int8",
    SqliType.SERIAL8: "int8",
    SqliType.SMALLFLOAT: "smallfloat",
    SqliType.FLOAT: "float",
    SqliType.DATE: "date",
    SqliType.VARCHAR: "varchar",
    SqliType.NVARCHAR: "varchar",
    SqliType.LVARCHAR_BIND: "lvarchar",
    SqliType.BOOLEAN_BIND: "boolean",
}
_OPAQUE = {1: "lvarchar", 5: "boolean", 10: "blob", 11: "clob"}  # by extended id
_DECIMALS = {"decimal": 255, "dec": 255, "numeric": 255, "money": 2}  # and the scale that they have


def require_declared(
    described: Sequence[sqli.SqliColumn], columns: Sequence[Column], table: str
) -> None:
    """Check columns that a server describes over the native protocol; see `require_each`."""
    require_each(
        described,
        columns,
        table,
        lambda found, column: described_form(found) == declared_form(column.type_text),
    )


def require_each(
    described: Sequence[Described],
    columns: Sequence[Column],
    table: str,
    is_as_declared: Callable[[Described, Column], bool],
) -> None:
    """Check that the columns of a result are the declared ones, before a row is read.

    Args:
        described: as a server or driver describes them.
        columns: as the catalog or the capture declares them.
        table: the table's name, for error texts.
        is_as_declared: whether a description is that of a declaration.

    Raises:
        ProtocolViolation: their number differs, or one is described as another type.
    """
    if len(described) != len(columns):
        raise ProtocolViolation(
            f"a query of {table} returned {len(described)} columns instead of {len(columns)}."
        )
    for found, column in zip(described, columns, strict=True):
        if not is_as_declared(found, column):
            raise ProtocolViolation(
                f"column {column.name} of table {table} has type {column.type_text}, but the"
                f" server describes it as type {found.type} with length {found.length:#x}.",
                "The row's layout is not the announced one: check whether the table was altered.",
                table=table,
                column=column.name,
            )


def declared_form(type_text: str) -> Form:
    """Return what is the same for all declarations of one form.

    >>> declared_form("money(16,2)") == declared_form("decimal(16,2)")
    True
    """
    if found := _QUALIFIED.fullmatch(type_text):
        return _declared_fields(*found.groups())
    name, first, second = _parts(type_text)
    if name in _DECIMALS:
        return "decimal", first or 16, _DECIMALS[name] if second is None else second
    if name in ("char", "character", "nchar"):
        return "char", first or 1
    return (_WORDS.get(name, name),)


def _parts(type_text: str) -> tuple[str, int | None, int | None]:
    found = _TYPE.fullmatch(type_text)
    if found is None:
        return type_text, None, None
    name, *numbers = found.groups()
    first, second = (None if number is None else int(number) for number in numbers)
    return name, first, second


def _declared_fields(kind: str, first: str, lead: str | None, last: str, end: str | None) -> Form:
    fraction = int(end or (lead if first == "fraction" else None) or 3) if last == "fraction" else 0
    leading = int(lead) if lead and kind == "interval" else 4 if first == "year" else 2
    return kind, first, last, 0 if first == "fraction" else leading, fraction


def described_form(column: sqli.SqliColumn) -> Form:
    """Return the form of a column by a server's numbers for it; `("?",)` if it is not supported."""
    if column.type in (SqliType.DECIMAL, SqliType.MONEY):
        return "decimal", column.length >> 8, column.length & 0xFF
    if column.type in (SqliType.CHAR, SqliType.NCHAR):
        return "char", column.length
    if column.type in (SqliType.DATETIME, SqliType.INTERVAL):
        return _described_fields(column)
    if column.type in (SqliType.OPAQUE_VARIABLE, SqliType.OPAQUE_FIXED):
        return (_OPAQUE.get(column.extended_id, column.type_name or "?"),)
    return (_CODES.get(SqliType(column.type), "?") if column.type in list(SqliType) else "?",)


def _described_fields(column: sqli.SqliColumn) -> Form:
    kind = "datetime" if column.type == SqliType.DATETIME else "interval"
    try:
        fields = sqli.qualifier(column.length)
    except ValueError:
        return ("?",)
    first, last = _FIELDS[fields.first], _FIELDS[fields.last]
    leading = 0 if first == "fraction" else fields.leading_digits
    return kind, first, last, leading, fields.fraction_digits
