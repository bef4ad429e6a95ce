"""The context of a session's statements: its database, its isolation, its access to SQLite.

All queries to SQLite go through here, so that every answer honours isolation and locks. The statements
of one session run one at a time, under the log's condition.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ..column_types.encoding import EmulatedType
from ..column_types.locales import codec_of
from ..server import EmulatedServer
from ..sql_errors import sql_error
from ..tables.tables import Database
from .language.families import BIGINT, INTEGER, SERIALS, Family, family_of, named_type, text_type
from .language.values import DateForm, Stored, dated_type
from .sources import LAST_COMMITTED, Catalogue, Finder, SourceTable, TableView, filled_in
from .storage import RowValues, Storage, Store
from .work import Work

MOST_ANSWER_BYTES = 1 << 29  # of memory for the rows that a query finds at once: our choice
NO_WORK = -1  # the number of a session that has no transaction
_MAY_BE_LAST = ("dirty read", "committed read")
T = TypeVar("T")


class Waits(Protocol):
    """Does what may meet locks of others under the log's condition, and waits for them as said."""

    def __call__(self, step: Callable[[], T]) -> T:
        """Return what the step returns."""
        ...


def _no_wait(step: Callable[[], T]) -> T:
    return step()


def first_isolation(database: Database | None) -> str:
    """Return how a session reads that has said nothing (Guide to SQL: Syntax, "SET ISOLATION")."""
    if database is None or (database.is_logged and not database.is_ansi):
        return "committed read"
    return "repeatable read" if database.is_ansi else "dirty read"


