"""What the headers of tables' partitions say: row logging, creation, layouts.

Rule: about all tables in a few questions, since some are asked every 15 seconds; answers are in the
order of the tables. A table in fragments is what its fragments are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from informix_capture_client import statements
from informix_capture_client.catalog.many_at_once import rows_about
from informix_capture_client.catalog.tables import Table
from informix_capture_client.errors import ServerRefused
from informix_capture_client.sql_names import TableName
from informix_capture_client.transport import Transport, checked_rows, integers

_FULL_ROW_LOGGING = 0x04000000  # sysptnhdr.flags, "flagged for Log Snooping": docs/assumptions.md


class RowCounters(NamedTuple):
    """Rows of a table that were inserted, updated and deleted."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0


class SerialCounters(NamedTuple):
    """The counters of a table's SERIAL, SERIAL8 and BIGSERIAL columns."""

    serial: int
    serial8: int
    bigserial: int


class Partitions:
    """Asks over one connection."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def log_full_rows(self, tables: Sequence[Table]) -> list[bool]:
        """Tell for each table whether full row logging is on for every partition of it."""
        headers = self._headers(statements.PARTITION_FLAGS, tables, "row logging")
        return [
            all(bool(values) and bool(values[0] & _FULL_ROW_LOGGING) for values in of_table)
            for of_table in headers
        ]

    def created(self, tables: Sequence[Table]) -> list[int]:
        """Return when the youngest partition of each table was created, in seconds since 1970.

        Administrator's Reference, `sysptnhdr.created`; that it is a UNIX time: docs/assumptions.md.
        """
        headers = self._headers(statements.PARTITION_CREATED, tables, "creation time")
        return [max(values[0] if values else 0 for values in of_table) for of_table in headers]

    def pending_alters(self, tables: Sequence[Table]) -> list[bool]:
        """Return for each table whether it may have rows in the layout from before an ALTER TABLE."""
        headers = self._headers(statements.PARTITION_VERSIONS, tables, "in-place alters")
        return [any(len(set(values)) > 1 for values in of_table) for of_table in headers]

    def counters(self, tables: Sequence[Table]) -> list[RowCounters]:
        """Return how many rows of each table were written since it was opened.

        Administrator's Reference, `sysptprof`: it has no entry for a table that no one has open.
        """
        headers = self._headers(statements.PARTITION_COUNTERS, tables, "counters")
        return [
            RowCounters(*map(sum, zip(*filter(None, of_table), strict=True)))
            if any(of_table)
            else RowCounters()
            for of_table in headers
        ]

    def serials(self, tables: Sequence[Table]) -> list[SerialCounters]:
        """Return the counters of each table, of the partition that is farthest.

        Administrator's Reference, `sysptnhdr`; whether one is the last number or the next: assumption
        115.
        """
        headers = self._headers(statements.PARTITION_SERIALS, tables, "serial counters")
        return [SerialCounters(*map(max, zip(*of_table, strict=True))) for of_table in headers]

    def _headers(self, question: str, tables: Sequence[Table], what: str) -> list[list[list[int]]]:
        """Return the header numbers of each partition of each table; empty if there is no header."""
        numbers = self._numbers(tables, what)
        every = (number for of_table in numbers for number in of_table)
        rows = [integers(row, question) for row in rows_about(self._transport, question, every)]
        found = {partition: values for partition, *values in rows}
        return [[found.get(number, []) for number in of_table] for of_table in numbers]

    def _numbers(self, tables: Sequence[Table], what: str) -> list[list[int]]:
        """Return the partition numbers of tables; `what` is the fact that an error names."""
        in_fragments = [table.table_id for table in tables if not table.partition_number]
        fragments = defaultdict[int, list[int]](list)
        for row in rows_about(self._transport, statements.FRAGMENTS, in_fragments):
            table_id, partition = integers(row, statements.FRAGMENTS)
            fragments[table_id].append(partition)
        return [
            [table.partition_number] if table.partition_number else _some(fragments, table, what)
            for table in tables
        ]


def _some(fragments: Mapping[int, list[int]], table: Table, what: str) -> list[int]:
    if table.table_id not in fragments:
        raise ServerRefused(
            f"the catalog has no partition of {table.name}, so its {what} cannot be read.",
            "Check that the table exists and was not being altered, then start again.",
        )
    return fragments[table.table_id]  # each has its own


def read_row_logged(transport: Transport) -> tuple[TableName, ...]:
    """Return all tables of the server with full row logging on, sorted; also those of other products.

    Raises:
        AccessRefused: the user may not read sysmaster.
    """
    rows = checked_rows(transport, statements.ALL_PARTITION_FLAGS)
    flags = (integers(row, statements.ALL_PARTITION_FLAGS) for row in rows)
    logged = [partition for partition, of_partition in flags if of_partition & _FULL_ROW_LOGGING]
    names = rows_about(transport, statements.PARTITION_NAMES, logged)
    return tuple(
        sorted({TableName(*((text or "").rstrip(" ") for text in name)) for _, *name in names})
    )
