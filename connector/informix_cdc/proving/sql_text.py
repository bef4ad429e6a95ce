"""The SQL that writes values of every type and selects them as text.

Rule: a value is written here as Informix prints it (`12 03:04:05`, `t`, `2024-03-15`); what it needs to
be a literal of its type, and to be printed that way again, stands in `_FAMILIES`. Sources: the literals
and TO_CHAR of the Guide to SQL: Syntax.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from informix_capture_client.sql_names import BUILT_IN_FUNCTIONS, delimited

KEY = "id"

Values = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ContractTable:
    """A table of our own; `columns` are names and types, the first is the key `id`."""

    database: str
    owner: str
    name: str
    columns: tuple[tuple[str, str], ...]

    @property
    def full_name(self) -> str:
        """`database:owner.table`, as CDC functions want it."""
        return f"{self.database}:{self.owner}.{self.name}"

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns in the order of CREATE TABLE."""
        return tuple(name for name, _ in self.columns)


@dataclass(frozen=True, slots=True)
class _Family:
    """How values of some types are written, asked for, and compared."""

    literal: Callable[[str, str], str]
    printed: str
    comparable: Callable[[str], object]


def _quoted(_type: str, text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _bare(_type: str, text: str) -> str:
    return text


def _mdy(_type: str, text: str) -> str:
    # independent of DBDATE and of the locale
    year, month, day = map(int, text.split("-"))
    return f"MDY({month}, {day}, {year})"


def _with_qualifier(type_text: str, text: str) -> str:
    kind, _, qualifier = type_text.upper().partition(" ")
    return f"{kind} ({text}) {qualifier}"


_NUMBER = _Family(_bare, "{}", Decimal)
_FLOAT = _Family(_bare, "{}", float)
_DATE = _Family(_mdy, "TO_CHAR({}, '%Y-%m-%d')", str)
# a cast prints the fields of the column; a driver would give a timestamp of all fields
_FIELDS = _Family(_with_qualifier, "{}::CHAR(40)", str.strip)
_BOOLEAN = _Family(_quoted, "CASE WHEN {0} = 't' THEN 't' WHEN {0} = 'f' THEN 'f' END", str.strip)
_PADDED = _Family(_quoted, "{}", lambda text: text.rstrip(" "))
_TEXT = _Family(_quoted, "{}", str)

_FAMILIES = {
    **dict.fromkeys(
        ("smallint", "integer", "serial", "bigint", "bigserial", "int8", "serial8"), _NUMBER
    ),
    **dict.fromkeys(("decimal", "money"), _NUMBER),
    **dict.fromkeys(("float", "smallfloat"), _FLOAT),
    "date": _DATE,
    "datetime": _FIELDS,
    "interval": _FIELDS,
    "boolean": _BOOLEAN,
    "char": _PADDED,
    "nchar": _PADDED,
    **dict.fromkeys(("varchar", "nvarchar", "lvarchar", "text", "clob", "blob"), _TEXT),
}


def _family(type_text: str) -> _Family:
    return _FAMILIES[re.split(r"[ (]", type_text)[0]]


def identifier(name: str) -> str:
    """Return a name as SQL wants it; a delimited one needs DELIMIDENT in the environment."""
    is_plain = re.fullmatch("[a-z_][a-z0-9_]*", name) and name not in BUILT_IN_FUNCTIONS
    return name if is_plain else delimited(name)


def literal(type_text: str, text: str | None) -> str:
    """Return a value as a literal of a type.

    >>> literal("interval day(3) to second", "12 03:04:05")
    'INTERVAL (12 03:04:05) DAY(3) TO SECOND'
    """
    return "NULL" if text is None else _family(type_text).literal(type_text, text)


def comparable(type_text: str, text: str | None) -> object:
    """Return a printed value in a form that is equal where the values are: 1.50 is 1.5."""
    return None if text is None else _family(type_text).comparable(text)


def create_table(table: ContractTable) -> str:
    """Return the CREATE TABLE."""
    columns = ", ".join(f"{identifier(name)} {type_text}" for name, type_text in table.columns)
    return f"CREATE TABLE {table.name} ({columns})"


def insert(table: ContractTable, values: Values) -> str:
    """Return the INSERT of one row; columns that are not given are left to the server."""
    chosen = [(name, kind) for name, kind in table.columns if name in values]
    names = ", ".join(identifier(name) for name, _ in chosen)
    literals = ", ".join(literal(kind, values[name]) for name, kind in chosen)
    return f"INSERT INTO {table.name} ({names}) VALUES ({literals})"


def update(table: ContractTable, key: int, values: Values) -> str:
    """Return the UPDATE of the row with a key."""
    kinds = dict(table.columns)
    changes = ", ".join(
        f"{identifier(name)} = {literal(kinds[name], text)}" for name, text in values.items()
    )
    return f"UPDATE {table.name} t SET {changes} WHERE t.{KEY} = {key}"


def delete(table: ContractTable, key: int) -> str:
    """Return the DELETE of the row with a key."""
    return f"DELETE FROM {table.name} t WHERE t.{KEY} = {key}"


def select(table: ContractTable) -> str:
    """Return the SELECT of all rows in the order of their keys, each value as Informix prints it."""
    columns = ((f"t.{identifier(name)}", kind) for name, kind in table.columns)
    printed = ", ".join(_family(kind).printed.format(name) for name, kind in columns)
    return f"SELECT {printed} FROM {table.name} t ORDER BY t.{KEY}"


_SHOWN_CHARACTERS = {"year": 4, "month": 7, "day": 10, "hour": 13, "minute": 16, "second": 19}


def rendered(type_text: str, value: object) -> str | None:
    """Return a value of our decoder as Informix prints it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, datetime):
        last = type_text.rpartition(" to ")[2]
        digits = re.search(r"fraction\((\d)\)", last)
        width = 20 + int(digits[1]) if digits else _SHOWN_CHARACTERS[last]
        return value.isoformat(" ", "microseconds")[:width]
    return value.isoformat() if isinstance(value, date) else str(value)
