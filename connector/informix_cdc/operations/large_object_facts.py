"""Find out whether contents of large objects can be read: one object of each column is opened.

Rule: it is opened as a capture opens it, without a lock, and closed; a short TEXT or BYTE
is read, as a capture reads it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from informix_capture_client.catalog import Catalog, Table
from informix_capture_client.doctor import ObjectColumn
from informix_capture_client.errors import AccessRefused, ServerRefused
from informix_capture_client.findings import Unanswered
from informix_capture_client.large_objects import ObjectReader, any_object, object_reader, try_open
from informix_capture_client.snapshot import WholeTableQuery
from informix_capture_client.statements import LAST_COMMITTED, LOCK_WAIT
from informix_capture_client.transport import Transport
from informix_capture_client.values import Column, is_large_object
from informix_cdc.large_objects import connect_for_objects, explained, reselecting_of
from informix_cdc.options import SourceOptions
from informix_cdc.server import describe_tables, with_named_tables


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
    with contextlib.closing(connect_for_objects(options, source.db_locale)) as objects:
        for statement in (LAST_COMMITTED, LOCK_WAIT):  # the row of it is selected, whatever `lobs` says
            objects.rows(statement)
        tried = _Tried(catalog, object_reader(objects), options.lob_max_bytes)
        return tuple(tried.column(*each) for each in columns)


def _columns(table: Table, options: SourceOptions) -> Iterator[Column]:
    """Yield the columns whose contents are read."""
    if options.reads_objects:
        yield from (column for column in table.columns if is_large_object(column.type_text))
    yield from (column for _, column in table.reselected)


class _Tried:
    def __init__(self, catalog: Catalog, reader: ObjectReader, most_bytes: int) -> None:
        self._catalog, self._reader, self._most_bytes = catalog, reader, most_bytes

    def column(self, table: Table, column: Column, is_selected: bool) -> ObjectColumn:
        refusal, size = self._refusal(table), None
        if refusal is None:
            size = self._size(table, column)
        return ObjectColumn(
            table=str(table.name),
            name=column.name,
            is_selected=is_selected,
            size=size,
            most_bytes=self._most_bytes,
            refusal=refusal,
        )

    def _refusal(self, table: Table) -> Unanswered | None:
        try:
            self._catalog.require_readable(WholeTableQuery(table).no_rows)
        except (AccessRefused, ServerRefused) as reason:
            return Unanswered(reason.message, reason.remedy)
        return None

    def _size(self, table: Table, column: Column) -> int | Unanswered | None:
        try:
            with explained():
                opened = try_open(self._reader, any_object(table, column), self._most_bytes)
                if opened.descriptor >= 0 and opened.content is None:
                    self._reader.close(opened.descriptor)
        except (AccessRefused, ServerRefused) as reason:
            return Unanswered(reason.message, reason.remedy)
        return opened.size if opened.content is None else opened.content.size
