"""The tables that option `table` stands for: names, and patterns that the catalog answers.

Rule: patterns are looked up once, where a query starts; what the answer is, is told. Views, synonyms,
system tables, temporary and RAW tables match nothing, as no capture can have them; a table with a
column that cannot be captured does match, and is refused like one that is named.
"""

from __future__ import annotations

import logging

from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import BadOption
from informix_capture_client.log_events import TABLES_MATCHED
from informix_capture_client.sql_names import TableName, TablePattern
from informix_cdc.options import SourceOptions

logger = logging.getLogger("informix_cdc.connector.named_tables")  # a name in logs, not a module

_FORMS_OF_ONE = ("rows", "envelope", "raw")  # shapes in which one table's rows look unlike several's


def named_tables(options: SourceOptions, catalog: Catalog) -> tuple[TableName, ...]:
    """Return the tables of option `table`: the named ones in their order, then what patterns match.

    Raises:
        BadOption: a pattern matches nothing, or a table is named and excluded.
    """
    choice = options.table_choice()
    if excluded := [name for name in choice.names if _is_one_of(name, choice.excluded)]:
        raise BadOption(
            f"table {excluded[0]} is named by option table and by tableExclude.",
            "Take it out of one of them.",
            option="tableExclude",
        )
    if not choice.patterns:
        return choice.names
    there = [TableName(options.database, *name) for name in catalog.tables_there()]
    found = [_matches(pattern, there, choice.excluded) for pattern in choice.patterns]
    heartbeat = options.heartbeat()
    matched = sorted({name for names in found for name in names} - {*choice.names, heartbeat})
    names = (*choice.names, *matched)
    if len(names) == 1 and options.shape in _FORMS_OF_ONE:
        raise BadOption(
            f"option 'table' is a pattern that only {names[0]} matches: with shape={options.shape} the"
            " form of its rows would change with the next table that does.",
            "Name the table, or set shape=json, whose columns are the same for any number of tables.",
            option="table",
        )
    shown = ",".join(map(str, choice.patterns))
    TABLES_MATCHED.log(logger, patterns=shown, count=len(matched), tables=",".join(map(str, matched)))
    return names


def with_named_tables(options: SourceOptions, catalog: Catalog) -> SourceOptions:
    """Return options that name their tables one by one."""
    if not options.table_choice().patterns:
        return options
    return options.of_tables(named_tables(options, catalog))


def _matches(
    pattern: TablePattern, there: list[TableName], excluded: tuple[TablePattern | TableName, ...]
) -> list[TableName]:
    found = [name for name in there if pattern.matches(name)]
    if not found:
        raise BadOption(
            f"no table of database {pattern.database} matches {pattern}.",
            "Upper and lower case count; views, synonyms, system and RAW tables match nothing.",
            option="table",
        )
    return [name for name in found if not _is_one_of(name, excluded)]


def _is_one_of(name: TableName, choices: tuple[TablePattern | TableName, ...]) -> bool:
    return any(
        choice.matches(name) if isinstance(choice, TablePattern) else choice == name
        for choice in choices
    )
