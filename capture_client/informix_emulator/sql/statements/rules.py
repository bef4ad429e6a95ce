"""Constraints on rows: defaults and referential constraints.

Constraints are checked when a statement has written its rows; a violation undoes the statement. Source:
Guide to SQL: Syntax, "CREATE TABLE"; finderr for -691 and -692.
"""

from __future__ import annotations

from ...sql_errors import sql_error
from ..language.tokens import StatementTokens
from ..language.values import Stored
from ..reading import SessionView
from ..storage import RowValues, Storage
from .queries import Queries


class Rules:
    """Looks at rows for a session."""

    def __init__(self, reading: SessionView) -> None:
        self.reading = reading

    def default(self, storage: Storage, name: str) -> Stored:
        """Return what a column gets that an INSERT does not name."""
        default = storage.definition.defaults.get(name)
        if default is None:
            return None
        kind = storage.columns[storage.place_of(name)].type
        tokens = StatementTokens(default.words, delimits_names=self.reading.delimits_names)
        queries = Queries(tokens, self.reading)
        sql = queries.converted(queries.expression(), kind).sql
        return self.reading.find(f"SELECT {sql}", ())[0][0]

    def must_hold(self, storage: Storage, rid: int) -> None:
        """SqlError if a row that was written breaks a constraint."""
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

    def must_not_be_referred_to(self, storage: Storage) -> None:
        """SqlError if rows elsewhere refer to a table that is to be emptied or dropped."""
        for other, reference in self.reading.store.referring(storage):
            if other is not storage and self.reading.find(f"SELECT 1 FROM {other.rows} LIMIT 1", ()):
                raise sql_error(-692, f"{other.table.name.owner}.{reference.name}")

    def _storage(self, name: str) -> Storage:
        return self.reading.store.of(self.reading.server.table(name))
