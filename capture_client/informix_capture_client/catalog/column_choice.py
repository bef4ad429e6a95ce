"""Choose the columns of the tables to capture.

Rule: columns are chosen once, from the catalog, before a session is opened. The columns requested from
the server, the schema and the digest of the source all derive from the tables returned here, so they
always agree. Columns stay in table order.

A server does not capture columns that follow a SET, MULTISET or LIST (docs/assumptions.md). They would
be missing without an error, so users have to exclude them explicitly.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile

from informix_capture_client.catalog.tables import Table
from informix_capture_client.choices import ColumnChoice
from informix_capture_client.errors import BadOption, UnsupportedColumn
from informix_capture_client.masks import Mask
from informix_capture_client.sql_names import NamePath, TableName, quoted
from informix_capture_client.values import (
    Column,
    capturable,
    is_collection,
    is_large_object,
    is_simple_object,
)

_SHOWN = 200  # characters of an unknown type that an error quotes

Named = Mapping[TableName, frozenset[str]]

_BY_TYPE, _BY_PLACE = "type", "place"  # why a column cannot be captured
_RESELECT = "Set option simpleLobs=reselect to read the content of TEXT and BYTE columns. "
_LEFT_OUT = {"fail": (), "omit": (_BY_TYPE,), "omit-following": (_BY_TYPE, _BY_PLACE)}


def choose_columns(tables: Sequence[Table], choice: ColumnChoice) -> tuple[Table, ...]:
    """Return the tables with their captured columns.

    Raises:
        BadOption: a name does not match the tables, or a table has no column left.
        UnsupportedColumn: columns that cannot be captured were not excluded; lists all of them.
    """
    named = _by_table(tables, choice.names, "columns")
    masked = _masks(tables, choice)
    behind = {table.name: columns_behind_a_collection(table) for table in tables}
    included = [_included(_with_masks(table, masked, choice), named) for table in tables]
    _require_capturable(included, named, behind, choice)
    _require_no_large_object(named, included, choice)
    return tuple(_without_the_rest(table, behind[table.name], choice) for table in included)


def columns_behind_a_collection(table: Table) -> frozenset[str]:
    """Return the names of the columns that follow a table's first SET, MULTISET or LIST."""
    rest = dropwhile(lambda column: not is_collection(column.type_text), table.columns)
    next(rest, None)
    return frozenset(column.name for column in rest)


def _masks(tables: Sequence[Table], choice: ColumnChoice) -> Mapping[tuple[TableName, str], Mask]:
    """Return the mask of each column that has one."""
    _by_table(tables, [entry.path for entry in choice.masks], "mask")  # each names one column
    found = {}
    for entry in choice.masks:
        *qualifiers, column = entry.path
        name = _table_of(tables, qualifiers, column, "mask").name
        found[name, column] = Mask(entry.kind, choice.mask_key if entry.kind == "hash" else None)
    return found


def _with_masks(
    table: Table, masked: Mapping[tuple[TableName, str], Mask], choice: ColumnChoice
) -> Table:
    """Return a table whose columns have their masks."""
    columns = []
    for column in table.columns:
        mask = masked.get((table.name, column.name))
        if mask is not None:
            is_of_content = _has_content(column, choice)
            if is_of_content and mask.kind == "last4":
                raise _bad(
                    f"has last4 for {quoted(column.name)} of {table.name}, a"
                    f" {column.type_text.upper()}",
                    "Use hash or null for it.",
                    option="mask",
                )
            column = replace(column, mask=replace(mask, is_of_content=is_of_content))
        columns.append(column)
    return replace(table, columns=tuple(columns))


def _has_content(column: Column, choice: ColumnChoice) -> bool:
    """Return whether rows have the content of a large object instead of what the log has."""
    is_read = choice.lobs in ("content", "reselect") and is_large_object(column.type_text)
    return is_read or _is_reselected(column, choice)


def _by_table(tables: Sequence[Table], names: Iterable[NamePath], option: str) -> Named:
    """Return the columns that an option names, by table."""
    found: dict[TableName, set[str]] = {}
    for *qualifiers, column in names:
        table = _table_of(tables, qualifiers, column, option)
        _require_column(table, column, option)
        columns = found.setdefault(table.name, set())
        if column in columns:
            raise _bad(f"names column {quoted(column)} of {table.name} twice", option=option)
        columns.add(column)
    return {name: frozenset(columns) for name, columns in found.items()}