class SessionView:
    """A session's place, isolation and open transaction, and how it reads."""

    def __init__(
        self,
        server: EmulatedServer,
        store: Store,
        user: str,
        database: str,
        delimits_names: bool,
        session: int = 0,
    ) -> None:
        self.server = server
        self.store = store
        self.user = user
        self.database = database
        self.delimits_names = delimits_names
        self.session = session
        self.isolation = first_isolation(server.databases.get(database))
        self.uses_last_committed = ""  # what the session has set, if it has
        self.is_closed = False
        self.work: Work | None = None
        self.waits: Waits = _no_wait
        self.cursor_work: Callable[[], Work] | None = None  # who holds the locks of a cursor
        self.forget_cursor: Callable[[Work], None] = lambda _work: None
        self.last_serials: dict[int, int] = dict.fromkeys(SERIALS, 0)  # by type
        self.date_form: DateForm | None = None  # DBDATE of the login
        self.finder = Finder(server, store, user)

    @property
    def codec(self) -> str:
        """How the open database encodes characters."""
        database = self.server.databases.get(self.database)
        return codec_of(database.locale) if database else "utf-8"

    def number_of(self, kind: EmulatedType) -> int:
        """Return the number by which SQLite's functions know a type."""
        return self.store.functions.number_of(self.dated(kind))

    def dated(self, kind: EmulatedType) -> EmulatedType:
        """Return a type as this session writes its values: a DATE by DBDATE."""
        if self.date_form is None or family_of(kind) is not Family.DATE:
            return kind
        return dated_type(self.date_form)

    def table(self, database: str, owner: str, name: str) -> SourceTable:
        """Return what a name leads to; views can be made, but not read."""
        found = self.finder.find(self.database, database, owner, name)
        if isinstance(found, Storage):
            if "select" in found.revoked and self.user not in (
                found.table.name.owner,
                self.server.owner,
            ):
                raise sql_error(-272, name)
            if found.table.kind == "view":
                raise sql_error(-206, name)
        return found

    def now(self) -> datetime.datetime:
        """Return the server's clock, in UTC."""
        return datetime.datetime.fromtimestamp(self.server.clock(), datetime.UTC).replace(tzinfo=None)

    def server_fact(self, name: str, argument: str) -> tuple[EmulatedType, object]:
        """Return what DBINFO tells, and words such as USER."""
        server, (serial, serial8, bigserial) = self.server, SERIALS
        facts: dict[tuple[str, str], tuple[EmulatedType, object]] = {
            ("dbservername", ""): (text_type(128), server.name),
            ("user", ""): (named_type("char(32)"), self.user),
            ("dbname", ""): (text_type(128), self.database),
            ("dbhostname", ""): (text_type(255), "localhost"),
            ("version", "full"): (text_type(255), server.version),
            ("version", "server-type"): (text_type(255), server.version.partition(" Version")[0]),
            ("version", "major"): (text_type(255), server.version.rpartition(" ")[2].split(".")[0]),
            ("sessionid", ""): (INTEGER, self.session),
            ("utc_current", ""): (INTEGER, int(server.clock())),
            ("sqlca.sqlerrd1", ""): (INTEGER, self.last_serials[serial]),
            ("serial8", ""): (BIGINT, self.last_serials[serial8]),
            ("bigserial", ""): (BIGINT, self.last_serials[bigserial]),
        }
        if (name, argument) not in facts:
            raise sql_error(-728)
        return facts[name, argument]

    # --- asking SQLite --------------------------------------------------------------------------

    @property
    def work_number(self) -> int:
        """The number of the open transaction."""
        return self.work.number if self.work else NO_WORK

    @property
    def view(self) -> TableView:
        """How rows are seen now."""
        return TableView(self._shown_isolation, self.work, self.work_number)

    @property
    def _shown_isolation(self) -> str:
        """The isolation, with what USELASTCOMMITTED makes of it: the session's, else the server's."""
        setting = self.uses_last_committed or self.server.configuration.get("USELASTCOMMITTED", "none")
        setting = setting.lower()
        is_meant = setting == "all" or setting == self.isolation
        return LAST_COMMITTED if is_meant and self.isolation in _MAY_BE_LAST else self.isolation

    def is_there(self, storage: Storage) -> bool:
        """Whether a table's name still leads to the rows that it led to."""
        name = storage.table.name
        if storage.is_temporary:
            return self.finder.temporary.get(name.table) is storage
        database = self.server.databases.get(name.database)
        table = database.tables.get((name.owner, name.table)) if database else None
        return table is not None and self.store.of(table) is storage

    def words(self, table: SourceTable) -> str:
        """Return what SQLite is to read in place of a table."""
        return self.finder.fill(table) if isinstance(table, Catalogue) else self.view.words(table)

    def check(self, sql: str, tables: Sequence[SourceTable], count: int) -> None:
        """SqlError -201 if SQLite does not understand a statement."""
        places = [self.finder.place(t) if isinstance(t, Catalogue) else t.rows for t in tables]
        self.store.check(filled_in(sql, places), count)

    def find(self, sql: str, given: Sequence[Stored]) -> list[RowValues]:
        """Run a query whose marks are filled in."""
        return self.store.find_within(MOST_ANSWER_BYTES, sql, given)

    def rows(
        self, sql: str, tables: Sequence[SourceTable], given: Sequence[Stored], probe: str = ""
    ) -> list[RowValues]:
        """Run a query; Blocked if it meets rows that others have locked."""
        view = self.view
        for table in tables:
            if isinstance(table, Storage):

                def meets_locked(table: Storage = table) -> bool:
                    if not probe:
                        return True
                    return bool(self.find(filled_in(probe, [view.locked_words(table)]), given))

                view.must_see(table, meets_locked)
        found = self.find(filled_in(sql, [self.words(table) for table in tables]), given)
        if self.isolation == "repeatable read":
            for table in tables:
                if isinstance(table, Storage) and not table.is_temporary:
                    self._keep(table)
        return found

    def _keep(self, table: Storage) -> None:
        """Lock a table that was read until the transaction ends; what is in none has ended."""
        database = self.server.databases.get(self.database)
        if self.work is None and database is not None and database.is_ansi:
            assert self.cursor_work is not None
            self.cursor_work()
        if self.work is not None:
            self.work.lock_table(table, "shared")

    def locked_rows(self, sql: str, tables: Sequence[SourceTable], given: Sequence[Stored]) -> set[int]:
        """Return which rows of the first table, locked by others, a condition holds for."""
        first, *rest = tables
        assert isinstance(first, Storage)
        words = [self.view.locked_words(first), *(self.words(table) for table in rest)]
        return {int(row[0] or 0) for row in self.find(filled_in(sql, words), given)}
