"""What the options that name tables say: `table`, `tableExclude`, `heartbeatTable`, `snapshot...`.

Rule: which of them exist is decided where the catalog is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import TableName, TablePattern
from informix_cdc.options.declared import DeclaredOptions
from informix_cdc.options.declaring import ALL


class TableChoice(NamedTuple):
    """What option `table` names, matches, and leaves out."""

    names: tuple[TableName, ...]
    patterns: tuple[TablePattern, ...]
    excluded: tuple[TableName | TablePattern, ...]


def table_choice(options: DeclaredOptions) -> TableChoice:
    """Read the options `table` and `tableExclude`: what is in double quotes is a name, not a pattern.

    Raises:
        BadOption: one of them is neither name nor pattern, or stands there twice.
    """
    read = [_name_or_pattern(text, options.database) for text in options.tables]
    names = tuple(each for each in read if isinstance(each, TableName))
    patterns = tuple(each for each in read if isinstance(each, TablePattern))
    if len(set(names)) != len(names):
        raise BadOption("option 'table' names a table twice.", option="table")
    excluded = tuple(_name_or_pattern(text, options.database) for text in options.table_exclude)
    if excluded and not patterns:
        raise BadOption(
            "option 'tableExclude' leaves out what patterns of option table match, and there is none.",
            "Write a pattern such as informix.ord*, or leave tableExclude out.",
            option="tableExclude",
        )
    return TableChoice(names, patterns, excluded)


def heartbeat_table(options: DeclaredOptions) -> TableName | None:
    """Return the table whose changes only move the stream.

    Raises:
        BadOption: it is one of the captured tables, or not a name.
    """
    if not options.heartbeat_table:
        return None
    name = TableName.parse(options.heartbeat_table, options.database)
    if name in table_choice(options).names:
        raise BadOption(
            "option 'heartbeatTable' names a captured table, whose rows would not be delivered.",
            "Name a table of its own, or leave the option out: captured tables move the stream.",
            option="heartbeatTable",
        )
    return name


def snapshot_choice(options: DeclaredOptions) -> tuple[TableName | TablePattern, ...]:
    """Return the names and patterns of option initialSnapshot; without those for all.

    Raises:
        BadOption: one is neither a name nor a pattern.
    """
    asked = () if options.initial_snapshot == (ALL,) else options.initial_snapshot
    return tuple(_name_or_pattern(text, options.database) for text in asked)


def snapshot_key_names(options: DeclaredOptions) -> Mapping[TableName, tuple[str, ...]]:
    """Return the key that option snapshotKey names for a table.

    Raises:
        BadOption: what is in front of a bracket is no name of a table.
    """
    return {
        TableName.parse(table, options.database): columns for table, columns in options.snapshot_key
    }


def _name_or_pattern(text: str, database: str) -> TableName | TablePattern:
    """Read a name or a pattern; a `*` outside of double quotes makes it a pattern."""
    if "*" in text and '"' not in text:
        return TablePattern.parse(text, database)
    return TableName.parse(text, database)
