"""The rows of tables, in one in-memory SQLite database per server.

    t<n>    the current rows: rid, c0, c1 ..       (a rid is never reused)
    b<n>    the committed state of rows that open transactions changed: rid, work, existed, c0 ..
            a row here is the lock on that row, and in a table that locks pages on its neighbours too

SQLite only stores and finds rows; undo and visibility are ours (`work.py`). Everything happens under
the log's condition, so that rows and log never differ.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import finalize

from ..answers import CheckStatement, WireForm
from ..locks import Waiting
from ..sql_errors import SqlError, sql_error
from ..system_tables.rows import CatalogRow
from ..tables.definition import Definition, Reference
from ..tables.tables import EmulatedTable, Index, TableColumn
from .language.arithmetic import Functions
from .language.families import SERIALS, Family, family_of
from .language.values import Stored
from .watching import STEPS_BETWEEN_LOOKS, QueryWatch, fetched

if TYPE_CHECKING:
    from ..server import EmulatedServer

_MOST_BYTES = 1 << 25  # of a value: two of the longest requests
RowValues = tuple[Stored, ...]
_PAGE_BYTES, _PAGE_FRAME_BYTES, _SLOT_BYTES, _MOST_ROWS = 2048, 28, 4, 255  # Administrator's Reference


@dataclass(slots=True, eq=False)
class Storage:
    """Where the rows of a table are."""

    number: int
    table: EmulatedTable
    is_sql_made: bool = False
    is_temporary: bool = False
    has_log: bool = True  # rows of it are undone with a transaction
    table_locks: dict[int, str] = field(default_factory=dict)  # shared or exclusive, by work
    lockers: set[int] = field(default_factory=set)  # works with locked rows
    is_gone: bool = False
    revoked: set[str] = field(default_factory=set)  # privileges that public no longer has
    image_form: WireForm | None = None  # of images of its rows, if there are any: `row_images`

    @property
    def rows(self) -> str:
        """SQLite's name of the rows."""
        return f"t{self.number}"

    @property
    def before(self) -> str:
        """SQLite's name of the committed images of changed rows."""
        return f"b{self.number}"

    @property
    def images(self) -> str:
        """SQLite's name of the images of rows."""
        return f"p{self.number}"

    @property
    def names(self) -> list[str]:
        """The columns, comma by comma, as SQLite names them."""
        return [f"c{n}" for n in range(len(self.table.columns))]

    @property
    def columns(self) -> Sequence[TableColumn]:
        """The columns."""
        return self.table.columns

    @property
    def definition(self) -> Definition:
        """What its CREATE TABLE said beyond the columns."""
        return self.table.definition

    @property
    def rows_per_lock(self) -> int:
        """How many rows go with the lock of one: those of its page, or itself alone.

        A row's page follows from its number; that what varies takes one byte is our choice.
        """
        if not self.table.locks_pages:
            return 1
        row_bytes = self.table.fixed_bytes + len(self.table.variable) + _SLOT_BYTES
        return max(1, min(_MOST_ROWS, (_PAGE_BYTES - _PAGE_FRAME_BYTES) // row_bytes))

    def place_of(self, name: str) -> int:
        """Return the place of a column; SqlError -217 if there is none of that name."""
        for place, column in enumerate(self.table.columns):
            if column.name == name:
                return place
        raise sql_error(-217, name)

    def is_locked_by_others(self, work: int) -> bool:
        """Whether another transaction has changed rows."""
        return bool(self.lockers - {work})


def is_serial(column: TableColumn) -> bool:
    """Whether a column gives numbers by itself."""
    return column.type.coltype in SERIALS


class Store:
    """SQLite, and the storages of a server's tables."""

    def __init__(self, server: EmulatedServer) -> None:
        self._server = server
        self._connection = sqlite3.connect(
            ":memory:", check_same_thread=False, isolation_level=None, cached_statements=512
        )
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
        finalize(self, self._connection.close)
        self._watch = QueryWatch()
        self._connection.set_progress_handler(self._watch.check_time, STEPS_BETWEEN_LOOKS)
        self.functions = Functions(self._connection, self._watch.look_from_function)
        self.functions.add(self._connection, "f_object_of_file", 2, server.sbspace.create_of_file)
        self._storages: dict[str, Storage] = {}
        self._latest: Storage | None = None  # what `of` found last: it is asked for each row written
        self._next = 1
        self.waiting = Waiting()
        self.filled: dict[
            str, list[CatalogRow]
        ] = {}  # what system tables held when they were last filled

    def watched_by(self, check: CheckStatement) -> AbstractContextManager[None]:
        """Let `check` end the queries of a block by what it raises."""
        return self._watch.by(check)

    def run(self, sql: str, values: Sequence[Stored] = ()) -> sqlite3.Cursor:
        """Run a statement of SQLite that finds nothing; SqlError if it is beyond what SQLite can."""
        with self._refusing():
            return self._connection.execute(sql, values)

    def run_many(self, sql: str, rows: Iterable[Sequence[Stored]]) -> None:
        """Run a statement of SQLite once for each row."""
        with self._refusing():
            self._connection.executemany(sql, rows)

    def find(self, sql: str, values: Sequence[Stored] = ()) -> list[RowValues]:
        """Run a query of SQLite; SqlError if one of our functions refused a value."""
        with self._refusing(), self._watch.over_query():
            return self._connection.execute(sql, values).fetchall()

    def find_within(self, most_bytes: int, sql: str, values: Sequence[Stored]) -> list[RowValues]:
        """Run a client's query; SqlError as of `find`, and -208 for rows of more bytes."""
        with self._refusing(), self._watch.over_query():
            return fetched(self._connection.execute(sql, values), most_bytes)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Return the SQL error number for an error of SQLite; a broken unique index has its own."""
        self.functions.failure = self._watch.error = None
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:  # by who watches, by a function of ours, or for a limit
            known = self._watch.error or self.functions.failure
            is_too_long = isinstance(error, sqlite3.DataError)
            raise known or sql_error(-1279 if is_too_long else -201) from None

    def check(self, sql: str, count: int) -> None:
        """SqlError -201 if SQLite does not understand a statement."""
        try:
            self._connection.execute(f"EXPLAIN {sql}", (None,) * count).close()
        except sqlite3.Error:
            raise sql_error(-201) from None

    @property
    def storages(self) -> list[Storage]:
        """Where the rows of all tables are, but for temporary ones."""
        return list(self._storages.values())

    def lock(self, storage: Storage, rid: int, work: int, committed: RowValues | None) -> None:
        """Lock a row, of which `committed` is what others may see: None if it is new."""
        blanks = committed or (None,) * len(storage.columns)
        placeholders = "".join(", ?" for _ in blanks)
        self.run(
            f"INSERT OR IGNORE INTO {storage.before} VALUES (?, ?, ?{placeholders})",
            (rid, work, int(committed is not None), *blanks),
        )
        storage.lockers.add(work)

    def unlock(self, storage: Storage, work: int) -> None:
        """Let the locks go that a work has on rows of a table."""
        storage.lockers.discard(work)
        if not storage.is_gone:
            self.run(f"DELETE FROM {storage.before} WHERE work = ?", (work,))

    def lockers_of(self, storage: Storage, rid: int | None = None) -> list[tuple[int, int]]:
        """Return the numbers of rows that are locked by who has changed them, and of the works."""
        where = " WHERE rid = ?" if rid is not None else " ORDER BY rid"
        given = (rid,) if rid is not None else ()
        found = self.find(f"SELECT rid, work FROM {storage.before}{where}", given)
        return [(int(rid or 0), int(work or 0)) for rid, work in found]

    def of(self, table: EmulatedTable) -> Storage:
        """Return where the rows of a table are; one that was altered has those of its columns."""
        if self._latest is not None and self._latest.table is table:
            return self._latest
        storage = self._storages.get(str(table.name))
        if storage is None or storage.table.tabid != table.tabid:
            storage = self.add(table)
        elif storage.table is not table:
            storage = self.altered(storage, table)
        self._latest = storage
        return storage

    def add(self, table: EmulatedTable) -> Storage:
        """Make room for the rows of a table."""
        storage = self.made(table)
        self.put(str(table.name), storage)
        return storage

    def made(self, table: EmulatedTable) -> Storage:
        """Make room for rows that only who holds the storage finds."""
        storage = Storage(self._next, table)
        database = self._server.databases.get(table.name.database)
        storage.has_log = database is not None and database.is_logged
        self._next += 1
        columns = [
            name + (" COLLATE RTRIM" if family_of(column.type) is Family.TEXT else "")
            for name, column in zip(storage.names, table.columns, strict=True)
        ]
        shown = "".join(f", {column}" for column in columns)
        self.run(f"CREATE TABLE {storage.rows} (rid INTEGER PRIMARY KEY AUTOINCREMENT{shown})")
        self.run(
            f"CREATE TABLE {storage.before}"
            f" (rid INTEGER PRIMARY KEY, work INTEGER, existed INTEGER{shown})"
        )
        for key in table.all_indexes:
            self.index(storage, key)
        return storage

    def index(self, storage: Storage, key: Index) -> None:
        """Create an index in SQLite; its name is never reused, even if its table is dropped."""
        columns = ", ".join(f"c{storage.place_of(name)}" for name in key.columns)
        unique = "" if key.kind == "D" else "UNIQUE "
        name = self.index_name(storage, key)
        self.run(f"CREATE {unique}INDEX {name} ON {storage.rows} ({columns})")
        if key.kind in "IU":  # two NULLs are the same to Informix, and not to SQLite
            places = [storage.place_of(column) for column in key.columns]
            keys = ", ".join(f"ifnull(c{place}, x'') COLLATE RTRIM" for place in places)
            some = " OR ".join(f"c{place} IS NULL" for place in places)
            self.run(f"CREATE UNIQUE INDEX {name}_n ON {storage.rows} ({keys}) WHERE {some}")

    def unindex(self, storage: Storage, key: Index) -> None:
        """Let SQLite drop an index."""
        for suffix in ("", "_n"):
            self.run(f"DROP INDEX IF EXISTS {self.index_name(storage, key)}{suffix}")

    @staticmethod
    def index_name(storage: Storage, key: Index) -> str:
        """Return SQLite's name of an index."""
        return f"i{storage.number}_{key.name.encode().hex()}"

    def put(self, name: str, storage: Storage | None) -> None:
        """Let a table's name lead to a storage, or to none."""
        self._latest = None
        if storage is None:
            self._storages.pop(name, None)
        else:
            self._storages[name] = storage

    def altered(
        self, storage: Storage, table: EmulatedTable, renamed: Mapping[str, str] | None = None
    ) -> Storage:
        """Return the storage of a table with other columns, with what the rows have in common.

        `renamed` maps new names to previous ones.
        """
        previous = {column.name: n for n, column in enumerate(storage.columns)}
        known = {column.name for column in table.columns}
        if not table.indexes and not table.primary_key:
            table.indexes = [i for i in storage.table.all_indexes if {*i.columns} <= known]
        names = {old: new for new, old in (renamed or {}).items()}
        table.definition = storage.definition.left_with(known, names)
        fresh = self.made(table)
        fresh.is_sql_made, table.last_serials = storage.is_sql_made, storage.table.last_serials
        fresh.table_locks, fresh.revoked = storage.table_locks, storage.revoked
        kept = []
        for column in table.columns:
            place = previous.get((renamed or {}).get(column.name, column.name))
            kept.append("NULL" if place is None else self._as(column, storage.columns[place], place))
        shown = "".join(f", {name}" for name in kept)
        self.find(
            f"SELECT rid{shown} FROM {storage.rows}"
        )  # names what does not fit, before it is kept
        self.run(f"INSERT INTO {fresh.rows} SELECT rid{shown} FROM {storage.rows}")
        self.put(str(table.name), fresh)
        return fresh

    def _as(self, column: TableColumn, previous: TableColumn, place: int) -> str:
        if column.type.spelling == previous.type.spelling:
            return f"c{place}"
        numbers = self.functions.number_of(column.type), self.functions.number_of(previous.type)
        return f"f_convert({numbers[0]}, {numbers[1]}, c{place})"

    def referring(self, storage: Storage) -> list[tuple[Storage, Reference]]:
        """Return what refers to a table, and by which constraint."""
        return [
            (other, reference)
            for other in self._storages.values()
            for reference in other.definition.references
            if reference.other == str(storage.table.name)
        ]

    def forget(self, storage: Storage) -> None:
        """Let the rows of a storage go."""
        storage.is_gone = True
        self._latest = None
        self.run(f"DROP TABLE IF EXISTS {storage.rows}")
        self.run(f"DROP TABLE IF EXISTS {storage.before}")
        self.run(f"DROP TABLE IF EXISTS {storage.images}")

    def next_page(self, storage: Storage) -> int:
        """Return the number of the first row of a page that has none yet."""
        found = self.find(f"SELECT max(seq) FROM sqlite_sequence WHERE name = '{storage.rows}'")
        return (int(found[0][0] or 0) // storage.rows_per_lock + 1) * storage.rows_per_lock

    def insert(self, storage: Storage, values: RowValues, *, replaces: bool = False) -> int:
        """Add a row; SqlError if a unique index holds its key already."""
        placeholders = "".join(", ?" for _ in values)
        verb = "INSERT OR REPLACE" if replaces else "INSERT"
        try:
            cursor = self.run(f"{verb} INTO {storage.rows} VALUES (NULL{placeholders})", values)
        except sqlite3.IntegrityError as reason:
            raise self._duplicate(storage, reason) from None
        return int(cursor.lastrowid or 0)

    def put_row(self, storage: Storage, rid: int, values: RowValues) -> None:
        """Add a row that has its number already; SqlError as of `insert`."""
        placeholders = "".join(", ?" for _ in values)
        try:
            self.run(f"INSERT INTO {storage.rows} VALUES (?{placeholders})", (rid, *values))
        except sqlite3.IntegrityError as reason:
            raise self._duplicate(storage, reason) from None

    def emptied(self, storage: Storage) -> list[tuple[int, RowValues]]:
        """Take all rows out, and return them with their numbers."""
        taken = self.find(f"DELETE FROM {storage.rows} RETURNING *")
        return [(int(rid or 0), tuple(values)) for rid, *values in taken]

    def restore_all(self, storage: Storage, rows: Sequence[tuple[int, RowValues]]) -> None:
        """Put rows back that `emptied` took out."""
        for rid, values in rows:
            self.restore(storage, rid, values)

    def restore(self, storage: Storage, rid: int, values: RowValues) -> None:
        """Put a row back as it was, unless the table has gone meanwhile."""
        placeholders = "".join(", ?" for _ in values)
        if not storage.is_gone:
            self.run(f"INSERT OR REPLACE INTO {storage.rows} VALUES (?{placeholders})", (rid, *values))

    def update(self, storage: Storage, rid: int, values: RowValues) -> None:
        """Change a row; SqlError if a unique index holds its key already."""
        changes = ", ".join(f"{name} = ?" for name in storage.names)
        try:
            self.run(f"UPDATE {storage.rows} SET {changes} WHERE rid = ?", (*values, rid))
        except sqlite3.IntegrityError as reason:
            raise self._duplicate(storage, reason) from None

    def delete(self, storage: Storage, rid: int) -> None:
        """Take a row out."""
        if not storage.is_gone:
            self.run(f"DELETE FROM {storage.rows} WHERE rid = ?", (rid,))

    def _duplicate(self, storage: Storage, reason: sqlite3.IntegrityError) -> SqlError:
        """Return the error of a row whose key is there: a constraint's is -268, an index's -239."""
        text = str(reason)
        for key in storage.table.all_indexes:
            columns = ", ".join(f"{storage.rows}.c{storage.place_of(name)}" for name in key.columns)
            ends = f": {columns}", f"'{self.index_name(storage, key)}_n'"
            if text.endswith(ends) and key.kind != "D":
                if key.kind == "I":
                    return sql_error(-239, key.columns[0])
                return sql_error(-268, f"{storage.table.name.owner}.{key.name}")
        return sql_error(-239, storage.columns[0].name)
