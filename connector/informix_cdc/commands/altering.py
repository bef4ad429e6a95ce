"""Receipts of tables that are altered while their streams live on.

Rule: what a receipt says was looked up here, of checkpoints, catalog and log; nothing is asked of the
user.
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
MOVE_SECONDS = 60.0  # in which a log that is written to moves on by a page, however slow the server
_NOTHING_DONE = "Nothing was switched off."


def only_released(
    streams: Iterable[StreamOfTables], tables: Sequence[Table], catalog: Catalog
) -> list[StreamOfTables]:
    """Return streams as far as they capture the tables: the others' writers need not stand still.

    Raises:
        BadOption: a stream knows nothing of single tables yet, reads one for a snapshot, or has
            another one that was released.
    """
    wanted = {str(table.name) for table in tables}
    found = []
    for stream in streams:
        mine = tuple(table for table in stream.tables if str(table.name) in wanted)
        if not mine:
            continue
        _require_others_logged(stream, wanted, catalog)
        states = stream.progress.delivered.tables
        if states is None:
            raise BadOption(
                f"{stream}, was written by an earlier version, which had one digest for all of its"
                f" tables. {_NOTHING_DONE}",
                "Run its query once with this version, and stop it again.",
            )
        for table in mine:
            snapshot = states[unqualified(str(table.name))].snapshot
            if snapshot is not None and not snapshot.is_done:
                raise BadOption(
                    f"{stream}, has a snapshot of {table.name} under way. {_NOTHING_DONE}",
                    "Let the snapshot end first.",
                )
        found.append(replace(stream, tables=mine))
    return found


def _require_others_logged(stream: StreamOfTables, wanted: Collection[str], catalog: Catalog) -> None:
    """Refuse to release a table beside one that is: a query goes on with one receipt, not with two."""
    others = [table for table in stream.tables if str(table.name) not in wanted]
    for table in catalog.without_row_logging(others):
        raise BadOption(
            f"{stream}, captures {table.name} too, whose full row logging is off. {_NOTHING_DONE}",
            "Release tables that are altered together at once, with one receipt; or end the ALTER of"
            " that one first: acquire it, and run the query.",
        )


def receipt_of(streams: Iterable[StreamOfTables], tables: Sequence[Table]) -> Receipt:
    """Return what is known once all changes of the tables are delivered."""
    delivered = [stream.progress.delivered for stream in streams]
    digests = {
        unqualified(str(table.name)): table_digest(table)
        for stream in streams
        for table in stream.tables
    }
    table_ids = {unqualified(str(table.name)): table.table_id for table in tables}
    missing = [str(table.name) for table in tables if unqualified(str(table.name)) not in digests]
    assert not missing  # it was looked at before
    return Receipt(
        delivered[0].source,
        {offset.stream: offset.position.commit for offset in delivered},
        digests,
        table_ids=table_ids,
    )


def require_receipt_of(receipt: Receipt, catalog: Catalog, options: SourceOptions) -> None:
    """Refuse a receipt of another server, or of other tables, or one that is complete.

    Completed again it would say that nothing was changed before the second time, and the stream would
    leave out, without a word, what writers have done since the first.

    Raises:
        BadOption: names both.
    """
    source = source_digest(catalog.server_name(), options.database)
    if receipt.source != source:
        raise BadOption(
            f"the receipt is of source {receipt.source}, and server and database make {source}.",
            "Name the server and database that release was given.",
        )
    named = sorted(unqualified(str(name)) for name in options.table_names())
    if named != sorted(receipt.digests):
        raise BadOption(
            f"the receipt is of {', '.join(sorted(receipt.digests))}, not of {', '.join(named)}.",
            "Acquire all tables of a receipt at once, and no others.",
        )
    if receipt.acquired is not None:
        raise BadOption(
            f"the receipt is complete: acquire has run, and found {show(receipt.acquired.since)}.",
            "Start the query with it. To alter the table again, let the query run first; then"
            " release, ALTER and acquire it with another receipt.",
        )


def acquired(
    options: SourceOptions,
    catalog: Catalog,
    marking: Transport,
    report: Callable[[frozenset[int]], None],
    clock: Callable[[], float] = time.monotonic,
) -> Acquired:
    """Return from where the tables are whole in the log, and from where on they are delivered.

    A session that begins in the page of the ALTER may be handed rows of the former layout, so the log
    is moved on by a page first. Whoever is open then is waited for, however long it takes: its rows
    may not be whole. Then the log is moved on once more, since its end is known by pages only.

    Args:
        options: which columns are captured, as the query has it.
        catalog: of the captured database; full row logging is on.
        marking: a connection to it that may make temporary tables.
        report: called now and then with who is waited for.
        clock: a monotonic clock, in seconds.

    Raises:
        ServerRefused: the log does not move on.
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
    """Wait until nobody begins in the second in which a table was made: such rows pass for another's.

    What began no later than a partition was made is of the table that had its number before (decision
    0032), and the server tells both by seconds.
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
    """Wait until each was seen to be gone once: an id is a slot, and may be taken again."""
    reported_at = clock()
    while waited_for := waited_for & catalog.open_transactions():
        if clock() - reported_at >= REPORT_SECONDS:
            reported_at = clock()
            report(waited_for)
        time.sleep(POLL_SECONDS)


def _move_log(catalog: Catalog, marking: Transport, up_to: int, clock: Callable[[], float]) -> None:
    """Write into the log until every record yet to be written lies behind a place."""
    deadline = clock() + MOVE_SECONDS
    while catalog.next_position() < up_to:
        if clock() >= deadline:
            raise ServerRefused(
                "full row logging is on, but the log does not move on by a page, so that it is not"
                " known from where on the tables are delivered.",
                "Run this again, and meanwhile switch the log: onmode -l.",
            )
        marking.rows(MAKE_MARKER)
        marking.rows(DROP_MARKER)
