"""Read the keys and lock modes of tables for a snapshot from the catalog.

Rule: facts only, about all tables in a few queries; the key is chosen in `incremental_snapshot`.
Disabled constraints and indexes are not keys.

Sources: Guide to SQL: Reference, "sysconstraints", "sysindexes" (a part is a column's number, below
zero where it descends), "sysobjstate", "syscolumns" (coltype has 256 added where NULL is not allowed)
and "systables" (nrows is from the last UPDATE STATISTICS).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from informix_capture_client import statements
from informix_capture_client.catalog.many_at_once import rows_by_number
from informix_capture_client.catalog.tables import Table
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.transport import Row, Transport, integer, real

_NOT_NULL = 0x100  # syscolumns.coltype
_PRIMARY = "P"
_PAGE = ("P", "B")  # systables.locklevel: page, or page and row


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The unique keys of a table, as names of columns.

    Attributes:
        primary: of the primary key; empty if there is none.
        unique: of each other unique index.
        nullable: the columns that may be NULL.
    """

    primary: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    nullable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RowLocks:
    """A table's lock mode, and its number of rows at the last UPDATE STATISTICS."""

    level: str
    row_estimate: int

    @property
    def by_page(self) -> bool:
        """Whether locks cover whole pages, so that readers wait for writers of other rows."""
        return self.level in _PAGE


class Keys:
    """Queries keys over one connection."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def of(self, tables: Sequence[Table]) -> list[TableKeys]:
        """Return the keys of each table."""
        numbers = [table.table_id for table in tables]
        ask = (
            statements.CONSTRAINTS,
            statements.UNIQUE_INDEXES,
            statements.DISABLED,
            statements.COLUMN_NUMBERS,
        )
        found = [rows_by_number(self._transport, question, numbers) for question in ask]
        return [_keys(*(rows.get(number, []) for rows in found)) for number in numbers]

    def row_locks(self, tables: Sequence[Table]) -> list[RowLocks]:
        """Return the lock mode and number of rows of each table."""
        numbers = [table.table_id for table in tables]
        found = rows_by_number(self._transport, statements.ROW_LOCKS, numbers)
        return [_row_locks(found.get(number, [("", "0")])[0]) for number in numbers]


def _keys(
    constraints: list[Row], indexes: list[Row], disabled: list[Row], columns: list[Row]
) -> TableKeys:
    off = {(_text(kind), _text(name)) for kind, name in disabled}
    asked = statements.COLUMN_NUMBERS
    names = {integer(number, asked, "colno"): _text(name) for number, name, _ in columns}
    kinds: dict[str, set[str]] = defaultdict(set)  # of constraints, by the name of their index
    for kind, name, index in constraints:
        kinds[_text(index)].add("" if ("C", _text(name)) in off else _text(kind))
    primary: tuple[str, ...] = ()
    unique = []
    for index, *parts in indexes:
        name = _text(index)
        if ("I", name) in off or "" in kinds[name]:
            continue
        numbers = (abs(integer(part, statements.UNIQUE_INDEXES, "part")) for part in parts)
        key = tuple(_name(names, number) for number in numbers if number)
        primary = key if _PRIMARY in kinds[name] else primary
        unique.append(key)
    nullable = {
        _text(name) for _, name, kind in columns if not integer(kind, asked, "coltype") & _NOT_NULL
    }
    others = sorted({key for key in unique if key and key != primary})
    return TableKeys(primary, tuple(others), frozenset(nullable))


def _row_locks(row: Row) -> RowLocks:
    level, rows = row
    return RowLocks(_text(level), int(real(rows, statements.ROW_LOCKS, "nrows")))


def _name(names: dict[int, str], number: int) -> str:
    if number not in names:
        raise ProtocolViolation(
            f"An index refers to column {number} of a table, but the catalog has no such column.",
            "Start again: the table may have been altered at the same time.",
        )
    return names[number]


def _text(value: str | None) -> str:
    return (value or "").rstrip(" ")
