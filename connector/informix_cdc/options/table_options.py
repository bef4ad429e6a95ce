"""Parse the options that name tables: `table`, `tableExclude`, `heartbeatTable`, `snapshot...`.

Rule: whether the tables exist is checked where the catalog is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import TableName, TablePattern
from informix_cdc.options.declared import DeclaredOptions
from informix_cdc.options.declaring import ALL


class TableChoice(NamedTuple):
    """The names and patterns of option `table`, and those of `tableExclude`."""

    names: tuple[TableName, ...]
    patterns: tuple[TablePattern, ...]
    excluded: tuple[TableName | TablePattern, ...]


def table_choice(options: DeclaredOptions) -> TableChoice:
    """Parse the options `table` and `tableExclude`; quoted text is a name, not a pattern.

    Raises:
        BadOption: an entry is neither a name nor a pattern, or is listed twice.
    """
    read = [_name_or_pattern(text, options.database) for text in options.tables]
    names = tuple(each for each in read if isinstance(each, TableName))
    patterns = tuple(each for each in read if isinstance(each, TablePattern))
    if len(set(names)) != len(names):
        raise BadOption("option 'table' lists a table twice.", option="table")
    excluded = tuple(_name_or_pattern(text, options.database) for text in options.table_exclude)
    if excluded and not patterns:
        raise BadOption(
            "option 'tableExclude' is set, but option 'table' has no pattern to exclude tables from.",
            "Use a pattern such as informix.ord*, or remove tableExclude.",
            option="tableExclude",
        )
    return TableChoice(names, patterns, excluded)


def heartbeat_table(options: DeclaredOptions) -> TableName | None:
    """Return the heartbeat table, whose changes only advance the stream.

    Raises:
        BadOption: it is a captured table, or not a name.
    """
    if not options.heartbeat_table:
        return None
    name = TableName.parse(options.heartbeat_table, options.database)
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
    asked = () if options.initial_snapshot == (ALL,) else options.initial_snapshot
    return tuple(_name_or_pattern(text, options.database) for text in asked)


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
        TableName.parse(table, options.database): columns for table, columns in options.snapshot_key
    }


def snapshot_conditions_by_table(options: DeclaredOptions) -> Mapping[TableName, str]:
    """Return the conditions of option snapshotWhere, by table.

    Raises:
        BadOption: the text before a colon is not a table name, or a table has two conditions.
    """
    found = {
        TableName.parse(table, options.database): condition
        for table, condition in options.snapshot_where
    }
    if len(found) < len(options.snapshot_where):
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
