"""Query the server's databases, tables and log.

Rule: plain read-only SQL over a separate connection. The capture session has another connection,
because its reads may wait for seconds.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from informix_capture_client import statements
from informix_capture_client.catalog.keys import Keys, RowLocks, TableKeys
from informix_capture_client.catalog.log_space import LogSpace, read_log_space
from informix_capture_client.catalog.many_at_once import rows_about, rows_by_number
from informix_capture_client.catalog.partitions import Partitions, RowCounters, SerialCounters
from informix_capture_client.catalog.set_up import (
    MISSING,
    NO_OWNER,
    RAW_TABLE,
    TABLE_KINDS,
    DatabaseLogging,
    HaRole,
)
from informix_capture_client.catalog.tables import FoundTable, Table
from informix_capture_client.catalog.type_spelling import type_text
from informix_capture_client.errors import AccessRefused, ServerRefused
from informix_capture_client.findings import require
from informix_capture_client.positions import log_page, page_after
from informix_capture_client.sql_names import TableName, quoted
from informix_capture_client.transport import (
    MOST_32_BITS,
    Row,
    Transport,
    checked_rows,
    integer,
    integers,
)
from informix_capture_client.values import Column

_MOST_NAMED = 5  # tables that an error suggests
_MOST_COMPARED = 20_000  # with a name that was not found
_NAME_CHARACTERS = 128  # SQL Syntax, "Identifier"
# Administrator's Reference, "System databases"; the servers' own
_SYSTEM_DATABASES = {"sysmaster", "sysutils", "sysuser", "sysadmin", "sysha", "syscdr", "syscdcv1"}
_RAW_TABLE = 0x10  # systables.flags
_HIDDEN = 1  # syscolumns.colattr: SELECT * does not have it (SQL Reference, "SYSCOLUMNS")


class OpenSample(NamedTuple):
    """The transactions that the server lists as open, and the end of its log before and after.

    Attributes:
        place: at or before the first record of every transaction that begins later.
        begins: the listed ids, each with the start of the log file in which it began (onstat -x, "log
            begin"), at or before its BEGINTX.
        log_end: after the last record of every transaction that had ended before.
    """

    place: int
    begins: Mapping[int, int]
    log_end: int


class Catalog:
    """Queries the system catalog of a server and of one of its databases."""

    def __init__(self, transport: Transport, database: str) -> None:
        self._transport = transport
        self._database = database
        self._partitions = Partitions(transport)
        self._keys = Keys(transport)

    def server_name(self) -> str:
        """Return DBSERVERNAME."""
        return self._one(statements.SERVER_NAME).strip()

    def server_version(self) -> str:
        """Return the server's product and release in full."""
        return self._one(statements.SERVER_VERSION).strip()

    def ha_role(self) -> HaRole:
        """Return the server's role in a high-availability cluster."""
        kind, primary = self._first(statements.HA_ROLE)
        return HaRole(integer(kind, statements.HA_ROLE, "ha_type"), (primary or "").strip())

    def clock(self) -> int:
        """Return the server's time in seconds since 1970, UTC."""
        return integer(self._one(statements.SERVER_CLOCK), statements.SERVER_CLOCK, "utc_current")

    def current_position(self) -> int:
        """Return the end of the log according to `syslogs`, which is accurate to a page."""
        return log_page(*self._log_end())

    def next_position(self) -> int:
        """Return a position at or before every record that is not yet written.

        That is one page before the end of the log: one open-source client measured on Informix 15 that
        `used` includes the page being written; two others start at `used` (docs/assumptions.md, 5).
        """
        log, pages = self._log_end()
        return log_page(log, max(pages - 1, 0))

    def _log_end(self) -> tuple[int, int]:
        """Return the number of the current log and the number of its used pages."""
        row = self._first(statements.CURRENT_LOG)
        log, pages = integers(row, statements.CURRENT_LOG, MOST_32_BITS)
        return log, pages

    def oldest_position(self) -> int:
        """Return the first position of the server's oldest log."""
        log = self._one(question := statements.OLDEST_LOG)
        return log_page(integer(log, question, "uniqid", MOST_32_BITS), 0)

    def log_space(self) -> LogSpace | None:
        """Return the log files and their sizes; None if the user may not read them."""
        try:
            return read_log_space(self._transport)
        except (AccessRefused, ServerRefused):
            return None

    def open_transactions(self) -> frozenset[int]:
        """Return the ids of the open transactions."""
        return frozenset(self._open_since())

    def open_sample(self) -> OpenSample:
        """Return the open transactions, with the end of the log before and after reading them.

        The order matters: a transaction that begins after the list was read writes above the first
        position, and one that ended before the list was read lies below the second.
        """
        place, begins = self.next_position(), self._open_since()
        return OpenSample(place, begins, page_after(self.current_position()))

    def _open_since(self) -> dict[int, int]:
        question = statements.OPEN_TRANSACTIONS
        rows = [row for row in checked_rows(self._transport, question) if row[0] is not None]
        found = (integers(row, question, MOST_32_BITS) for row in rows)
        return {number: log_page(log, 0) for number, log in found}

    def database_logging(self, database: str = "") -> DatabaseLogging | None:
        """Return the logging mode of the database, or of another one; None if it does not exist."""
        question = statements.DATABASE_LOGGING
        rows = checked_rows(self._transport, question, database or self._database)
        return DatabaseLogging(*map(bool, integers(rows[0], question))) if rows else None

    def database_locale(self, database: str = "") -> str:
        """Return the locale of the database, or of another one, such as `en_US.57372`."""
        return self._one(statements.DATABASE_LOCALE, database or self._database).strip()

    def find_tables(self, names: Sequence[TableName]) -> list[FoundTable]:
        """Return the object that each name refers to, with identity and columns if it is a table."""
        rows = rows_about(self._transport, statements.TABLE, (n.table for n in names if n.owner))
        there = {((row[0] or "").rstrip(" "), (row[1] or "").rstrip(" ")): row for row in rows}
        found = [_FoundName(name, there.get((name.table, name.owner))) for name in names]
        columns = self._columns([one.table_id for one in found if one.has_rows])
        return [self._found(one, columns) for one in found]

    def find_table(self, name: TableName) -> FoundTable:
        """Return the object that a name refers to."""
        (found,) = self.find_tables([name])
        return found

    def tables(self, names: Sequence[TableName]) -> list[Table]:
        """Return the identity and columns of tables.

        Raises:
            BadOption: one of them does not exist, or is of a kind that is not logged.
        """
        return [_required(found) for found in self.find_tables(names)]

    def table(self, name: TableName) -> Table:
        """Return a table's identity and columns.

        Raises:
            BadOption: it does not exist, or is of a kind that is not logged.
        """
        return _required(self.find_table(name))

    def _found(self, one: _FoundName, columns: Mapping[int, _Columns]) -> FoundTable:
        if not one.name.owner:
            return FoundTable(one.name, NO_OWNER, near=self._tables_like(one.name))
        if one.row is None:
            return FoundTable(one.name, MISSING, near=self._tables_like(one.name))
        if not one.has_rows:
            return FoundTable(one.name, one.kind)
        _, _, _, partition, created, *_ = one.row
        own = columns.get(one.table_id, ())
        table = Table(
            one.name,
            one.table_id,
            integer(partition, statements.TABLE, "partnum"),
            (created or "").strip(),
            tuple(column for column, is_hidden in own if not is_hidden),
            hidden=tuple(column.name for column, is_hidden in own if is_hidden),
        )
        return FoundTable(one.name, one.kind, table)

    def tables_there(self) -> list[tuple[str, str]]:
        """Return owner and name of all logged user tables, sorted."""
        question = statements.CAPTURABLE_TABLES
        rows = checked_rows(self._transport, question)
        logged = (row for row in rows if not integer(row[2], question, "flags") & _RAW_TABLE)
        return sorted(
            ((owner or "").rstrip(" "), (name or "").rstrip(" ")) for owner, name, _ in logged
        )

    def _tables_like(self, wanted: TableName) -> tuple[str, ...]:
        """Return tables with that name and another owner, or else tables with a similar name."""
        try:
            rows = checked_rows(self._transport, statements.TABLES)
        except (AccessRefused, ServerRefused):  # the result only improves an error message
            return ()
        # the cost of a comparison grows with the square of the name's length; no real name is longer
        rows = [row for row in rows[:_MOST_COMPARED] if len(row[1] or "") <= _NAME_CHARACTERS]
        there = [((owner or "").rstrip(" "), (table or "").rstrip(" ")) for owner, table in rows]
        near = difflib.get_close_matches(wanted.table, [table for _, table in there])
        same = [each for each in there if each[1].lower() == wanted.table.lower()]
        names = same or [each for each in there if each[1] in near]
        return tuple(f"{quoted(owner)}.{quoted(table)}" for owner, table in names[:_MOST_NAMED])

    def databases(self) -> tuple[str, ...]:
        """Return the server's user databases; empty if the user may not read them."""
        return read_databases(self._transport)

    def primary_keys(self, tables: Sequence[Table]) -> list[bool]:
        """Return for each table whether it has a primary key."""
        numbers = [table.table_id for table in tables]
        found = rows_by_number(self._transport, statements.PRIMARY_KEY, numbers)
        return [number in found for number in numbers]

    def keys(self, tables: Sequence[Table]) -> list[TableKeys]:
        """Return the unique keys of each table."""
        return self._keys.of(tables)

    def row_locks(self, tables: Sequence[Table]) -> list[RowLocks]:
        """Return the lock mode and the approximate number of rows of each table."""
        return self._keys.row_locks(tables)

    def require_readable(self, statement: str) -> None:
        """Run a query without rows, to check that the user may read its tables.

        Raises:
            AccessRefused: a privilege is missing.
        """
        self._transport.rows(statement)

    def lock_holders(self, name: TableName) -> tuple[int, ...]:
        """Return the sessions that hold locks on a table; empty if the user may not read them."""
        question = statements.LOCK_HOLDERS
        try:
            rows = checked_rows(self._transport, question, name.database, name.table)
        except (AccessRefused, ServerRefused):
            return ()
        return tuple(sorted({integer(owner, question, "owner") for owner, _ in rows if owner}))

    def writers(self, name: TableName) -> tuple[int, ...]:
        """Return the sessions with an open transaction that has written a table.

        Source: Administrator's Reference, "syslocks": X and IX are exclusive locks.
        """
        question = statements.LOCK_HOLDERS
        rows = checked_rows(self._transport, question, name.database, name.table)
        found = {integer(owner, question, "owner") for owner, kind in rows if "X" in str(kind)}
        return tuple(sorted(found))

    def ignores_case(self) -> bool:
        """Return whether the database compares NCHAR and NVARCHAR case-insensitively."""
        question = statements.IGNORES_CASE
        return bool(integer(self._one(question, self._database), question, "is_case_insens"))

    def _columns(self, table_ids: Sequence[int]) -> dict[int, _Columns]:
        """Return the columns of tables, by the tables' ids, and whether each is hidden."""
        rows = rows_by_number(self._transport, statements.COLUMNS, table_ids)
        return {table_id: tuple(map(_column, found)) for table_id, found in rows.items()}

    def log_full_rows(self, tables: Sequence[Table]) -> list[bool]:
        """Return for each table whether full row logging is on for all its partitions."""
        return self._partitions.log_full_rows(tables)

    def logs_full_rows(self, table: Table) -> bool:
        """Return whether full row logging is on for all partitions of a table."""
        return self.log_full_rows([table])[0]

    def without_row_logging(self, tables: Sequence[Table]) -> list[Table]:
        """Return the tables that have a partition with full row logging off."""
        on = self.log_full_rows(tables)
        return [table for table, is_on in zip(tables, on, strict=True) if not is_on]

    def created(self, tables: Sequence[Table]) -> list[int]:
        """Return when the youngest partition of each table was created, in seconds since 1970."""
        return self._partitions.created(tables)

    def counters(self, tables: Sequence[Table]) -> list[RowCounters]:
        """Return how many rows of each table were written since it was opened."""
        return self._partitions.counters(tables)

    def serials(self, tables: Sequence[Table]) -> list[SerialCounters]:
        """Return the counters of the SERIAL columns of each table."""
        return self._partitions.serials(tables)

    def sizes(self, tables: Sequence[Table]) -> list[TableSize]:
        """Return the size of each table, as of the last UPDATE STATISTICS."""
        numbers = [table.table_id for table in tables]
        found = rows_by_number(self._transport, statements.TABLE_SIZES, numbers)
        return [
            TableSize(
                integer(rowsize, statements.TABLE_SIZES, "rowsize"), max(int(float(nrows or 0)), 0)
            )
            for [(rowsize, nrows)] in (found[number] for number in numbers)
        ]

    def pending_alters(self, tables: Sequence[Table]) -> list[bool]:
        """Return for each table whether it may have rows in the layout from before an ALTER TABLE."""
        return self._partitions.pending_alters(tables)

    def _first(self, statement: str, *arguments: int | str) -> Row:
        rows = checked_rows(self._transport, statement, *arguments)
        if not rows or rows[0][0] is None:
            raise ServerRefused(
                f"the server returned no row for {statement!r}.",
                "Check that the user may read the tables of that query.",
            )
        return rows[0]

    def _one(self, statement: str, *arguments: int | str) -> str:
        return str(self._first(statement, *arguments)[0])


class TableSize(NamedTuple):
    """The bytes of a row, and the number of rows."""

    row_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class _FoundName:
    """A name, and its row of `systables` if it has one."""

    name: TableName
    row: Row | None

    @property
    def table_id(self) -> int:
        return integer(self.row[2], statements.TABLE, "tabid") if self.row else 0

    @property
    def kind(self) -> str:
        assert self.row is not None  # else it is of no kind
        *_, letter, flags = self.row
        kind = TABLE_KINDS.get((letter or "").strip(), "object of an unknown kind")
        is_raw = integer(flags, statements.TABLE, "flags") & _RAW_TABLE
        return RAW_TABLE if kind == "table" and is_raw else kind

    @property
    def has_rows(self) -> bool:
        """Whether it is a table that stores rows, logged or not."""
        return bool(self.name.owner) and self.row is not None and self.kind in ("table", RAW_TABLE)


def _required(found: FoundTable) -> Table:
    require(found.finding())
    if found.table is None:
        raise ServerRefused(
            f"the catalog has no columns for {found.name}.",
            "The table may have been dropped at the same time: start again.",
        )
    return found.table


_Columns = tuple[tuple[Column, bool], ...]


def _column(row: Row) -> tuple[Column, bool]:
    name, *numbers = row
    named = zip(numbers, ("coltype", "collength", "extended_id", "colattr"), strict=True)
    kind, length, extended_id, attributes = (
        integer(value, statements.COLUMNS, column, MOST_32_BITS) for value, column in named
    )
    column = Column((name or "").rstrip(" "), type_text(kind, length, extended_id))
    return column, bool(attributes & _HIDDEN)


def read_databases(transport: Transport) -> tuple[str, ...]:
    """Return the names of the user databases; empty if the user may not read them."""
    try:
        rows = checked_rows(transport, statements.DATABASES)
    except (AccessRefused, ServerRefused):  # the result only improves an error message
        return ()
    names = {(name or "").strip() for (name,) in rows}
    return tuple(sorted(names - _SYSTEM_DATABASES - {""}))


def source_digest(server_name: str, database: str) -> str:
    """Return a short digest of server and database, to which positions belong."""
    return _digest([server_name.strip(), database])


def table_digest(table: Table) -> str:
    """Return a short digest of a table's identity and captured columns."""
    # with masks: rows before and after a changed mask could not be compared
    columns = [
        (column.name, column.type_text, *([column.mask.fingerprint] if column.mask else []))
        for column in table.delivered
    ]
    return _digest([str(table.name), table.table_id, table.partition_number, table.created, columns])


def _digest(facts: object) -> str:
    text = json.dumps(facts, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
