"""How large objects are found again, by the keys of their rows, and how long one may take.

Rule: what would fail for sure is found before the first row: a table without a key is refused by name.
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

_SILENT_REQUESTS = 10  # of an object, each of which may take as long as a living server is silent


@contextlib.contextmanager
def open_contents(
    options: SourceOptions,
    source: SourceTables,
    figures: ContentFigures,
    is_stopped: Callable[[], bool],
    clock: Callable[[], float],
) -> Iterator[ObjectContents | None]:
    """Have what reads large objects for a session, if rows have their contents; else None.

    Args:
        options: with the password, or where it is.
        source: the captured tables.
        figures: count what becomes of objects.
        is_stopped: whether nobody wants what is read any more.
        clock: a monotonic clock.

    Raises:
        BadOption: a table with large objects has no key that can be used.
    """
    if not source.has_contents:
        yield None
        return
    pool = ContentPool(
        lambda: open_object_connection(options, source.db_locale),
        options.lob_connections,
        options.lob_max_bytes,
        options.lob_read_seconds,
        figures,
        clock,
        is_stopped,
        silent_seconds=most_silent_seconds(options),
    )
    with contextlib.closing(pool):
        skips = options.lob_unchanged == "skip"
        yield ObjectContents(pool, skips, reselecting_of(options, source))


def most_silent_seconds(options: SourceOptions) -> float:
    """Return for how long a connection may bring no object, and no piece of one, before it is lost.

    Natively each answer has its own deadline, by its bytes. Through a driver manager nothing has one,
    and a whole TEXT or BYTE comes by one call.
    """
    if options.transport == "sqli":
        return math.inf
    line_seconds = options.lob_max_bytes / SLOWEST_BYTES_PER_SECOND
    return _SILENT_REQUESTS * silent_seconds(options) + line_seconds


def reselecting_of(options: SourceOptions, source: SourceTables) -> Mapping[int, Reselecting]:
    """Return by which keys objects are found again, by the numbers of tables; none if by their handles.

    Raises:
        BadOption: a table with large objects has no key that can be used.
    """
    if source.rules.lobs != "reselect" and options.simple_lobs != "reselect":
        return {}
    found: dict[int, Reselecting] = {}
    with open_catalog(options) as catalog:
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
                    f"option '{option}' is reselect, and {reason.message}",
                    "Name a key of it with option snapshotKey, leave its large objects out, or set"
                    f" {option} to another value.",
                    option=option,
                ) from None
            found[number] = reselecting(table, key.columns, source.rules)
    return found


def _option_that_needs_a_key(table: Table, source: SourceTables) -> str:
    """Return the option by which objects of a table are found by a key; empty: there is none."""
    if table.reselected:
        return "simpleLobs"
    is_asked = source.rules.lobs == "reselect"
    return "lobs" if is_asked and any(is_large_object(c.type_text) for c in table.columns) else ""
