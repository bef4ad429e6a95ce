"""Option `table` as it is written: names of tables, and patterns.

Rule: what is in double quotes is a name; what has a `*` outside of them is a pattern.
"""

from __future__ import annotations

from typing import NamedTuple

from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import TableName, TablePattern


class TableChoice(NamedTuple):
    """What option `table` names, matches, and leaves out."""

    names: tuple[TableName, ...]
    patterns: tuple[TablePattern, ...]
    excluded: tuple[TableName | TablePattern, ...]


def table_choice(tables: tuple[str, ...], exclude: tuple[str, ...], database: str) -> TableChoice:
    """Read the options `table` and `tableExclude`.

    Raises:
        BadOption: one of them is neither name nor pattern, or stands there twice.
    """
    read = [_name_or_pattern(text, database) for text in tables]
    names = tuple(each for each in read if isinstance(each, TableName))
    patterns = tuple(each for each in read if isinstance(each, TablePattern))
    if len(set(names)) != len(names):
        raise BadOption("option 'table' names a table twice.", option="table")
    excluded = tuple(_name_or_pattern(text, database) for text in exclude)
    if excluded and not patterns:
        raise BadOption(
            "option 'tableExclude' leaves out what patterns of option table match, and there is none.",
            "Write a pattern such as informix.ord*, or leave tableExclude out.",
            option="tableExclude",
        )
    return TableChoice(names, patterns, excluded)


def _name_or_pattern(text: str, database: str) -> TableName | TablePattern:
    if "*" in text and '"' not in text:
        return TablePattern.parse(text, database)
    return TableName.parse(text, database)
