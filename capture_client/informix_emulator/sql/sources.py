"""Resolve the name of a table: a user's table or a system table.

A system table is filled from `system_tables` when a statement that names it runs. The server decides
who may read it, with the errors of a real server. What a query sees of rows that others have changed is
decided here, when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

from ..column_types.encoding import EmulatedType
from ..column_types.locales import codec_of
from ..server import CDC_DATABASE, EmulatedServer
from ..sql_errors import sql_error
from ..system_tables.columns import columns_of
from ..system_tables.rows import find_rows
from ..tables.tables import EmulatedTable, TableColumn
from .language.functions import Surroundings
from .language.values import store
from .storage import Storage, Store
from .work import FILE_IS_LOCKED, Blocked, Work


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A system table."""

    database: str
    name: str
    columns: tuple[TableColumn, ...]


SourceTable = Storage | Catalogue


class Surface(Surroundings, Protocol):
    """What reading a statement asks of the session that it came in."""

    delimits_names: bool

    @property
    def codec(self) -> str:
        """How the open database encodes characters."""
        ...

    def number_of(self, kind: EmulatedType) -> int:
        """Return the number by which SQLite's functions know a type."""
        ...

    def table(self, database: str, owner: str, name: str) -> SourceTable:
        """Return what a name leads to."""
        ...


class Finder:
    """Finds tables by name, as a user who is in a database."""

    def __init__(self, server: EmulatedServer, rows: Store, user: str) -> None:
        self.server = server
        self.rows = rows
        self.user = user
        self.temporary: dict[str, Storage] = {}

    def find(self, current: str, database: str, owner: str, name: str) -> SourceTable:
        """Return the table of a name; SqlError -206 if there is none, -387 or -329 of its database."""
        if not database and not owner and name in self.temporary:
            return self.temporary[name]
        database = self.database(current, database)
        table = self.user_table(database, owner, name)
        return self._catalogue(database, owner, name) if table is None else self.rows.of(table)

    def database(self, current: str, named: str) -> str:
        """Return the database that is meant; SqlError if there is none or the user may not enter."""
        name = named.lower() or current
        if not name:
            raise sql_error(-349)
        if name not in self.server.databases:
            raise sql_error(-329)
        if named and name == CDC_DATABASE and self.user not in self.server.cdc_users:
            raise sql_error(-387)
        return name

    def user_table(self, database: str, owner: str, name: str) -> EmulatedTable | None:
        """Return a user's table; where the owner is not named, the user's own or the only one."""
        tables = self.server.databases[database].tables
        if owner:
            return tables.get((owner, name))
        own = tables.get((self.user, name))
        if own is not None:
            return own
        found = [table for (_, other), table in tables.items() if other == name]
        return found[0] if found else None

    def _catalogue(self, database: str, owner: str, name: str) -> Catalogue:
        is_theirs = owner in ("", self.server.owner)
        if not is_theirs or find_rows(self.server, database, name) is None:
            raise sql_error(-206, name)
        if not self.server.may_select(self.user, name):
            raise sql_error(-272, name)
        codec = codec_of(self.server.databases[database].locale)
        columns = tuple([TableColumn(column, kind, False) for column, kind in columns_of(name, codec)])
        return Catalogue(database, name, columns)

    def place(self, table: Catalogue) -> str:
        """Return where SQLite finds a system table; its rows may be old ones."""
        place = f"k_{table.database}_{table.name}"
        if place not in self.rows.filled:
            names = ", ".join(f"c{n} COLLATE RTRIM" for n in range(len(table.columns)))
            self.rows.run(f"CREATE TABLE {place} ({names})")
            self.rows.filled[place] = []
        return place

    def fill(self, table: Catalogue) -> str:
        """Write a system table's rows where SQLite finds them: those that have changed since."""
        place, make = self.place(table), find_rows(self.server, table.database, table.name)
        if make is None:
            raise sql_error(-206, table.name)
        rows, previous = make(), self.rows.filled[place]
        stored = [
            (number, *[store(c.type, row.get(c.name)) for c in table.columns])
            for number, (row, old) in enumerate(zip_longest(rows, previous[: len(rows)]), start=1)
            if row != old
        ]
        if len(rows) < len(previous):
            self.rows.run(f"DELETE FROM {place} WHERE rowid > ?", (len(rows),))
        if stored:
            names = "".join(f", c{n}" for n in range(len(table.columns)))
            placeholders = ", ?" * len(table.columns)
            self.rows.run_many(f"REPLACE INTO {place} (rowid{names}) VALUES (?{placeholders})", stored)
        self.rows.filled[place] = rows
        return place


LAST_COMMITTED = "last committed"


@dataclass(frozen=True, slots=True)
class TableView:
    """How a session sees rows while it runs a statement."""

    isolation: str
    work: Work | None
    number: int  # of the work, or one that no work has

    def must_see(self, table: Storage, meets_locked: Callable[[], bool]) -> None:
        """Blocked if rows that would have to be read are locked, and locks count."""
        if self.isolation == "dirty read" or table.is_temporary:
            return
        holders = {n for n, mode in table.table_locks.items() if mode == "exclusive"} - {self.number}
        if holders:
            raise Blocked(sql_error(-244, isam=FILE_IS_LOCKED), holders, table)
        if self.shows_last_committed(table) or not table.is_locked_by_others(self.number):
            return
        if meets_locked():
            raise self.blocked(table)

    def blocked(self, table: Storage) -> Blocked:
        """Return that a row is locked which would have to be read."""
        return Blocked(sql_error(-244), table.lockers - {self.number}, table)

    def shows_last_committed(self, table: Storage) -> bool:
        """Whether rows are shown as committed; not so where pages are locked (ids_sqs_1165)."""
        return self.isolation == LAST_COMMITTED and not table.table.locks_pages

    def looks_for_locks(self, table: Storage) -> bool:
        """Whether a row that somebody else has locked is in the way."""
        is_free = self.isolation == "dirty read" or table.is_temporary
        return not is_free and not self.shows_last_committed(table)

    def words(self, table: Storage) -> str:
        """Return what SQLite is to read in place of a table."""
        if not self.shows_last_committed(table) or not table.is_locked_by_others(self.number):
            return table.rows
        columns = ", ".join(["rid", *table.names])
        others = f"work <> {self.number}"
        return (
            f"(SELECT {columns} FROM {table.rows} WHERE rid NOT IN"
            f" (SELECT rid FROM {table.before} WHERE {others})"
            f" UNION ALL SELECT {columns} FROM {table.before} WHERE existed AND {others})"
        )

    def locked_words(self, table: Storage) -> str:
        """Return what SQLite is to read to find the rows that others have locked, or their pages."""
        columns = ", ".join(["rid", *table.names])
        others = f"work <> {self.number}"
        lock = "rid" if table.rows_per_lock == 1 else f"rid / {table.rows_per_lock}"
        return (
            f"(SELECT {columns} FROM {table.rows} WHERE {lock} IN"
            f" (SELECT {lock} FROM {table.before} WHERE {others})"
            f" UNION ALL SELECT {columns} FROM {table.before} WHERE existed AND {others})"
        )


def filled_in(sql: str, words: Sequence[str]) -> str:
    """Put the words for tables in the place of their marks."""
    for number, word in enumerate(words):
        sql = sql.replace(f"\x01{number}\x01", word)
    return sql
