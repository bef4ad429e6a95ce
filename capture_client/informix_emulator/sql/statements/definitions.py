"""Parse and run CREATE, DROP, ALTER and RENAME.

The server's own methods make and alter tables, so that the catalogue and captures see them; this module
handles the rows, and undoes a change with its transaction. A table with full row logging cannot be
altered or dropped (-19816, see `EmulatedServer.alter_table`). Source: Guide to SQL: Syntax.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...answers import StatementOutcome, StatementType
from ...server import CDC_DATABASE, SYSTEM_DATABASE, EmulatedServer
from ...sql_errors import sql_error
from ...system_tables.constraints import key_of
from ...tables.definition import Definition, Reference
from ...tables.tables import HIDDEN, EmulatedTable, EmulatedTableName, Index, make_table
from ..language.families import named_type
from ..language.tokens import StatementTokens
from ..reading import SessionView
from ..storage import Storage, Store
from ..work import Work
from .plans import BoundValues, Plan
from .queries import Queries
from .rules import Rules
from .table_text import ColumnText, ReferenceText, TableText, TableTextReader

RunStatement = Callable[[Work], None]
TABLE_OPTIONS = ("in", "extent", "next", "lock", "with")


# Shadow columns: names, types and syscolumns.colattr (Guide to SQL: Syntax, "Using the WITH VERCOLS
# Option", "Using the WITH ERKEY Keywords", "Using the WITH CRCOLS Option"; SQL Reference, "SYSCOLUMNS")
_SHADOW_COLUMNS = {
    "vercols": (("ifx_insert_checksum", "integer", 4), ("ifx_row_version", "integer", 2)),
    "erkey": (
        ("ifx_erkey_1", "integer", 16),
        ("ifx_erkey_2", "integer", 32),
        ("ifx_erkey_3", "smallint", 64),
    ),
    "crcols": (("cdrserver", "integer", 0), ("cdrtime", "integer", 0)),
}


@dataclass(slots=True)
class TableOptions:
    """What is said of a table behind its columns."""

    has_log: bool = True
    shadows: list[tuple[str, str, int]] = field(default_factory=list)
    lock_mode: str | None = None

    @property
    def locks_pages(self) -> bool:
        """Whether a row is locked with its page."""
        return self.lock_mode == "page"


class Definitions:
    """Reads the statements that make tables and databases."""

    def __init__(self, tokens: StatementTokens, reading: SessionView) -> None:
        self.tokens = tokens
        self.reading = reading
        self.server: EmulatedServer = reading.server
        self.store = reading.store
        self.queries = Queries(tokens, reading)
        self.reader = TableTextReader(tokens, self.queries)

    def plan(self, run: RunStatement) -> Plan:
        """Return the plan of a definition, everything of which is read."""
        self.tokens.expect_end()

        def change(work: Work, _given: BoundValues) -> StatementOutcome:
            run(work)
            if self.server.databases[self.reading.database].is_logged:
                work.log().write_definition()  # no capture shows it
            return StatementOutcome()

        return Plan(StatementType.OTHER, change=change)

    # --- tables ---------------------------------------------------------------------------------

    def create_table(self, kind: str) -> Plan:
        """Read CREATE [STANDARD | RAW | TEMP] TABLE."""
        if_missing = self.tokens.accept("if", "not", "exists")
        database, owner, name = self.queries.table_name()
        self.tokens.expect("(")
        text = self.reader.items()
        options = self.options()
        if kind == "temp":
            return self.plan(lambda work: self._make_temporary(work, name, text, options.has_log))
        text.columns += [ColumnText(shadow, named_type(kind)) for shadow, kind, _ in options.shadows]
        database = self.reading.finder.database(self.reading.database, database)
        full = EmulatedTableName(database, owner or self.reading.user, name)

        def run(work: Work) -> None:
            if self.reading.finder.user_table(database, "", name) is not None:
                if if_missing:
                    return
                raise sql_error(-310, f"{full.owner}.{name}")
            table = self._make(work, full, text, kind)
            table.attributes = {shadow: HIDDEN | what for shadow, _, what in options.shadows}
            table.locks_pages = table.locks_pages if options.lock_mode is None else options.locks_pages

        return self.plan(run)

    def options(self) -> TableOptions:
        """Read where and how a table is kept; where changes nothing here."""
        tokens, options = self.tokens, TableOptions()
        while word := tokens.one_of(*TABLE_OPTIONS):
            if word == "in":
                tokens.name()
            elif word == "lock":
                tokens.expect("mode")
                is_listed = tokens.accept("(")
                options.lock_mode = tokens.one_of("row", "page", "table")
                if is_listed:
                    tokens.expect(")")
                if not options.lock_mode:
                    raise sql_error(-201)
            elif word == "with":
                if shadow := tokens.one_of(*_SHADOW_COLUMNS):
                    options.shadows += _SHADOW_COLUMNS[shadow]
                else:
                    tokens.expect("no", "log")
                    options.has_log = False
            else:
                tokens.expect("size")
                tokens.whole_number()
        return options

    def _make(self, work: Work, name: EmulatedTableName, text: TableText, kind: str) -> EmulatedTable:
        columns = self._columns_text(text)
        try:
            self.server.create_table(name.quoted, columns, kind=kind)
        except ValueError:
            raise sql_error(-201) from None
        work.undo.append(lambda: self.server.drop_table(name.quoted))  # if what follows is refused too
        table = self.server.table(str(name))
        self._constrain(table, text)
        self._define(table.definition, table, text)
        storage = self.store.add(table)
        self._begin_serial(storage, text)
        work.undo.append(lambda: self._forget(storage))
        work.take(storage)
        return table

    def _columns_text(self, text: TableText) -> str:
        keyed = {name for kind, names, _ in text.keys if kind == "P" for name in names}
        for column in text.columns:
            column.not_null = column.not_null or column.name in keyed
        return ", ".join(column.declaration for column in text.columns)

    def _constrain(self, table: EmulatedTable, text: TableText) -> None:
        known = {column.name for column in table.columns}
        for kind, names, given in text.keys:
            if missing := [name for name in names if name not in known]:
                raise sql_error(-217, missing[0])
            number = len(table.indexes) + 1
            table.indexes.append(Index(given or f"u{table.tabid}_{number}", names, kind))
            if kind == "P":
                table.primary_key = names

    def _define(self, definition: Definition, table: EmulatedTable, text: TableText) -> None:
        """Add what is written to what a table keeps to."""
        for column in text.columns:
            if column.default is not None:
                definition.defaults[column.name] = column.default
        for reference in text.references:
            name = reference.name or f"r{table.tabid}_{len(definition.references) + 1}"
            definition.references.append(self._reference(name, table, reference))

    def _reference(self, name: str, table: EmulatedTable, text: ReferenceText) -> Reference:
        """Return a foreign key; SqlError if it does not reference a key."""
        database, owner, other_name = text.table
        other = self.reading.finder.user_table(database or table.name.database, owner, other_name)
        if other is None:
            raise sql_error(-206, other_name)
        keys = text.other_columns or other.primary_key
        if len(keys) != len(text.columns):
            raise sql_error(-201)
        if key_of(other, keys) is None:
            raise sql_error(-297, other_name)
        return Reference(name, text.columns, str(other.name), keys)

    def _begin_serial(self, storage: Storage, text: TableText) -> None:
        for column, written in zip(storage.columns, text.columns, strict=True):
            storage.table.count_serial(column, written.first_serial - 1)
        storage.is_sql_made = True

    def _make_temporary(self, work: Work, name: str, text: TableText, has_log: bool) -> None:
        if name in self.reading.finder.temporary:
            raise sql_error(-310, name)
        database = self.server.databases[self.reading.database]
        columns = self._columns_text(text)
        full = EmulatedTableName(database.name, self.reading.user, name)
        try:
            table = make_table(full.quoted, columns, database.locale, 0, "table")
        except ValueError:
            raise sql_error(-201) from None
        self._constrain(table, text)
        self._define(table.definition, table, text)
        storage = self.store.made(table)
        self._begin_serial(storage, text)
        self.keep_temporary(work, storage, has_log)

    def keep_temporary(self, work: Work, storage: Storage, has_log: bool) -> None:
        """Let a session find a temporary table, until it goes."""
        temporary, name = self.reading.finder.temporary, storage.table.name.table
        forgoes = self.server.configuration.get("TEMPTAB_NOLOG", "0") != "0"
        has_log = has_log and not forgoes
        storage.is_temporary, storage.has_log = True, storage.has_log and has_log
        temporary[name] = storage
        if has_log:
            work.undo.append(lambda: self.forget_temporary(name))

    def forget_temporary(self, name: str) -> None:
        """Let the rows of a temporary table go."""
        self.store.forget(self.reading.finder.temporary.pop(name))

    def _drop_temporary(self, work: Work, name: str) -> None:
        """Drop a temporary table; one whose rows are logged comes back if that is undone."""
        temporary = self.reading.finder.temporary
        storage = temporary[name]
        if not storage.has_log:
            self.forget_temporary(name)
            return
        del temporary[name]
        work.undo.append(lambda: temporary.update({name: storage}))
        work.on_commit.append(lambda: self.store.forget(storage))

    def _remove(self, storage: Storage) -> None:
        self._forget(storage)
        self.server.drop_table(storage.table.name.quoted)

    def _forget(self, storage: Storage) -> None:
        self.store.put(str(storage.table.name), None)
        self.store.forget(storage)

    def drop_table(self) -> Plan:
        """Read DROP TABLE or VIEW, behind that word."""
        if_there = self.tokens.accept("if", "exists")
        database, owner, name = self.queries.table_name()
        self.tokens.one_of("cascade", "restrict")

        def run(work: Work) -> None:
            if not database and not owner and name in self.reading.finder.temporary:
                self._drop_temporary(work, name)
                return
            place = self.reading.finder.database(self.reading.database, database)
            table = self.reading.finder.user_table(place, owner, name)
            if table is None:
                if if_there:
                    return
                raise sql_error(-206, name)
            self._drop(work, self.store.of(table))

        return self.plan(run)

    def _drop(self, work: Work, storage: Storage) -> None:
        table = storage.table
        if table.full_row_logging:
            raise sql_error(-19816)
        Rules(self.reading).must_not_be_referred_to(storage)
        work.take(storage)
        for other, reference in self.store.referring(storage):
            self.redefined(work, other).references.remove(reference)
        self.server.drop_table(table.name.quoted)
        self.store.put(str(table.name), None)
        work.undo.append(lambda: put_table(self.server, self.store, storage))
        work.on_commit.append(lambda: self.store.forget(storage))

    def redefined(self, work: Work, storage: Storage) -> Definition:
        """Return what a table keeps to, to be changed; it is put back if that is undone."""
        table, previous = storage.table, storage.definition
        table.definition = previous.copy()
        work.undo.append(lambda: setattr(table, "definition", previous))
        return table.definition

    # --- views and databases --------------------------------------------------------------------

    def create_view(self) -> Plan:
        """Read CREATE VIEW, behind VIEW: one that clients find, and cannot read."""
        database, owner, name = self.queries.table_name()
        self.tokens.expect("as", "select")
        items = self.queries.query().items
        full = EmulatedTableName(database or self.reading.database, owner or self.reading.user, name)
        text = ", ".join(ColumnText(item.name, item.known_type).declaration for item in items)

        def run(work: Work) -> None:
            if self.reading.finder.user_table(full.database, "", name) is not None:
                raise sql_error(-310, f"{full.owner}.{name}")
            self.server.create_table(full.quoted, text, kind="view")
            storage = self.store.add(self.server.table(str(full)))
            work.undo.append(lambda: self._remove(storage))

        return self.plan(run)

    def create_database(self, locale: str) -> Plan:
        """Read CREATE DATABASE name [IN dbspace] [WITH [BUFFERED] LOG [MODE ANSI]]."""
        if_missing = self.tokens.accept("if", "not", "exists")
        name = self.tokens.name()
        if self.tokens.accept("in"):
            self.tokens.name()
        logged = buffered = ansi = False
        if self.tokens.accept("with"):
            buffered = self.tokens.accept("buffered")
            self.tokens.expect("log")
            logged, ansi = True, self.tokens.accept("mode", "ansi")
        self.tokens.expect_end()

        def run(_given: BoundValues) -> StatementOutcome:
            if name not in self.server.databases:
                self.server.create_database(name, logged, locale, buffered=buffered, ansi=ansi)
            elif not if_missing:
                raise sql_error(-330, isam=-100)
            self.reading.database = name
            return StatementOutcome()

        return Plan(StatementType.OTHER, query=run)

    def drop_database(self) -> Plan:
        """Read DROP DATABASE name."""
        if_there = self.tokens.accept("if", "exists")
        name = self.tokens.name()
        self.tokens.expect_end()

        def run(_given: BoundValues) -> StatementOutcome:
            database = self.server.databases.get(name)
            if database is None and if_there:
                return StatementOutcome()
            if database is None or name in (CDC_DATABASE, SYSTEM_DATABASE):
                raise sql_error(-329)
            if any(table.full_row_logging for table in database.tables.values()):
                raise sql_error(-19816)
            keeper, own = self.server.row_keeper, self.reading.session
            sessions = keeper.open_sessions() if keeper else []
            if any(each.database == name and each.number != own for each in sessions):
                raise sql_error(-425)
            for table in list(database.tables.values()):
                self._remove(self.store.of(table))
            del self.server.databases[name]
            self.reading.database = "" if self.reading.database == name else self.reading.database
            return StatementOutcome()

        return Plan(StatementType.OTHER, query=run)


def declared(storage: Storage) -> list[ColumnText]:
    """Return the columns of a table as they would be written."""
    return [ColumnText(c.name, c.type, c.not_null) for c in storage.columns]


def put_table(server: EmulatedServer, store: Store, storage: Storage) -> None:
    """Put back a table that was dropped or altered by a transaction that is undone."""
    table = storage.table
    with server.log.changed:
        server.put_table(table)
    store.put(str(table.name), storage)
