"""Judge which columns of the tables can be captured, with the choice that the source makes.

Rule: `catalog/column_choice.py` decides; here its answer becomes one finding per table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from informix_capture_client.catalog import Table, choose_columns, columns_behind_a_collection
from informix_capture_client.choices import ColumnChoice
from informix_capture_client.errors import BadOption, UnsupportedColumn
from informix_capture_client.findings import Finding, failure, ok
from informix_capture_client.sql_names import quoted
from informix_capture_client.values import Column, is_simple_object

_CHECK = "columns"
_RESELECT = "--simple-lobs=reselect reads what TEXT and BYTE columns hold (option simpleLobs); "


def check_columns(tables: Sequence[Table], choice: ColumnChoice) -> Iterator[Finding]:
    """Judge all tables at once, as the include list names columns of any of them."""
    try:
        chosen = choose_columns(tables, choice)
    except UnsupportedColumn as refused:
        yield from _refused(tables, refused)
    except BadOption as mistake:
        yield failure(_CHECK, mistake.message, mistake.remedy)
    else:
        for table, kept in zip(tables, chosen, strict=True):
            yield _captured(table, kept.delivered)


def _refused(tables: Sequence[Table], reason: UnsupportedColumn) -> Iterator[Finding]:
    for table in tables:
        name = str(table.name)
        own = {column for of_table, column, _ in reason.columns if of_table == name}
        refused = _listed(table, [column for column in table.columns if column.name in own])
        if not refused:
            yield ok(_CHECK, "has only columns that can be captured.", table=name)
            continue
        value = "omit-following" if own & columns_behind_a_collection(table) else "omit"
        has_simple_objects = any(is_simple_object(c.type_text) for c in table.columns if c.name in own)
        yield failure(
            _CHECK,
            f"has {len(own)} that cannot be captured: {refused}.",
            (_RESELECT if has_simple_objects else "")
            + f"--unsupported-columns={value} leaves them out (option unsupportedColumns); --columns"
            " names the others (option columns).",
            table=name,
            kind=UnsupportedColumn,
        )


def _captured(table: Table, kept: Sequence[Column]) -> Finding:
    left_out = _listed(table, [column for column in table.columns if column not in kept])
    found = f"is captured with {len(kept)} of {len(table.columns)} columns"
    return ok(_CHECK, found + (f"; left out: {left_out}." if left_out else "."), table=str(table.name))


def _listed(table: Table, columns: Sequence[Column]) -> str:
    """Return columns with their types; those that no server captures where they stand say so."""
    behind = columns_behind_a_collection(table)
    return ", ".join(
        f"{quoted(column.name)} ({column.type_text.upper()}"
        f"{', behind a SET, MULTISET or LIST' if column.name in behind else ''})"
        for column in columns
    )
