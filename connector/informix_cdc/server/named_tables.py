"""Resolve option `table`: names, and patterns that are matched with the catalog.

Rule: patterns are resolved and logged when a query starts, and later only by discovery. Views,
synonyms, system, temporary and RAW tables never match, because they cannot be captured. A table with a
column that cannot be captured does match, and is refused as if it were named.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import BadOption
from informix_capture_client.log_events import TABLES_MATCHED
from informix_capture_client.sql_names import TableName, TablePattern
from informix_cdc.options import ConnectionOptions, SourceOptions

logger = logging.getLogger("informix_cdc.connector.named_tables")  # a logger name, not a module


def named_tables(options: SourceOptions, catalog: Catalog) -> tuple[TableName, ...]:
    """Return the tables of option `table`: the named ones in order, then those that match patterns.

    Raises:
        BadOption: a pattern matches nothing, or a table is both named and excluded.
    """
    choice = options.table_choice()
    if excluded := [name for name in choice.names if _is_one_of(name, choice.excluded)]:
        raise BadOption(
            f"option 'table' lists {excluded[0]}, and excludes it with !.",
            "Remove one of the two entries.",
            option="table",
        )
    if not choice.patterns:
        return choice.names
    there = tables_there(options.connection, catalog)
    for pattern in choice.patterns:
        _require_match(pattern, there)
    matched = _matched(options, there)
    names = (*choice.names, *matched)
    if len(names) == 1 and not options.row_form().has_fixed_schema:
        raise BadOption(
            f"option 'table' is a pattern that only {names[0]} matches: with"
            f" shape={options.rows.shape} the form of its rows would change when another table"
            " matches.",
            "Name the table, or set shape=json, whose columns do not depend on the number of tables.",
            option="table",
        )
    shown = ",".join(map(str, choice.patterns))
    TABLES_MATCHED.log(logger, patterns=shown, count=len(matched), tables=",".join(map(str, matched)))
    return names


def matched_tables(options: SourceOptions, catalog: Catalog) -> tuple[TableName, ...]:
    """Return the tables that patterns match now, without the named ones; refuse nothing."""
    return _matched(options, tables_there(options.connection, catalog))


def with_named_tables(options: SourceOptions, catalog: Catalog) -> SourceOptions:
    """Return options that list their tables by name."""
    if not options.table_choice().patterns:
        return options
    return options.of_tables(named_tables(options, catalog))


def tables_there(connection: ConnectionOptions, catalog: Catalog) -> list[TableName]:
    """Return the tables of the captured database that can be captured."""
    return [TableName(connection.database, *name) for name in catalog.tables_there()]


def _matched(options: SourceOptions, there: list[TableName]) -> tuple[TableName, ...]:
    choice = options.table_choice()
    left_out = {*choice.names, options.heartbeat()}
    return tuple(
        sorted(
            name
            for name in there
            if name not in left_out
            and _is_one_of(name, choice.patterns)
            and not _is_one_of(name, choice.excluded)
        )
    )


def _require_match(pattern: TablePattern, there: list[TableName]) -> None:
    if not any(map(pattern.matches, there)):
        raise BadOption(
            f"no table of database {pattern.database} matches {pattern}.",
            "Patterns are case-sensitive; views, synonyms, system and RAW tables never match.",
            option="table",
        )


def _is_one_of(name: TableName, choices: Sequence[TablePattern | TableName]) -> bool:
    return any(
        choice.matches(name) if isinstance(choice, TablePattern) else choice == name
        for choice in choices
    )
