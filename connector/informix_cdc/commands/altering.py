"""Receipts: let streams continue after an ALTER of their tables.

Rule: the content of a receipt comes from checkpoints, catalog and log, never from the user.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from informix_capture_client.catalog import (
    Catalog,
    Table,
    choose_columns,
    source_digest,
    table_digest,
    unqualified,
)
from informix_capture_client.errors import BadOption, ServerRefused
from informix_capture_client.positions import page_after, show
from informix_capture_client.statements import DROP_MARKER, MAKE_MARKER
from informix_capture_client.transport import Transport
from informix_cdc.commands.undelivered import StreamOfTables
from informix_cdc.options import SourceOptions
from informix_checkpoints.receipts import Acquired, Receipt

POLL_SECONDS = 0.1
REPORT_SECONDS = 10.0
MOVE_SECONDS = 60.0  # within which a log that is written to advances by a page, even on a slow server
_NOTHING_DONE = "Nothing was switched off."


def only_released(
    streams: Iterable[StreamOfTables], tables: Sequence[Table], catalog: Catalog
) -> list[StreamOfTables]:
    """Restrict streams to the tables that are released; writers of the other tables may continue.

    Raises:
        BadOption: a snapshot of a table is running, or another table of the stream is released already.
    """
    wanted = {str(table.name) for table in tables}
    found = []
    for stream in streams:
        mine = tuple(table for table in stream.tables if str(table.name) in wanted)
        if not mine:
            continue
        _require_others_logged(stream, wanted, catalog)
        for table in mine:
            snapshot = stream.progress.delivered.tables[unqualified(str(table.name))].snapshot
            if snapshot is not None and not snapshot.is_done:
                raise BadOption(
                    f"{stream}, has an unfinished snapshot of {table.name}. {_NOTHING_DONE}",
                    "Let the query finish the snapshot first.",
                )
        found.append(replace(stream, tables=mine))
    return found


def _require_others_logged(stream: StreamOfTables, wanted: Collection[str], catalog: Catalog) -> None:
    """Refuse if another table of the stream is released already: a query accepts only one receipt."""
    others = [table for table in stream.tables if str(table.name) not in wanted]
    for table in catalog.without_row_logging(others):
        raise BadOption(
            f"{stream}, captures {table.name} too, whose full row logging is off. {_NOTHING_DONE}",
            "Release tables that are altered together in one command, with one receipt. Or"
            " complete the ALTER of that table first: run acquire, then run the query.",
        )


def receipt_of(streams: Iterable[StreamOfTables], tables: Sequence[Table]) -> Receipt:
    """Return a receipt; all changes of the tables must be delivered."""
    delivered = [stream.progress.delivered for stream in streams]
    digests = {
        unqualified(str(table.name)): table_digest(table)
        for stream in streams
        for table in stream.tables
    }
    table_ids = {unqualified(str(table.name)): table.table_id for table in tables}
    missing = [str(table.name) for table in tables if unqualified(str(table.name)) not in digests]
    assert not missing  # checked before
    return Receipt(
        delivered[0].source,
        {offset.stream: offset.position.commit for offset in delivered},
        digests,
        table_ids=table_ids,
    )


def require_receipt_of(receipt: Receipt, catalog: Catalog, options: SourceOptions) -> None:
    """Refuse a receipt of another server, of other tables, or one that is complete already.

    A second completion would state that nothing was changed before it, and the stream would silently
    skip the changes made since the first.

    Raises:
        BadOption: the message names what differs.
    """
    source = source_digest(catalog.server_name(), options.database)
    if receipt.source != source:
        raise BadOption(
            f"the receipt is for source {receipt.source}, but this server and database are"
            f" source {source}.",
            "Give the same server and database as for release.",
        )
    named = sorted(unqualified(str(name)) for name in options.table_names())
    if named != sorted(receipt.digests):
        raise BadOption(
            f"the receipt is for {', '.join(sorted(receipt.digests))}, not for {', '.join(named)}.",
            "Run acquire for all tables of the receipt at once, and for no others.",
        )
    if receipt.acquired is not None:
        raise BadOption(
            "the receipt is complete: acquire has already run, with position"
            f" {show(receipt.acquired.since)}.",
            "Start the query with it. To alter the table again, first let the query run; then"
            " run release, ALTER and acquire with a new receipt.",
        )


def acquired(
    options: SourceOptions,
    catalog: Catalog,
    marking: Transport,
    report: Callable[[frozenset[int]], None],
    clock: Callable[[], float] = time.monotonic,
) -> Acquired:
    """Return from which position the tables have whole rows, and from which to deliver them.

    A session that starts in the page of the ALTER may receive rows of the previous layout, so the log
    is first advanced by a page. Then all transactions open at that time are awaited, however long it
    takes, because their rows may not be whole. Then the log is advanced once more, because its end is
    known only to the page.

    Args:
        options: the captured columns, as in the query.
        catalog: of the captured database; full row logging is on.
        marking: a connection to it that may create temporary tables.
        report: called periodically with the transactions that are awaited.
        clock: a monotonic clock, in seconds.

    Raises:
        ServerRefused: the log does not advance.
    """
    names = options.table_names()
    _await_later_second(catalog, catalog.created(catalog.tables(names)))
    _move_log(catalog, marking, page_after(catalog.current_position()), clock)
    place, still_open = catalog.next_position(), catalog.open_transactions()
    _await_ends(catalog, still_open, report, clock)
    since = page_after(catalog.current_position())
    _move_log(catalog, marking, since, clock)
    tables = choose_columns(catalog.tables(names), options.column_choice())
    digests = {unqualified(str(table.name)): table_digest(table) for table in tables}
    return Acquired(place, since, tuple(sorted(still_open)), digests)


def _await_later_second(catalog: Catalog, created: Iterable[int]) -> None:
    """Wait until no transaction begins in the second in which a table was created.

    Rows of a transaction that began no later than a partition was created belong to the previous table
    of that number (decision 0004), and the server's times have a resolution of one second.
    """
    newest = max(created, default=0)
    while catalog.clock() == newest:
        time.sleep(POLL_SECONDS)


def _await_ends(
    catalog: Catalog,
    waited_for: frozenset[int],
    report: Callable[[frozenset[int]], None],
    clock: Callable[[], float],
) -> None:
    """Wait until each transaction id was unused once: ids are slots and are reused."""
    reported_at = clock()
    while waited_for := waited_for & catalog.open_transactions():
        if clock() - reported_at >= REPORT_SECONDS:
            reported_at = clock()
            report(waited_for)
        time.sleep(POLL_SECONDS)


def _move_log(catalog: Catalog, marking: Transport, up_to: int, clock: Callable[[], float]) -> None:
    """Write to the log until all later records are after a position."""
    deadline = clock() + MOVE_SECONDS
    while catalog.next_position() < up_to:
        if clock() >= deadline:
            raise ServerRefused(
                "full row logging is on, but the log does not advance by a page, so the"
                " position from which to deliver the tables is unknown.",
                "Run acquire again, and meanwhile switch the log: onmode -l",
            )
        marking.rows(MAKE_MARKER)
        marking.rows(DROP_MARKER)
