"""Constraints on rows: defaults, CHECK and referential constraints.

Constraints are checked when a statement has written its rows; a violation undoes the statement. Source:
Guide to SQL: Syntax, "CREATE TABLE"; finderr for -530, -691 and -692.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from ..language.scopes import Scope
from ..language.tokens import StatementTokens
from ..language.values import Stored
from ..reading import SessionView
from ..sources import filled_in
from ..storage import RowValues, Storage
from ..work import Work
from .queries import Queries

DeletedRow = tuple[Storage, int, RowValues]  # a table, a row's number, its values


class Rules:
    """Looks at rows for a session."""

    def __init__(self, reading: SessionView) -> None:
        self.reading = reading

    def default(self, storage: Storage, name: str) -> Stored:
        """Return what a column gets that an INSERT does not name."""
        default = storage.definition.defaults.get(name)
        if default is None:
            return None
        return self.evaluated(default.words, storage.columns[storage.place_of(name)].type)

    def evaluated(self, words: str, kind: EmulatedType) -> Stored:
        """Return what the words of a default are, as a column of a type keeps it."""
        queries = Queries(
            StatementTokens(words, delimits_names=self.reading.delimits_names), self.reading
        )
        sql = queries.converted(queries.expression(), kind).sql
        return self.reading.find(f"SELECT {sql}", ())[0][0]

    def must_hold(self, storage: Storage, rid: int) -> None:
        """SqlError if a row that was written breaks a constraint."""
        for name, text in storage.definition.checks:
            if self.reading.find(self.broken(storage, text), (rid,)):
                raise sql_error(-530, f"{storage.table.name.owner}.{name}")
        for reference in storage.definition.references:
            other = self._storage(reference.other)
            places = [f"c{storage.place_of(column)}" for column in reference.columns]
            keys = [f"c{other.place_of(column)}" for column in reference.other_columns]
            all_there = " AND ".join(f"a.{place} IS NOT NULL" for place in places)
            same = " AND ".join(f"b.{k} = a.{p}" for k, p in zip(keys, places, strict=True))
            sql = (
                f"SELECT 1 FROM {storage.rows} a WHERE a.rid = ? AND {all_there}"
                f" AND NOT EXISTS (SELECT 1 FROM {other.rows} b WHERE {same})"
            )
            if self.reading.find(sql, (rid,)):
                raise sql_error(-691, f"{storage.table.name.owner}.{reference.name}")

    def broken(self, storage: Storage, text: str) -> str:
        """Return the query that finds a row, by its number, for which a condition is false."""
        queries = Queries(
            StatementTokens(text, delimits_names=self.reading.delimits_names), self.reading
        )
        queries.scope = Scope()
        alias = queries.source_of(storage)
        condition = queries.condition()
        queries.tokens.expect_end()
        return filled_in(
            f"SELECT 1 FROM {storage.rows} AS {alias} WHERE {alias}.rid = ? AND NOT {condition}", []
        )

    def must_not_be_needed(self, storage: Storage, old: RowValues, new: RowValues | None) -> None:
        """SqlError if rows elsewhere refer to a key that is changed or deleted."""
        for other, reference in self.reading.store.referring(storage):
            places = [storage.place_of(column) for column in reference.other_columns]
            key = [old[place] for place in places]
            if None in key or (new is not None and key == [new[place] for place in places]):
                continue
            same = " AND ".join(f"c{other.place_of(column)} = ?" for column in reference.columns)
            still = " AND ".join(f"c{place} = ?" for place in places)  # another row has the key now
            sql = (
                f"SELECT 1 FROM {other.rows} WHERE {same}"
                f" AND NOT EXISTS (SELECT 1 FROM {storage.rows} WHERE {still}) LIMIT 1"
            )
            if self.reading.find(sql, [*key, *key]):
                raise sql_error(-692, f"{other.table.name.owner}.{reference.name}")

    def delete(self, work: Work, rows: Sequence[DeletedRow]) -> None:
        """Delete rows, and those that refer to them ON DELETE CASCADE; -692 if others refer to them.

        First the rows that were asked for, then those of other tables (Guide to SQL: Syntax, "Using the
        ON DELETE CASCADE Option"). Without a log nothing cascades; that it is refused is our choice.
        """
        left = list(rows)
        known = {(storage.number, rid) for storage, rid, _ in left}
        for storage, rid, old in left:  # which grows meanwhile
            work.delete(storage, rid, old)
            for row in self._cascaded(work, storage, old):
                if (row[0].number, row[1]) not in known:
                    known.add((row[0].number, row[1]))
                    left.append(row)
        for storage, _, old in left:
            self.must_not_be_needed(storage, old, None)

    def _cascaded(self, work: Work, storage: Storage, old: RowValues) -> Iterator[DeletedRow]:
        """Yield the rows that go with one; Blocked if another transaction has locked one of them."""
        for other, reference in self.reading.store.referring(storage):
            key = [old[storage.place_of(column)] for column in reference.other_columns]
            if not reference.cascades or not other.has_log or None in key:
                continue
            same = " AND ".join(f"c{other.place_of(column)} = ?" for column in reference.columns)
            work.must_be_writable(other, -243)
            if other.is_locked_by_others(work.number):
                words = self.reading.view.locked_words(other)
                locked = self.reading.find(f"SELECT rid FROM {words} WHERE {same}", key)
                work.must_not_meet(other, {int(rid or 0) for (rid,) in locked}, -243)
            found = self.reading.find(f"SELECT * FROM {other.rows} WHERE {same}", key)
            rows = [(other, int(rid or 0), tuple(values)) for rid, *values in found]
            work.must_not_meet(other, {rid for _, rid, _ in rows}, -243)
            yield from rows

    def must_not_be_referred_to(self, storage: Storage) -> None:
        """SqlError if rows elsewhere refer to a table that is to be emptied or dropped."""
        for other, reference in self.reading.store.referring(storage):
            if other is not storage and self.reading.find(f"SELECT 1 FROM {other.rows} LIMIT 1", ()):
                raise sql_error(-692, f"{other.table.name.owner}.{reference.name}")

    def _storage(self, name: str) -> Storage:
        return self.reading.store.of(self.reading.server.table(name))
