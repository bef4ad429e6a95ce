"""Parse and run ALTER TABLE, RENAME and CREATE INDEX.

An alteration gives a table a new storage with the converted rows; undoing it restores the previous one.
ADD is done in place, as a server does; DROP and MODIFY rebuild the table, which is our choice. Source:
Guide to SQL: Syntax, "ALTER TABLE".
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from ...sql_errors import sql_error
from ...tables.definition import renamed
from ...tables.tables import Index
from ..storage import Storage
from ..work import Work
from .definitions import TABLE_OPTIONS, Definitions, RunStatement, TableOptions, declared, put_table
from .plans import Plan
from .rules import Rules
from .table_text import ColumnText, TableText


class Alterations(Definitions):
    """Reads the statements that alter tables and make indexes."""

    def alterable(self) -> Storage:
        """Read the name of a table that is to be altered."""
        found = self.reading.table(*self.queries.table_name())
        if not isinstance(found, Storage) or found.table.kind not in ("table", "raw"):
            raise sql_error(-201)
        if found.table.full_row_logging:
            raise sql_error(-19816)
        return found

    def alter_table(self) -> Plan:
        """Read ALTER TABLE .. ADD | DROP | MODIFY, several of them with commas."""
        storage = self.alterable()
        steps = [self._alteration(storage)]
        while self.tokens.accept(","):
            steps.append(self._alteration(storage))

        def run(work: Work) -> None:
            for step in steps:
                step(work)

        return self.plan(run)

    def _alteration(self, storage: Storage) -> RunStatement:
        name = str(storage.table.name)
        tokens = self.tokens
        if tokens.accept("add", "constraint"):
            text = TableText()
            is_list = tokens.accept("(")
            self.reader.item(text)
            if is_list:
                tokens.expect(")")
            return lambda work: self._add_constraint(work, name, text)
        if tokens.accept("add"):
            text, before = self._added()
            return lambda work: self._add(work, name, text, before)
        if tokens.accept("drop"):
            names = self.reader.names() if tokens.sees("(") else (tokens.name(),)
            return lambda work: self._drop_columns(work, name, names)
        if tokens.accept("modify"):
            text, _ = self._added()
            return lambda work: self._modify(work, name, text)
        if tokens.next.text not in TABLE_OPTIONS:
            raise sql_error(-201)
        options = self.options()
        return lambda work: self._set_lock_mode(work, name, options)

    def _set_lock_mode(self, work: Work, name: str, options: TableOptions) -> None:
        if options.lock_mode is None:
            return
        storage = self._current(name)
        table, previous = storage.table, storage.table.locks_pages
        work.take(storage)
        work.undo.append(lambda: setattr(table, "locks_pages", previous))
        table.locks_pages = options.locks_pages

    def _added(self) -> tuple[TableText, str]:
        text, before = TableText(), ""
        if not self.tokens.accept("("):
            self.reader.column(text)
            return text, self.tokens.name() if self.tokens.accept("before") else ""
        while True:
            self.reader.column(text)
            before = self.tokens.name() if self.tokens.accept("before") else before
            if not self.tokens.accept(","):
                self.tokens.expect(")")
                return text, before

    def _current(self, name: str) -> Storage:
        return self.store.of(self.server.table(name))

    def _add(self, work: Work, name: str, text: TableText, before: str) -> None:
        storage = self._current(name)
        columns = declared(storage)
        known = {column.name for column in columns}
        if repeated := [c.name for c in text.columns if c.name in known]:
            raise sql_error(-328, repeated[0])
        place = storage.place_of(before) if before else len(columns)
        fresh = self._rebuilt(work, storage, [*columns[:place], *text.columns, *columns[place:]], True)
        self._define(fresh.definition, fresh.table, text)
        for column in text.columns:
            value = Rules(self.reading).default(fresh, column.name)
            if value is not None:
                self.store.run(f"UPDATE {fresh.rows} SET c{fresh.place_of(column.name)} = ?", (value,))
        for key in text.keys:
            self._add_constraint(work, name, TableText(keys=[key]))

    def _drop_columns(self, work: Work, name: str, names: tuple[str, ...]) -> None:
        storage = self._current(name)
        for name_of_column in names:
            storage.place_of(name_of_column)
        self._forget_references(work, storage, names)
        left = [column for column in declared(storage) if column.name not in names]
        if not left:
            raise sql_error(-201)
        self._rebuilt(work, storage, left, False)

    def _modify(self, work: Work, name: str, text: TableText) -> None:
        storage = self._current(name)
        changed = {column.name: column for column in text.columns}
        for column_name in changed:
            storage.place_of(column_name)
        columns = [changed.get(column.name, column) for column in declared(storage)]
        fresh = self._rebuilt(work, storage, columns, False)
        for column_name in changed:
            fresh.definition.defaults.pop(column_name, None)
        self._define(fresh.definition, fresh.table, text)
        for column in text.columns:
            if column.not_null:
                self._must_have_no_null(fresh, column.name)

    def _must_have_no_null(self, storage: Storage, name: str) -> None:
        column = f"c{storage.place_of(name)}"
        if self.store.find(f"SELECT 1 FROM {storage.rows} WHERE {column} IS NULL LIMIT 1"):
            raise sql_error(-391, name)

    def _rebuilt(
        self,
        work: Work,
        storage: Storage,
        columns: list[ColumnText],
        in_place: bool,
        renamed: dict[str, str] | None = None,
    ) -> Storage:
        work.take(storage)
        previous = storage.table
        text = ", ".join(column.declaration for column in columns)
        try:
            self.server.alter_table(previous.name.quoted, text, in_place=in_place)
        except ValueError:
            raise sql_error(-201) from None
        table = self.server.table(str(previous.name))
        names = {column.name for column in columns} | set((renamed or {}).values())
        back = {old: new for new, old in (renamed or {}).items()}
        table.primary_key = tuple(back.get(n, n) for n in previous.primary_key if n in names)
        table.indexes = [
            Index(i.name, tuple(back.get(n, n) for n in i.columns), i.kind)
            for i in previous.indexes
            if {*i.columns} <= names
        ]
        work.undo.append(lambda: put_table(self.server, self.store, storage))
        return self.store.altered(storage, table, renamed)

    def _add_constraint(self, work: Work, name: str, text: TableText) -> None:
        storage = self._current(name)
        table, before, previous = storage.table, len(storage.table.indexes), storage.table.primary_key
        work.undo.append(lambda: setattr(table, "primary_key", previous))
        self._constrain(storage.table, text)
        for index in storage.table.indexes[before:]:
            self._index(work, storage, index, is_listed=True)
        self._define(self.redefined(work, storage), table, text)

    def _forget_references(self, work: Work, storage: Storage, columns: tuple[str, ...]) -> None:
        """Let foreign keys go with the key that they lead to, as DROP does."""
        for other, reference in self.store.referring(storage):
            if {*reference.other_columns} & {*columns}:
                self.redefined(work, other).references.remove(reference)

    def rename(self) -> Plan:
        """Read RENAME COLUMN table.column TO name, or RENAME TABLE table TO name."""
        if self.tokens.accept("table"):
            return self._rename_table()
        self.tokens.expect("column")
        names = [self.tokens.name()]
        if self.tokens.accept(":"):
            names = [self.tokens.name()]
        while self.tokens.accept("."):
            names.append(self.tokens.name())
        self.tokens.expect("to")
        new = self.tokens.name()
        if len(names) not in (2, 3):
            raise sql_error(-201)
        *owner, table_name, old = names
        found = self.reading.table("", "".join(owner), table_name)
        if not isinstance(found, Storage):
            raise sql_error(-201)
        return self.plan(lambda work: self._rename_column(work, str(found.table.name), old, new))

    def _rename_table(self) -> Plan:
        """Read a table of this database, and its new name, which has no owner."""
        database, owner, name = self.queries.table_name()
        self.tokens.expect("to")
        new = self.tokens.name()
        if database:
            raise sql_error(-201)

        def run(work: Work) -> None:
            place = self.reading.finder.database(self.reading.database, "")
            table = self.reading.finder.user_table(place, owner, name)
            if table is None:
                raise sql_error(-206, name)
            if table.kind not in ("table", "raw"):
                raise sql_error(-201)
            if self.reading.finder.user_table(place, "", new) is not None:
                raise sql_error(-310, f"{table.name.owner}.{new}")
            storage, previous = self.store.of(table), table.name
            work.take(storage)
            self._give_name(storage, new)
            work.undo.append(lambda: self._give_name(storage, previous.table))

        return self.plan(run)

    def _give_name(self, storage: Storage, name: str) -> None:
        """Rename a table, and what foreign keys know of it."""
        table, previous = storage.table, storage.table.name
        referring = self.store.referring(storage)
        self.server.rename_table(table, name)
        self.store.put(str(previous), None)
        self.store.put(str(table.name), storage)
        for other, reference in referring:
            known = other.definition.references
            known[known.index(reference)] = replace(reference, other=str(table.name))

    def _rename_column(self, work: Work, name: str, old: str, new: str) -> None:
        storage = self._current(name)
        columns = declared(storage)
        if any(column.name == new for column in columns):
            raise sql_error(-328, new)
        columns[storage.place_of(old)].name = new
        versions = storage.table.versions
        for other, reference in self.store.referring(storage):
            known = self.redefined(work, other).references
            keys = renamed(reference.other_columns, {old: new})
            known[known.index(reference)] = replace(reference, other_columns=keys)
        fresh = self._rebuilt(work, storage, columns, True, {new: old})
        fresh.table.versions = versions  # the rows are as they were

    def create_index(self, kind: str) -> Plan:
        """Read CREATE [UNIQUE] INDEX, behind INDEX."""
        if_missing = self.tokens.accept("if", "not", "exists")
        _, _, index_name = self.queries.table_name()
        self.tokens.expect("on")
        found = self.reading.table(*self.queries.table_name())
        if not isinstance(found, Storage):
            raise sql_error(-201)
        index = Index(index_name, self.reader.names(), kind)
        for column in index.columns:
            found.place_of(column)
        if self.tokens.accept("using"):
            self.tokens.expect("btree")
        self.tokens.one_of("online")
        if self.tokens.accept("in"):
            self.tokens.name()

        def run(work: Work) -> None:
            if any(known.name == index_name for known in found.table.all_indexes):
                if if_missing:
                    return
                raise sql_error(-316, index_name)
            work.take(found)
            self._index(work, found, index)

        return self.plan(run)

    def _index(self, work: Work, storage: Storage, index: Index, is_listed: bool = False) -> None:
        try:
            self.store.index(storage, index)
        except sqlite3.IntegrityError:
            self.store.unindex(storage, index)
            if is_listed:
                storage.table.indexes.remove(index)
            raise sql_error(-371, index.name) from None
        if not is_listed:
            storage.table.indexes.append(index)

        def back() -> None:
            storage.table.indexes.remove(index)
            self.store.unindex(storage, index)

        work.undo.append(back)
