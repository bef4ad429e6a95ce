"""Find out whether contents of large objects can be read: one object of each column is opened.

Rule: it is opened as a capture opens it, without a lock, and closed; a short TEXT or BYTE is read, as a
capture reads it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from informix_capture_client.catalog import Catalog, Table
from informix_capture_client.errors import AccessRefused, ServerRefused
from informix_capture_client.findings import Unanswered
from informix_capture_client.object_readers import ObjectReader, any_object, object_reader, try_open
from informix_capture_client.transport import Transport
from informix_capture_client.values import Column, is_large_object
from informix_cdc.doctor.large_object_checks import ObjectColumn
from informix_cdc.doctor.snapshot_facts import why_not_readable
from informix_cdc.object_contents import SettledRows, explained, reselecting_of
from informix_cdc.options import SourceOptions
from informix_cdc.server import describe_tables, open_object_connection, with_named_tables


def read_object_facts(options: SourceOptions, transport: Transport) -> tuple[ObjectColumn, ...]:
    """Ask the captured database, and open an object of each column over a connection of its own.

    Raises:
        InformixCdcError: a table has no key by which its objects are found, or something that other
            checks tell.
    """
    catalog = Catalog(transport, options.database)
    options = with_named_tables(options, catalog)
    source = describe_tables(options, catalog)
    by_key = reselecting_of(options, source)
    columns = [
        (table, column, number in by_key)
        for number, table in enumerate(source.tables)
        for column in _columns(table, options)
    ]
    if not columns:
        return ()
    refusals = {table.name: why_not_readable(catalog, table) for table, _, _ in columns}
    with contextlib.closing(open_object_connection(options, source.db_locale)) as objects:
        SettledRows(objects).require(())  # a row is selected, which a writer may hold
        reader, most_bytes = object_reader(objects), options.lob_max_bytes
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


def _columns(table: Table, options: SourceOptions) -> Iterator[Column]:
    """Yield the columns whose contents are read."""
    if options.reads_objects:
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
        return Unanswered(reason.message, reason.remedy)
    return opened.size if opened.content is None else opened.content.size
