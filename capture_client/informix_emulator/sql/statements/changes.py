"""Parse and run INSERT, UPDATE, DELETE and TRUNCATE.

The rows to change are found first, with their new values, then checked for other sessions' locks, then
changed one by one. So the log has whole images, and a statement that must wait has changed nothing.
Source: Guide to SQL: Syntax, "INSERT", "UPDATE", "DELETE", "TRUNCATE".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...answers import StatementOutcome, StatementType
from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from ..language.families import SERIALS
from ..language.scopes import Expression, Scope
from ..language.tokens import StatementTokens
from ..language.values import Stored, store
from ..reading import SessionView
from ..sources import filled_in
from ..storage import RowValues, Storage, is_serial
from ..work import UpdatedRow, Work
from .plans import BoundValues, Plan
from .queries import Queries
from .rules import Rules

_Found = tuple[int, RowValues, RowValues]  # a row's number, its values, those that are assigned
_RIGHTS = {"insert": -275, "update": -273, "delete": -274, "select": -272}


class ChangeStatements:
    """Reads the statements that change rows."""

    def __init__(self, tokens: StatementTokens, reading: SessionView) -> None:
        self.tokens = tokens
        self.reading = reading
        self.queries = Queries(tokens, reading)
        self.rules = Rules(reading)

    def target(self, right: str) -> Storage:
        """Read the name of a table that is to be changed."""
        database, owner, name = self.queries.table_name()
        found = self.reading.finder.find(self.reading.database, database, owner, name)
        if not isinstance(found, Storage) or found.table.kind not in ("table", "raw"):
            raise sql_error(-201)
        if right in found.revoked and self.reading.user != found.table.name.owner:
            raise sql_error(_RIGHTS[right], found.table.name.table)
        return found

    def parameters(self) -> list[EmulatedType]:
        """Return the types of the parameters; a text where nothing says more."""
        known = self.queries.parameters
        return [known.get(n, self.queries.text(255)) for n in range(1, self.tokens.parameter_count + 1)]

    # --- INSERT ---------------------------------------------------------------------------------

    def insert(self) -> Plan:
        """Read INSERT INTO table [(columns)] VALUES (..), or a query."""
        self.tokens.expect("into")
        storage = self.target("insert")
        places = self._places(storage)
        kinds = [storage.columns[place].type for place in places]
        if self.tokens.accept("values"):
            self.tokens.expect("(")
            values = self._values(kinds)
        elif self.tokens.accept("select"):
            values = self._selected(kinds)
        else:
            raise sql_error(-201)
        self.tokens.expect_end()
        sql = values[0]
        self.reading.check(sql, self.queries.tables, self.tokens.parameter_count)

        def run(work: Work, given: BoundValues) -> StatementOutcome:
            rows = self.reading.rows(sql, self.queries.tables, given)
            last: dict[int, int] = dict.fromkeys(SERIALS, 0)
            rid = 0
            for row in rows:
                whole = self._whole(storage, places, row, last)
                rid = work.insert(storage, whole)
                self.rules.must_hold(storage, rid)
            self.reading.last_serials |= {kind: value for kind, value in last.items() if value}
            serial, serial8, bigserial = (last[kind] for kind in SERIALS)
            return StatementOutcome((), len(rows), serial, serial8, bigserial, rid)

        return Plan(
            StatementType.INSERT,
            self.parameters(),
            tables=[storage],
            change=run,
            is_volatile=self.queries.is_volatile,
        )

    def _places(self, storage: Storage) -> list[int]:
        if not self.tokens.sees("(") or self.tokens.sees("(", "select"):
            shown = enumerate(storage.columns)
            return [place for place, column in shown if not storage.table.is_hidden(column.name)]
        self.tokens.expect("(")
        places = [storage.place_of(self.tokens.name())]
        while self.tokens.accept(","):
            places.append(storage.place_of(self.tokens.name()))
        self.tokens.expect(")")
        if len(set(places)) < len(places):
            raise sql_error(-201)
        return places

    def _values(self, kinds: Sequence[EmulatedType]) -> tuple[str]:
        values = self.queries.arguments()
        if len(values) != len(kinds):
            raise sql_error(-236)
        return (f"SELECT {self._converted(values, kinds)}",)

    def _converted(self, values: Sequence[Expression], kinds: Sequence[EmulatedType]) -> str:
        pairs = zip(values, kinds, strict=True)
        return ", ".join(self.stored(value, kind).sql for value, kind in pairs)

    def stored(self, value: Expression, kind: EmulatedType) -> Expression:
        """Return a value as a column takes it: cut, rounded or refused."""
        if value.type is not None and value.constant is None and value.type is not kind:
            numbers = self.reading.number_of(kind), self.reading.number_of(value.type)
            return replace(value, sql=f"f_convert({numbers[0]}, {numbers[1]}, {value.sql})", type=kind)
        return self.queries.converted(value, kind)

    def _selected(self, kinds: Sequence[EmulatedType]) -> tuple[str]:
        inner = self.queries.query()
        if len(inner.items) != len(kinds):
            raise sql_error(-236)
        results = [replace(item, sql=f"q.r{n}", constant=None) for n, item in enumerate(inner.items)]
        return (f"SELECT {self._converted(results, kinds)} FROM ({inner.sql}) q",)

    def _whole(
        self, storage: Storage, places: Sequence[int], row: RowValues, last: dict[int, int]
    ) -> RowValues:
        """Fill a row with defaults and the next number of a SERIAL column, kept in `last` by type."""
        given = dict(zip(places, row, strict=True))
        values: list[Stored] = []
        for place, column in enumerate(storage.columns):
            value = given[place] if place in given else self.rules.default(storage, column.name)
            if is_serial(column) and not value:
                value = store(column.type, storage.table.last_serials[column.type.spelling] + 1)
            if value is None and column.not_null:
                raise sql_error(-391, column.name)
            if is_serial(column):
                last[column.type.coltype] = int(value or 0)
                storage.table.count_serial(column, int(value or 0))
            values.append(value)
        return tuple(values)

    # --- UPDATE and DELETE ----------------------------------------------------------------------

    def update(self) -> Plan:
        """Read UPDATE table SET .. [WHERE ..]."""
        storage, alias = self._source("update")
        self.tokens.expect("set")
        assigned = self._assignments(storage)
        where = self._where()
        places = list(assigned)
        wanted = [self.stored(assigned[p], storage.columns[p].type).sql for p in places]
        for place in places:
            if is_serial(storage.columns[place]):
                raise sql_error(-232, storage.columns[place].name)

        def changed(rid: int, old: RowValues, row: RowValues) -> UpdatedRow:
            new = list(old)
            for place, value in zip(places, row, strict=True):
                if value is None and storage.columns[place].not_null:
                    raise sql_error(-391, storage.columns[place].name)
                new[place] = value
            return UpdatedRow(rid, old, tuple(new))

        def change(work: Work, found: Sequence[_Found]) -> None:
            changes = [changed(*row) for row in found]
            work.update(storage, changes)
            for rid, old, new in changes:
                self.rules.must_not_be_needed(storage, old, new)
                self.rules.must_hold(storage, rid)

        return self._plan(StatementType.UPDATE, storage, alias, wanted, where, change)

    def _source(self, right: str) -> tuple[Storage, str]:
        start = self.tokens.place
        storage = self.target(right)
        end = self.tokens.place
        self.tokens.place = start
        self.queries.scope = Scope()
        words = self.queries.source()
        if self.tokens.place < end:
            raise sql_error(-201)
        return storage, words.rpartition(" AS ")[2]

    def _assignments(self, storage: Storage) -> dict[int, Expression]:
        assigned: dict[int, Expression] = {}
        while True:
            name = self.tokens.name()
            if self.tokens.accept("."):
                name = self.tokens.name()
            self.tokens.expect("=")
            assigned[storage.place_of(name)] = self.queries.expression()
            if not self.tokens.accept(","):
                return assigned

    def _where(self) -> str:
        condition = self.queries.condition() if self.tokens.accept("where") else ""
        self.tokens.expect_end()
        return condition

    def delete(self) -> Plan:
        """Read DELETE FROM table [WHERE ..]."""
        self.tokens.accept("from")
        storage, alias = self._source("delete")
        where = self._where()

        def change(work: Work, found: Sequence[_Found]) -> None:
            for rid, old, _row in found:
                work.delete(storage, rid, old)
            for _rid, old, _row in found:
                self.rules.must_not_be_needed(storage, old, None)

        return self._plan(StatementType.DELETE, storage, alias, [], where, change)

    def _plan(
        self,
        kind: StatementType,
        storage: Storage,
        alias: str,
        wanted: Sequence[str],
        where: str,
        change: Callable[[Work, Sequence[_Found]], None],
    ) -> Plan:
        tables, width, count = self.queries.tables, len(storage.columns), self.tokens.parameter_count
        which = f" WHERE {where}" if where else ""
        shown = ", ".join([f"{alias}.rid", *(f"{alias}.{name}" for name in storage.names), *wanted])
        sql = f"SELECT {shown} FROM \x010\x01 AS {alias}{which}"
        locked = f"SELECT {alias}.rid FROM \x010\x01 AS {alias}{which}"
        self.reading.check(sql, tables, count)

        def run(work: Work, given: BoundValues) -> StatementOutcome:
            work.must_be_writable(storage, -243)
            if storage.is_locked_by_others(work.number):
                met = self.reading.locked_rows(locked, tables, given)
                work.must_not_meet(storage, met, -243)
            others = [self.reading.words(table) for table in tables[1:]]
            rows = self.reading.find(filled_in(sql, [storage.rows, *others]), given)
            found = [(int(rid or 0), tuple(r[:width]), tuple(r[width:])) for rid, *r in rows]
            if storage.table.locks_pages:
                work.must_not_meet(storage, {rid for rid, *_ in found}, -243)
            # constraints must hold at the end of the statement, in a table without a log after each row
            for part in [found] if storage.has_log else [[row] for row in found]:
                change(work, part)
            return StatementOutcome(row_count=len(found), rowid=found[-1][0] if found else 0)

        is_volatile = self.queries.is_volatile
        return Plan(kind, self.parameters(), tables=[storage], change=run, is_volatile=is_volatile)

    # --- TRUNCATE -------------------------------------------------------------------------------

    def truncate(self) -> Plan:
        """Read TRUNCATE [TABLE] table [DROP STORAGE | REUSE STORAGE] [KEEP STATISTICS]."""
        self.tokens.accept("table")
        storage = self.target("delete")
        if self.tokens.one_of("drop", "reuse"):
            self.tokens.expect("storage")
        self.tokens.accept("keep", "statistics")
        self.tokens.expect_end()

        def run(work: Work, _given: BoundValues) -> StatementOutcome:
            self.rules.must_not_be_referred_to(storage)
            work.truncate(storage)
            return StatementOutcome()

        return Plan(StatementType.OTHER, tables=[storage], change=run)
