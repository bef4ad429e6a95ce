"""Determine the keys by which large objects are found, and the time limits for reading them.

Rule: certain failures are found before the first row: a table without a key is refused by name.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping

from informix_capture_client.catalog import Table
from informix_capture_client.errors import BadOption
from informix_capture_client.incremental_snapshot import KeyRules, choose_key
from informix_capture_client.object_readers import Reselecting, reselecting
from informix_capture_client.shapes import ObjectContents
from informix_capture_client.transport import SLOWEST_BYTES_PER_SECOND
from informix_capture_client.values import is_large_object
from informix_cdc.object_contents.figures import ContentFigures
from informix_cdc.object_contents.pool import ContentPool
from informix_cdc.options import SourceOptions
from informix_cdc.server import (
    SourceTables,
    open_catalog,
    open_object_connection,
    silent_seconds,
)

_SILENT_REQUESTS = 10  # requests per object, each of which may take the maximum silence of the server


@contextlib.contextmanager
def open_contents(
    options: SourceOptions,
    source: SourceTables,
    figures: ContentFigures,
    is_stopped: Callable[[], bool],
    clock: Callable[[], float],
) -> Iterator[ObjectContents | None]:
    """Return the reader of large objects for a session if rows have their contents; else None.

    Args:
        options: with the password or its location.
        source: the captured tables.
        figures: count the results.
        is_stopped: whether the contents are no longer needed.
        clock: a monotonic clock.

    Raises:
        BadOption: a table with large objects has no usable key.
    """
    if not source.has_contents:
        yield None
        return
    pool = ContentPool(
        lambda: open_object_connection(options.connection, source.db_locale),
        options.objects.connections,
        options.objects.max_bytes,
        options.objects.read_seconds,
        figures,
        clock,
        is_stopped,
        silent_seconds=most_silent_seconds(options),
    )
    with contextlib.closing(pool):
        yield ObjectContents(pool, reselecting_of(options, source))


def most_silent_seconds(options: SourceOptions) -> float:
    """Return the maximum time in which a connection must return an object or a piece of one.

    Without a driver, each response has its own deadline, depending on its size. With ODBC no call has
    one, and a whole TEXT or BYTE is read by one call.
    """
    if options.connection.transport == "sqli":
        return math.inf
    line_seconds = options.objects.max_bytes / SLOWEST_BYTES_PER_SECOND
    return _SILENT_REQUESTS * silent_seconds(options.connection) + line_seconds


def reselecting_of(options: SourceOptions, source: SourceTables) -> Mapping[int, Reselecting]:
    """Return the keys by which objects are found, by table number; empty if handles are used.

    Raises:
        BadOption: a table with large objects has no usable key.
    """
    if source.rules.lobs != "reselect" and options.columns.simple_lobs != "reselect":
        return {}
    found: dict[int, Reselecting] = {}
    with open_catalog(options.connection) as catalog:
        rules = KeyRules(source.rules, catalog.ignores_case())
        named = options.snapshot_key_names()
        for number, (table, keys) in enumerate(
            zip(source.tables, catalog.keys(source.tables), strict=True)
        ):
            option = _option_that_needs_a_key(table, source)
            if not option:
                continue
            try:
                key = choose_key(table, keys, rules, named.get(table.name, ()))
            except BadOption as reason:
                raise BadOption(
                    f"option '{option}' is reselect, but {reason.message}",
                    "Set a key for it with option snapshotKey, exclude its large objects, or set"
                    f" {option} to another value.",
                    option=option,
                ) from None
            if masked := [column.name for column in key.columns if column.mask]:
                raise BadOption(
                    f"option '{option}' is reselect, which finds objects by the key of their row, but"
                    f" option mask has its column {masked[0]} of {table.name}.",
                    f"Set another key with option snapshotKey, or {option} to another value.",
                    option=option,
                )
            found[number] = reselecting(table, key.columns, source.rules)
    return found


def _option_that_needs_a_key(table: Table, source: SourceTables) -> str:
    """Return the option that makes a table need a key for its objects; empty if there is none."""
    if table.reselected:
        return "simpleLobs"
    is_asked = source.rules.lobs == "reselect"
    return "lobs" if is_asked and any(is_large_object(c.type_text) for c in table.columns) else ""
