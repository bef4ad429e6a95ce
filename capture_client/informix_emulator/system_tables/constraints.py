"""The system tables of keys and foreign keys.

Rows are made from the current tables at each query; a constraint keeps its number as long as its table
has it. NOT NULL constraints are not shown. Source: Guide to SQL: Reference, "System Catalog Tables".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..tables.tables import Database, EmulatedTable, Index

if TYPE_CHECKING:
    from ..server import EmulatedServer

_Row = dict[str, str | int | None]
_RESTRICT, _SIMPLE_MATCH = "R", "N"


def indexes_of(table: EmulatedTable) -> list[Index]:
    """Return the indexes of a table, with those that foreign keys get where none has their columns."""
    found = list(table.all_indexes)
    for reference in table.definition.references:
        if all(index.columns != reference.columns for index in found):
            found.append(Index(reference.name, reference.columns, "D"))
    return found


def constraints(_server: EmulatedServer, database: Database) -> Iterator[_Row]:
    """Yield the constraints: P primary key, U unique, R foreign key."""
    for table in database.tables.values():
        for name, kind, index_name in _constraints_of(table):
            yield {
                "constrid": _number(database, table, name),
                "constrname": name,
                "owner": table.name.owner,
                "tabid": table.tabid,
                "constrtype": kind,
                "idxname": index_name,
                "collation": database.locale,
            }


def _constraints_of(table: EmulatedTable) -> Iterator[tuple[str, str, str]]:
    by_columns = {index.columns: index.name for index in reversed(indexes_of(table))}
    for index in table.all_indexes:
        if index.kind in "PU":
            yield index.name, index.kind, index.name
    for reference in table.definition.references:
        yield reference.name, "R", by_columns[reference.columns]


def _number(database: Database, table: EmulatedTable, name: str) -> int:
    known = database.constraint_numbers
    return known.setdefault((table.tabid, name), len(known) + 1)


def indexes(_server: EmulatedServer, database: Database) -> Iterator[_Row]:
    """Yield the indexes, each with the places of its columns."""
    for table in database.tables.values():
        places = {column.name: number for number, column in enumerate(table.columns, 1)}
        for index in indexes_of(table):
            parts = [places[name] for name in index.columns] + [0] * 16
            yield {
                "idxname": index.name,
                "owner": table.name.owner,
                "tabid": table.tabid,
                "idxtype": "D" if index.kind == "D" else "U",
                "clustered": "-",
                **{f"part{n}": part for n, part in enumerate(parts[:16], 1)},
                "levels": 1,
                "leaves": 1,
                "nunique": 0,
                "clust": 0,
                "idxflags": 0,
            }


def object_states(_server: EmulatedServer, database: Database) -> Iterator[_Row]:
    """Yield whether each index and each constraint is enabled (E) or disabled (D)."""
    for table in database.tables.values():
        named = [("I", index.name) for index in indexes_of(table)]
        for kind, name in (*named, *(("C", name) for name, *_ in _constraints_of(table))):
            yield {
                "objtype": kind,
                "owner": table.name.owner,
                "name": name,
                "tabid": table.tabid,
                "state": "D" if name in table.disabled else "E",
            }


def references(_server: EmulatedServer, database: Database) -> Iterator[_Row]:
    """Yield the foreign keys, each with the key that it leads to."""
    by_name = {str(table.name): table for table in database.tables.values()}
    for table in database.tables.values():
        for reference in table.definition.references:
            other = by_name.get(reference.other)
            key = key_of(other, reference.other_columns) if other else None
            if other is None or key is None:
                continue  # one made by ALTER through the Python API can lose its key
            yield {
                "constrid": _number(database, table, reference.name),
                "primary": _number(database, other, key.name),
                "ptabid": other.tabid,
                "updrule": _RESTRICT,
                "delrule": _RESTRICT,
                "matchtype": _SIMPLE_MATCH,
                "pendant": "N",
            }


def key_of(table: EmulatedTable, columns: tuple[str, ...]) -> Index | None:
    """Return the primary key or unique constraint of these columns."""
    keys = (index for index in table.all_indexes if index.kind in "PU")
    return next((key for key in keys if sorted(key.columns) == sorted(columns)), None)
