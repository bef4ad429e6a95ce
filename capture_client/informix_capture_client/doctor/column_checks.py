"""Judge which columns of the tables can be captured, with the choice that the source makes.

Rule: `catalog/column_choice.py` decides; here its answer becomes one finding per table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from informix_capture_client.catalog import Table, choose_columns
from informix_capture_client.choices import ColumnChoice
from informix_capture_client.errors import BadOption, UnsupportedColumn
from informix_capture_client.findings import Finding, failure, ok
from informix_capture_client.sql_names import quoted
from informix_capture_client.values import Column

_CHECK = "columns"


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
            yield _captured(table, kept.columns)


def _refused(tables: Sequence[Table], reason: UnsupportedColumn) -> Iterator[Finding]:
    for name in (str(table.name) for table in tables):
        own = [(column, kind) for table, column, kind in reason.columns if table == name]
        refused = [f"{quoted(column)} ({kind.upper()})" for column, kind in own]
        if not refused:
            yield ok(_CHECK, "has only columns that can be captured.", table=name)
            continue
        yield failure(
            _CHECK,
            f"has {len(refused)} that cannot be captured: {', '.join(refused)}.",
            "--unsupported-columns=omit leaves them out (option unsupportedColumns); --columns names"
            " the others (option columns).",
            table=name,
            kind=UnsupportedColumn,
        )


def _captured(table: Table, kept: Sequence[Column]) -> Finding:
    left_out = [f"{quoted(c.name)} ({c.type_text.upper()})" for c in table.columns if c not in kept]
    found = f"is captured with {len(kept)} of {len(table.columns)} columns"
    without = f"; left out: {', '.join(left_out)}." if left_out else "."
    return ok(_CHECK, found + without, table=str(table.name))
