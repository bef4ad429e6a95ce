"""What a capture needs that reads contents of large objects; checked only where they are asked for.

Rule: pure: facts in, findings out. A failure is what ends the query too, at its start or at the first
object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from informix_capture_client.catalog import unqualified
from informix_capture_client.findings import Finding, State, Unanswered, failure, ok, warning
from informix_capture_client.sql_names import quoted

OBJECTS = "large objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectColumn:
    """A column whose contents are to be read.

    Attributes:
        table: with its database.
        name: the column's.
        is_selected: whether a row is selected for each object; if not, the log's handle is opened.
        size: of an object of it that was opened, in bytes; None: no row has one.
        most_bytes: of an object that is read.
        refusal: why the user may not SELECT from the table; None if they may.
    """

    table: str
    name: str
    is_selected: bool = False
    size: int | Unanswered | None = None
    most_bytes: int = 0
    refusal: Unanswered | None = None


def check_objects(facts: tuple[ObjectColumn, ...] | Unanswered | None) -> Iterator[Finding]:
    """Judge whether contents can be read; None: none are asked for, and nothing is said."""
    if isinstance(facts, Unanswered):
        state = State.FAILURE if facts.was_asked else State.NOT_CHECKED
        yield Finding(OBJECTS, state, facts.reason, facts.remedy)
    elif facts is not None:
        yield from map(_column, facts)
        if not facts:
            yield ok(OBJECTS, "no table has a column of large objects whose contents are read.")


def _column(column: ObjectColumn) -> Finding:
    name, table = f"column {quoted(column.name)}", column.table
    if column.refusal is not None:
        return _no_right(column, column.refusal)
    if isinstance(column.size, Unanswered):
        return failure(OBJECTS, f"{name}: {column.size.reason}", column.size.remedy, table=table)
    if column.size is None:
        return ok(OBJECTS, f"{name}: no row has an object, so none was opened.", table=table)
    if column.size > column.most_bytes:
        return warning(
            OBJECTS,
            f"{name}: the first object has {column.size:,} bytes; of more than {column.most_bytes:,} no"
            " content is read.",
            "--lob-max-bytes (option lobMaxBytes)",
            table=table,
        )
    return ok(OBJECTS, f"{name}: an object of {column.size:,} bytes can be read.", table=table)


def _no_right(column: ObjectColumn, refusal: Unanswered) -> Finding:
    """Judge a user who may not SELECT; who opens what the log names needs not."""
    grant = f"as its owner: GRANT SELECT ON {unqualified(column.table)} TO the user"
    found = f"column {quoted(column.name)}: its table may not be read"
    if column.is_selected:
        return failure(OBJECTS, f"{found}: {refusal.reason}", grant, table=column.table)
    return warning(
        OBJECTS,
        f"{found}, so that no object could be tried: {refusal.reason}",
        grant,
        table=column.table,
    )
