"""`informix-cdc acquire`: switch full row logging on again and print the position from which it is on.

Rule: the position is read from the server after the switch, so that every later record has whole rows.
Only the position is printed to stdout, for scripts; everything else goes to stderr.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Sequence

import click

from informix_capture_client.catalog import Catalog, Table
from informix_capture_client.errors import ServerRefused
from informix_capture_client.positions import page_after, show
from informix_capture_client.session import PENDING_ALTER, SessionSettings
from informix_capture_client.transport import Transport
from informix_cdc.commands.row_logging import switch_on_for_capture
from informix_cdc.options import SourceOptions
from informix_cdc.server import (
    open_capture_connection,
    open_catalog,
    require_logged_database,
    with_named_tables,
)
from informix_cdc.terminal import say

_NEXT = (
    "Every change made from now on has whole rows and is at or after {position}. Changes made"
    " shortly before may also be after this position, but without whole rows: make sure that no"
    " writer has run until now. Start a new stream there, with a new checkpoint:\n"
    '  .option("startingPosition", "{position}")'
)

WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.1
_PENDING_SECONDS = 2.0


def acquire(options: SourceOptions) -> None:
    """Switch full row logging of the tables on and print the position at which a new stream can start.

    Args:
        options: option `table` names the tables.

    Raises:
        BadOption: the database is not logged, or a table does not exist.
        ServerRefused: the server refuses the switch, or the flag is not set after it.
    """
    with open_catalog(options.connection) as catalog:
        options = with_named_tables(options, catalog)
        require_logged_database(options.connection, catalog)
        tables = catalog.tables(options.table_names())
        db_locale = options.connection.db_locale or catalog.database_locale()
        with contextlib.closing(open_capture_connection(options.connection, db_locale)) as connection:
            settings = SessionSettings(
                server=options.connection.server, dialect=options.connection.dialect
            )
            _switch_on(connection, catalog, tables, settings)
        position, still_open = _position_behind_the_switch(catalog)
        _say_position(show(position), still_open)


def _switch_on(
    connection: Transport, catalog: Catalog, tables: Sequence[Table], settings: SessionSettings
) -> None:
    """Switch row logging on, and wait until no table has rows from before an in-place ALTER."""
    is_said = False
    while True:
        try:
            return switch_on_for_capture(connection, catalog, tables, settings, _say_switched)
        except ServerRefused as reason:
            if reason.facts.get("error_code") != PENDING_ALTER:
                raise
            if not is_said:
                say(f"{reason.message} {reason.remedy}\nWaiting until that is done. Ctrl-C stops.")
            is_said = True
        time.sleep(_PENDING_SECONDS)


def _say_switched(table: Table, was_on: bool) -> None:
    if was_on:
        say(
            f"{table.name}: full row logging was already on. If it was off in between, that"
            " cannot be detected."
        )
    else:
        say(f"{table.name}: full row logging is on.")


def _position_behind_the_switch(catalog: Catalog) -> tuple[int, frozenset[int]]:
    """Return a position that all later changes follow, and the transactions open there.

    Transactions open before the switch may have changed rows without full row logging. A stream detects
    them if their BEGINTX is before the position. The end of the log is known only to the page, so this
    waits until the log has advanced by two pages, or until all of these transactions have ended.

    Raises:
        ServerRefused: neither happens in time.
    """
    switched_at, before = catalog.current_position(), catalog.open_transactions()
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        position, still_open = catalog.next_position(), catalog.open_transactions()
        if not before & still_open or position >= page_after(switched_at):
            return position, still_open
        if time.monotonic() >= deadline:
            ids = ", ".join(map(str, sorted(before & still_open)))
            raise ServerRefused(
                "full row logging is on, but the log did not advance after the switch. These"
                f" transactions were open before it, and their changes may be incomplete: {ids}.",
                "Run acquire again after they have ended, or run it again and switch the log"
                " meanwhile: onmode -l",
            )
        time.sleep(_POLL_SECONDS)


def _say_position(position: str, open_transactions: Collection[int]) -> None:
    say(_NEXT.format(position=position))
    if open_transactions:
        ids = ", ".join(map(str, sorted(open_transactions)))
        say(
            f"Open transactions: {len(open_transactions)} (ids {ids}). They began before this"
            " position: a stream that starts here does not deliver them."
        )
    click.echo(position)
