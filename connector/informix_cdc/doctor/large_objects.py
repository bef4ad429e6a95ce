"""Check the requirements for reading contents of large objects, if options request them.

Rule: one object of each column is opened but not read. A failure here would also fail the query, at its
start or at the first object.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from informix_capture_client.catalog import Catalog, Table, unqualified
from informix_capture_client.errors import AccessRefused, ServerRefused
from informix_capture_client.findings import Finding, State, Unanswered, failure, ok, warning
from informix_capture_client.object_readers import ObjectReader, any_object, object_reader, try_open
from informix_capture_client.sql_names import quoted
from informix_capture_client.transport import Transport
from informix_capture_client.values import Column, is_large_object
from informix_cdc.doctor.snapshots import why_not_readable
from informix_cdc.object_contents import SettledRows, explained, reselecting_of
from informix_cdc.options import ColumnOptions, SourceOptions
from informix_cdc.server import describe_tables, open_object_connection, with_named_tables

OBJECTS = "large objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectColumn:
    """A column whose contents are to be read.

    Attributes:
        table: with its database.
        name: of the column.
        is_selected: whether a row is selected for each object, instead of opening the handle in the
            log.
        size: size in bytes of the object that was opened; None if no row has one.
        most_bytes: maximum size of an object that is read.
        refusal: why the user may not SELECT from the table; None if they may.
    """

    table: str
    name: str
    is_selected: bool = False
    size: int | Unanswered | None = None
    most_bytes: int = 0
    refusal: Unanswered | None = None


def check_objects(facts: tuple[ObjectColumn, ...] | Unanswered | None) -> Iterator[Finding]:
    """Check whether contents can be read; None: options request none, and nothing is reported."""
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
            f"{name}: the first object has {column.size:,} bytes; contents of more than"
            f" {column.most_bytes:,} bytes are not read.",
            "Raise the limit: --lob-max-bytes (option lobMaxBytes)",
            table=table,
        )
    return ok(OBJECTS, f"{name}: an object of {column.size:,} bytes can be read.", table=table)


def _no_right(column: ObjectColumn, refusal: Unanswered) -> Finding:
    """Check a user who may not SELECT; opening the handles in the log does not need that right."""
    grant = f"As its owner: GRANT SELECT ON {unqualified(column.table)} TO the user"
    found = f"column {quoted(column.name)}: the user may not read the table"
    if column.is_selected:
        return failure(OBJECTS, f"{found}: {refusal.reason}", grant, table=column.table)
    return warning(
        OBJECTS,
        f"{found}, so no object could be opened: {refusal.reason}",
        grant,
        table=column.table,
    )


def read_object_facts(options: SourceOptions, transport: Transport) -> tuple[ObjectColumn, ...]:
    """Query the captured database, and open an object of each column over a separate connection.

    Raises:
        InformixCdcError: a table has no key to find its objects with, or another check fails.
    """
    catalog = Catalog(transport, options.connection.database)
    options = with_named_tables(options, catalog)
    source = describe_tables(options, catalog)
    by_key = reselecting_of(options, source)
    columns = [
        (table, column, number in by_key)
        for number, table in enumerate(source.tables)
        for column in _columns(table, options.columns)
    ]
    if not columns:
        return ()
    refusals = {table.name: why_not_readable(catalog, table) for table, _, _ in columns}
    with contextlib.closing(open_object_connection(options.connection, source.db_locale)) as objects:
        SettledRows(objects).require(())  # selects a row, which a writer may have locked
        reader, most_bytes = object_reader(objects), options.objects.max_bytes
        return tuple(
            ObjectColumn(
                table=str(table.name),
                name=column.name,
                is_selected=is_selected,
                size=None if refusals[table.name] else _size(reader, table, column, most_bytes),
                most_bytes=most_bytes,
                refusal=refusals[table.name],
            )
            for table, column, is_selected in columns
        )


def _columns(table: Table, column_options: ColumnOptions) -> Iterator[Column]:
    """Yield the columns whose contents are read."""
    if column_options.reads_objects:
        yield from (column for column in table.columns if is_large_object(column.type_text))
    yield from (column for _, column in table.reselected)


def _size(
    reader: ObjectReader, table: Table, column: Column, most_bytes: int
) -> int | Unanswered | None:
    try:
        with explained():
            opened = try_open(reader, any_object(table, column), most_bytes)
            if opened.descriptor >= 0:
                reader.close(opened.descriptor)
    except (AccessRefused, ServerRefused) as reason:
        return Unanswered.of(reason)
    return opened.size if opened.content is None else opened.content.size