def _table_of(tables: Sequence[Table], qualifiers: Sequence[str], column: str, option: str) -> Table:
    """Return the only table that a name can belong to."""
    known = [table for table in tables if _is_qualified_by(table.name, qualifiers)]
    if len(known) == 1:
        return known[0]
    shown = ".".join(map(quoted, (*qualifiers, column)))
    if not known:
        of_table = {f"{quoted(t.name.table)}.{quoted(column)}" for t in tables}
        raise _bad(
            f"names {shown}, but no such table is captured", _nearest(shown, of_table), option=option
        )
    raise _bad(
        f"names {shown}, which matches more than one captured table",
        "Write table.column, or owner.table.column.",
        option=option,
    )


def _is_qualified_by(name: TableName, qualifiers: Sequence[str]) -> bool:
    return not qualifiers or (name.owner, name.table)[-len(qualifiers) :] == tuple(qualifiers)


def _require_column(table: Table, column: str, option: str) -> None:
    names = [known.name for known in table.columns]
    if column not in names:
        raise _bad(
            f"names {quoted(column)}, but {table.name} has no such column",
            _nearest(quoted(column), map(quoted, names)),
            option=option,
        )


def _nearest(shown: str, names: Iterable[str]) -> str:
    by_lower_case = {name.lower(): name for name in names}
    [near] = difflib.get_close_matches(shown.lower(), by_lower_case, n=1, cutoff=0.0)
    return f"Did you mean {by_lower_case[near]}?"


def _included(table: Table, named: Named) -> Table:
    names = named.get(table.name)
    if names is None:
        return table
    return replace(table, columns=tuple(column for column in table.columns if column.name in names))


def _require_capturable(
    tables: Sequence[Table], named: Named, behind: Named, choice: ColumnChoice
) -> None:
    """Reject columns that cannot be captured, unless they are excluded and not named by the user."""
    left_out = _LEFT_OUT[choice.unsupported]
    refused = [
        (table.name, column, why)
        for table in tables
        for column in table.columns
        if (why := _why_not(column, behind[table.name], choice))
        and (why not in left_out or column.name in named.get(table.name, ()))
    ]
    if refused:
        value = "omit-following" if any(why == _BY_PLACE for *_, why in refused) else "omit"
        raise UnsupportedColumn(
            f"{', '.join(_described(*each) for each in refused)} and cannot be captured.",
            _RESELECT
            * any(is_simple_object(column.type_text) for _, column, _ in refused)
            + f"Exclude such columns with option unsupportedColumns={value}, or list the other columns"
            " in option columns.",
            columns=[(str(name), column.name, column.type_text) for name, column, _ in refused],
        )


def _why_not(column: Column, behind: frozenset[str], choice: ColumnChoice) -> str:
    if _is_reselected(column, choice):
        return ""
    if not capturable(column.type_text):
        return _BY_TYPE
    return _BY_PLACE if column.name in behind else ""


def _described(name: TableName, column: Column, why: str) -> str:
    of_type = f"has type {column.type_text.upper()[:_SHOWN]}"
    reason = {_BY_TYPE: of_type, _BY_PLACE: "follows a SET, MULTISET or LIST"}[why]
    return f"column {quoted(column.name)} of table {name} {reason}"


def _require_no_large_object(named: Named, tables: Sequence[Table], choice: ColumnChoice) -> None:
    """Reject an include list that names a large object while `lobs=omit`."""
    for table in tables:
        for column in table.columns:
            if _is_left_out(column, choice) and column.name in named.get(table.name, ()):
                raise _bad(
                    f"names {quoted(column.name)} of {table.name}, a {column.type_text.upper()}, but"
                    " option 'lobs' is omit",
                    "Remove the column, or change option lobs.",
                )


def _without_the_rest(table: Table, behind: frozenset[str], choice: ColumnChoice) -> Table:
    delivered = [
        column
        for column in table.columns
        if not _why_not(column, behind, choice) and not _is_left_out(column, choice)
    ]
    kept = tuple(column for column in delivered if not _is_reselected(column, choice))
    reselected = tuple(each for each in enumerate(delivered) if _is_reselected(each[1], choice))
    if not kept:
        raise BadOption(
            f"no column of {table.name} is left to capture.", "Remove the table from option table."
        )
    return replace(table, columns=kept, reselected=reselected)


def _is_left_out(column: Column, choice: ColumnChoice) -> bool:
    return choice.lobs == "omit" and is_large_object(column.type_text)


def _is_reselected(column: Column, choice: ColumnChoice) -> bool:
    return choice.simple_lobs == "reselect" and is_simple_object(column.type_text)


def _bad(what: str, remedy: str = "", *, option: str = "columns") -> BadOption:
    return BadOption(f"option '{option}' {what}.", remedy, option=option)
