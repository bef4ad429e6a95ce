"""Parse the options that name tables: `table`, `heartbeatTable`, `initialSnapshot` and others.

Rule: whether the tables exist is checked where the catalog is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import TableName, TablePattern
from informix_cdc.options.declared import DeclaredOptions
from informix_cdc.options.declaring import ALL

EXCLUDED = "!"  # begins an entry of option `table` that excludes


class TableChoice(NamedTuple):
    """The names and patterns of option `table`, and what its entries with `!` exclude."""

    names: tuple[TableName, ...]
    patterns: tuple[TablePattern, ...]
    excluded: tuple[TableName | TablePattern, ...]


def table_choice(options: DeclaredOptions) -> TableChoice:
    """Parse option `table`; quoted text is a name, not a pattern.

    Raises:
        BadOption: an entry is neither a name nor a pattern, or is listed twice.
    """
    database, listed = options.connection.database, options.tables.listed
    read = [_name_or_pattern(text, database) for text in listed if not text.startswith(EXCLUDED)]
    names = tuple(each for each in read if isinstance(each, TableName))
    patterns = tuple(each for each in read if isinstance(each, TablePattern))
    if len(set(names)) != len(names):
        raise BadOption("option 'table' lists a table twice.", option="table")
    excluded = tuple(
        _name_or_pattern(text.removeprefix(EXCLUDED).strip(), database)
        for text in listed
        if text.startswith(EXCLUDED)
    )
    if excluded and not patterns:
        raise BadOption(
            "option 'table' excludes tables (!), but has no pattern to exclude them from.",
            "Use a pattern such as informix.ord*, or remove the entries with !.",
            option="table",
        )
    return TableChoice(names, patterns, excluded)


def heartbeat_table(options: DeclaredOptions) -> TableName | None:
    """Return the heartbeat table, whose changes only advance the stream.

    Raises:
        BadOption: it is a captured table, or not a name.
    """
    if not options.tables.heartbeat_table:
        return None
    name = TableName.parse(options.tables.heartbeat_table, options.connection.database)
    if name in table_choice(options).names:
        raise BadOption(
            "option 'heartbeatTable' is a captured table, whose rows would not be delivered.",
            "Use a separate table, or remove the option: captured tables advance the stream too.",
            option="heartbeatTable",
        )
    return name


def snapshot_choice(options: DeclaredOptions) -> tuple[TableName | TablePattern, ...]:
    """Return the names and patterns of option initialSnapshot; an empty tuple means all.

    Raises:
        BadOption: an entry is neither a name nor a pattern.
    """
    asked = () if options.snapshots.tables == (ALL,) else options.snapshots.tables
    return tuple(_name_or_pattern(text, options.connection.database) for text in asked)


def matching(choice: TableName | TablePattern, names: Iterable[TableName]) -> list[TableName]:
    """Return which of the names are the chosen one, or match the chosen pattern."""
    if isinstance(choice, TablePattern):
        return [name for name in names if choice.matches(name)]
    return [name for name in names if name == choice]


def snapshot_key_names(options: DeclaredOptions) -> Mapping[TableName, tuple[str, ...]]:
    """Return the keys set with option snapshotKey, by table.

    Raises:
        BadOption: the text before a bracket is not a table name.
    """
    return {
        TableName.parse(table, options.connection.database): columns
        for table, columns in options.snapshots.keys
    }


def snapshot_conditions_by_table(options: DeclaredOptions) -> Mapping[TableName, str]:
    """Return the conditions of option snapshotWhere, by table.

    Raises:
        BadOption: the text before a colon is not a table name, or a table has two conditions.
    """
    found = {
        TableName.parse(table, options.connection.database): condition
        for table, condition in options.snapshots.conditions
    }
    if len(found) < len(options.snapshots.conditions):
        raise BadOption(
            "option 'snapshotWhere' has two conditions for a table.",
            "Combine them with AND.",
            option="snapshotWhere",
        )
    return found


def _name_or_pattern(text: str, database: str) -> TableName | TablePattern:
    """Parse a name or a pattern; a `*` outside of double quotes makes it a pattern."""
    if "*" in text and '"' not in text:
        return TablePattern.parse(text, database)
    return TableName.parse(text, database)
