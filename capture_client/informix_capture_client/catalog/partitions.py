"""What the headers of tables' partitions say: row logging, creation, layouts.

Rule: about all tables in a few questions, since some are asked every 15 seconds; answers are in the
order of the tables. A table in fragments is what its fragments are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from informix_capture_client import statements
from informix_capture_client.catalog.many_at_once import by_number, rows_about
from informix_capture_client.errors import ServerRefused
from informix_capture_client.transport import Row, Transport

if TYPE_CHECKING:
    from informix_capture_client.catalog.catalog import Table

_FULL_ROW_LOGGING = 0x04000000  # sysptnhdr.flags, "flagged for Log Snooping": docs/assumptions.md


class Partitions:
    """Asks over one connection."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def log_full_rows(self, tables: Sequence[Table]) -> list[bool]:
        """Tell for each table whether full row logging is on for every partition of it."""
        headers = self._headers(statements.PARTITION_FLAGS, tables, "row logging")
        return [all(map(_logs_full_rows, of_table)) for of_table in headers]

    def created(self, tables: Sequence[Table]) -> list[int]:
        """Return when the youngest partition of each table was created, in seconds since 1970.

        Administrator's Reference, `sysptnhdr.created`; that it is a UNIX time: docs/assumptions.md.
        """
        headers = self._headers(statements.PARTITION_CREATED, tables, "creation time")
        return [max(_int(rows[0][0]) if rows else 0 for rows in of_table) for of_table in headers]

    def pending_alters(self, tables: Sequence[Table]) -> list[bool]:
        """Tell for each table whether it may have rows in a layout of before an ALTER TABLE."""
        headers = self._headers(statements.PARTITION_VERSIONS, tables, "in-place alters")
        return [any(map(_has_old_rows, of_table)) for of_table in headers]

    def _headers(self, question: str, tables: Sequence[Table], what: str) -> list[list[list[Row]]]:
        """Return for each table, and each partition of it, the rows of its header: one or none."""
        numbers = self._numbers(tables, what)
        every = (number for of_table in numbers for number in of_table)
        found = by_number(rows_about(self._transport, question, every))
        return [[found.get(number, []) for number in of_table] for of_table in numbers]

    def _numbers(self, tables: Sequence[Table], what: str) -> list[list[int]]:
        """Return the partition numbers of tables; `what` cannot be seen of a table that has none."""
        in_fragments = [table.table_id for table in tables if not table.partition_number]
        rows = by_number(rows_about(self._transport, statements.FRAGMENTS, in_fragments))
        fragments = {table_id: [_int(row[0]) for row in found] for table_id, found in rows.items()}
        return [
            [table.partition_number] if table.partition_number else _some(fragments, table, what)
            for table in tables
        ]


def _some(fragments: dict[int, list[int]], table: Table, what: str) -> list[int]:
    if table.table_id not in fragments:
        raise ServerRefused(
            f"the catalog shows no partition of {table.name}, so its {what} cannot be seen."
        )
    return fragments[table.table_id]  # each has its own


def _logs_full_rows(header: list[Row]) -> bool:
    return bool(header and _int(header[0][0]) & _FULL_ROW_LOGGING)


def _has_old_rows(header: list[Row]) -> bool:
    return any(_int(oldest) != _int(newest) for oldest, newest in header)


def _int(value: str | None) -> int:
    return int(value or 0)  # with blanks around it too, as a driver may pad a number
