"""Ask the server what its databases, tables and log look like.

Rule: plain SQL over a connection of its own, nothing that changes anything. The capture session has
another connection, because a read of it may wait for seconds.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import dataclass

from informix_capture_client import statements
from informix_capture_client.catalog.log_space import LogSpace, read_log_space
from informix_capture_client.catalog.set_up import (
    MISSING,
    NO_OWNER,
    RAW_TABLE,
    TABLE_KINDS,
    DatabaseLogging,
    HaRole,
    check_table_kind,
)
from informix_capture_client.catalog.type_spelling import type_text
from informix_capture_client.errors import AccessRefused, ServerRefused
from informix_capture_client.findings import Finding, require
from informix_capture_client.positions import log_page
from informix_capture_client.sql_names import TableName, quoted
from informix_capture_client.transport import Row, Transport
from informix_capture_client.values import Column

_FULL_ROW_LOGGING = 0x04000000  # sysptnhdr.flags, "flagged for Log Snooping": docs/assumptions.md
_MOST_NAMED = 5  # tables that an error suggests
# Administrator's Reference, "System databases"; the servers' own
_SYSTEM_DATABASES = {"sysmaster", "sysutils", "sysuser", "sysadmin", "sysha", "syscdr", "syscdcv1"}
_RAW_TABLE = 0x10  # systables.flags


@dataclass(frozen=True, slots=True)
class Table:
    """One captured table, as the catalog describes it now."""

    name: TableName
    table_id: int
    partition_number: int
    created: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class FoundTable:
    """What a name stands for: a kind as `set_up` names it; `table` where it has rows.

    Attributes:
        near: tables that may be meant, if it stands for none.
    """

    name: TableName
    kind: str
    table: Table | None = None
    near: tuple[str, ...] = ()

    def finding(self) -> Finding:
        """Judge whether it is a table that can be captured."""
        return check_table_kind(str(self.name), self.kind, self.near)


class Catalog:
    """Answers questions about one server and one of its databases."""

    def __init__(self, transport: Transport, database: str) -> None:
        self._transport = transport
        self._database = database

    def server_name(self) -> str:
        """Return DBSERVERNAME."""
        return self._one(statements.SERVER_NAME)

    def server_version(self) -> str:
        """Return the server's product and release in full."""
        return self._one(statements.SERVER_VERSION).strip()

    def ha_role(self) -> HaRole:
        """Return what the server is in a high-availability cluster."""
        kind, primary = self._first(statements.HA_ROLE)
        return HaRole(_int(kind), (primary or "").strip())

    def clock(self) -> int:
        """Return the server's time in seconds since 1970, UTC."""
        return int(self._one(statements.SERVER_CLOCK))

    def current_position(self) -> int:
        """Return where the log ends, as far as `syslogs` counts pages: within a page of the truth."""
        log, pages = self._first(statements.CURRENT_LOG)
        return log_page(_int(log), _int(pages))

    def next_position(self) -> int:
        """Return a position that lies at or before every record yet to be written.

        That is a page before the end of the log: one open client measured on Informix 15 that `used`
        counts the page still being written, two others begin at `used` itself (docs/assumptions.md, 5).
        """
        log, pages = self._first(statements.CURRENT_LOG)
        return log_page(int(log or 0), max(int(pages or 0) - 1, 0))

    def oldest_position(self) -> int:
        """Return the first position of the oldest log that the server still has."""
        return log_page(int(self._one(statements.OLDEST_LOG)), 0)

    def log_space(self) -> LogSpace | None:
        """Return the log files and their sizes; None where the server does not tell this user."""
        try:
            return read_log_space(self._transport)
        except (AccessRefused, ServerRefused):
            return None

    def open_transactions(self) -> frozenset[int]:
        """Return the ids of the transactions that are open now."""
        rows = self._transport.rows(statements.OPEN_TRANSACTIONS)
        return frozenset(int(row[0]) for row in rows if row[0] is not None)

    def database_logging(self, database: str = "") -> DatabaseLogging | None:
        """Return how the database, or another one, is logged; None: the server has no such database."""
        rows = self._transport.rows(statements.DATABASE_LOGGING, database or self._database)
        return DatabaseLogging(*(bool(_int(value)) for value in rows[0])) if rows else None

    def database_locale(self, database: str = "") -> str:
        """Return the locale that the database, or another one, was created in: `en_US.57372`."""
        return self._one(statements.DATABASE_LOCALE, database or self._database).strip()

    def find_table(self, name: TableName) -> FoundTable:
        """Return what the name stands for, and a table's identity and columns if it is one."""
        if not name.owner:
            return FoundTable(name, NO_OWNER, near=self._tables_like(name))
        rows = self._transport.rows(statements.TABLE, name.table, name.owner)
        if not rows:
            return FoundTable(name, MISSING, near=self._tables_like(name))
        table_id, partition, created, letter, flags = rows[0]
        kind = TABLE_KINDS.get((letter or "").strip(), "object of an unknown kind")
        if kind == "table" and _int(flags) & _RAW_TABLE:
            kind = RAW_TABLE
        if kind not in ("table", RAW_TABLE):
            return FoundTable(name, kind)
        columns = self._columns(table_id)
        table = Table(name, _int(table_id), _int(partition), (created or "").strip(), columns)
        return FoundTable(name, kind, table)

    def table(self, name: TableName) -> Table:
        """Return a table's identity and columns.

        Raises:
            BadOption: there is no such table, or it is not of a kind that is logged.
        """
        found = self.find_table(name)
        require(found.finding())
        if found.table is None:
            raise ServerRefused(f"the catalog has no columns of {name}.")
        return found.table

    def _tables_like(self, wanted: TableName) -> tuple[str, ...]:
        """Return the tables of that name under other owners, else those of nearly that name."""
        try:
            rows = self._transport.rows(statements.TABLES)
        except (AccessRefused, ServerRefused):  # it only adds to what is told
            return ()
        there = [((owner or "").rstrip(), (table or "").rstrip()) for owner, table in rows]
        near = difflib.get_close_matches(wanted.table, [table for _, table in there])
        same = [each for each in there if each[1].lower() == wanted.table.lower()]
        names = same or [each for each in there if each[1] in near]
        return tuple(f"{quoted(owner)}.{quoted(table)}" for owner, table in names[:_MOST_NAMED])

    def databases(self) -> tuple[str, ...]:
        """Return the databases of users that the server has; empty where it does not tell."""
        return read_databases(self._transport)

    def has_primary_key(self, table: Table) -> bool:
        """Tell whether a table has a primary key."""
        return bool(self._transport.rows(statements.PRIMARY_KEY, table.table_id))

    def _columns(self, table_id: str | None) -> tuple[Column, ...]:
        rows = self._transport.rows(statements.COLUMNS, _int(table_id))
        return tuple(
            Column((name or "").rstrip(), type_text(_int(kind), _int(length), _int(extended)))
            for name, kind, length, extended in rows
        )

    def logs_full_rows(self, table: Table) -> bool:
        """Tell whether full row logging is on for every partition of a table."""
        return all(map(self._logs_full_rows, self._partitions(table, "row logging")))

    def created_at(self, table: Table) -> int:
        """Return when the youngest partition of a table was created, in seconds since 1970.

        Administrator's Reference, `sysptnhdr.created`; that it is a UNIX time: docs/assumptions.md.
        """
        partitions = self._partitions(table, "creation time")
        rows = [self._transport.rows(statements.PARTITION_CREATED, number) for number in partitions]
        return max(_int(found[0][0]) if found else 0 for found in rows)

    def _logs_full_rows(self, partition: int) -> bool:
        rows = self._transport.rows(statements.PARTITION_FLAGS, partition)
        return bool(rows and _int(rows[0][0]) & _FULL_ROW_LOGGING)

    def has_pending_alter(self, table: Table) -> bool:
        """Tell whether a table may have rows in a layout of before an ALTER TABLE."""
        return any(map(self._has_old_rows, self._partitions(table, "in-place alters")))

    def _has_old_rows(self, partition: int) -> bool:
        rows = self._transport.rows(statements.PARTITION_VERSIONS, partition)
        return any(_int(oldest) != _int(newest) for oldest, newest in rows)

    def _partitions(self, table: Table, what: str) -> list[int]:
        """Return a table's partition numbers; `what` is what cannot be seen if there are none."""
        if table.partition_number:
            return [table.partition_number]
        rows = self._transport.rows(statements.FRAGMENTS, table.table_id)  # each has its own
        if not rows:
            raise ServerRefused(
                f"the catalog shows no partition of {table.name}, so its {what} cannot be seen."
            )
        return [_int(row[0]) for row in rows]

    def _first(self, statement: str, *arguments: int | str) -> Row:
        rows = self._transport.rows(statement, *arguments)
        if not rows or rows[0][0] is None:
            raise ServerRefused(f"the server has no answer to {statement!r}.")
        return rows[0]

    def _one(self, statement: str, *arguments: int | str) -> str:
        return str(self._first(statement, *arguments)[0])


def read_databases(transport: Transport) -> tuple[str, ...]:
    """Return the databases of users, by name; empty where the server does not tell."""
    try:
        rows = transport.rows(statements.DATABASES)
    except (AccessRefused, ServerRefused):  # it only adds to what is told
        return ()
    names = {(name or "").strip() for (name,) in rows}
    return tuple(sorted(names - _SYSTEM_DATABASES - {""}))


def _int(value: str | None) -> int:
    return int(value or 0)  # with blanks around it too, as a driver may pad a number


def source_digest(server_name: str, tables: tuple[Table, ...]) -> str:
    """Return what positions belong to, as a short digest: server, tables and captured columns."""
    facts = [
        [
            str(t.name),
            t.table_id,
            t.partition_number,
            t.created,
            [(c.name, c.type_text) for c in t.columns],
        ]
        for t in tables
    ]
    text = json.dumps([server_name.strip(), facts], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
