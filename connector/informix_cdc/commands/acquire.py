"""`informix-cdc acquire`: full row logging on again, and the position from which that holds.

Rule: the position is asked of the server after the switch, so that every record behind it has whole
rows. It alone goes to stdout, for scripts; everything else goes to stderr.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import click

from informix_capture_client.catalog import Catalog, Table
from informix_capture_client.errors import ServerRefused
from informix_capture_client.positions import page_after, show
from informix_capture_client.session import SessionSettings
from informix_cdc.commands.altering import acquired, require_receipt_of
from informix_cdc.commands.row_logging import switch_on_for_capture
from informix_cdc.options import SourceOptions
from informix_cdc.server import (
    open_capture_connection,
    open_catalog,
    open_connection,
    require_logged_database,
    with_named_tables,
)
from informix_cdc.terminal import say
from informix_checkpoints.receipts import load_receipt, save_receipt

_NEXT = (
    "Every change that is made from now on has whole rows, and lies at {position} or behind it. What"
    " was changed shortly before may lie behind it too, without them: no writer should have run until"
    " now. Start a new stream there, with a new checkpoint:\n"
    '  .option("startingPosition", "{position}")'
)

_IN_STREAM = (
    "Writers may go on. Start the query again with the same checkpoint and the option\n"
    '  .option("schemaChange", {receipt})\n'
    "In a mirror's file, under [source]:\n"
    "  schemaChange = {receipt}"
)

WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.1


def acquire(options: SourceOptions, receipt: Path | None = None) -> None:
    """Switch full row logging on for the tables and print from where a new stream can begin.

    Args:
        options: option `table` names the tables.
        receipt: of `release`; it is completed, so that their streams go on with the altered tables.

    Raises:
        BadOption: the database is not logged, or a table does not exist.
        ServerRefused: the server turns it down, the switch does not show, or a table has an ALTER that
            is not ended.
    """
    with open_catalog(options) as catalog:
        options = with_named_tables(options, catalog)
        require_logged_database(options, catalog)
        tables = catalog.tables(options.table_names())
        known = None if receipt is None else load_receipt(receipt)
        if known is not None:
            require_receipt_of(known, catalog, options)
        db_locale = options.db_locale or catalog.database_locale()
        with contextlib.closing(open_capture_connection(options, db_locale)) as connection:
            settings = SessionSettings(server=options.server, dialect=options.dialect)
            switch_on_for_capture(connection, catalog, tables, settings, _say_switched)
        if known is None or receipt is None:
            position, still_open = _position_behind_the_switch(catalog)
            _say_position(show(position), still_open)
            return
        with contextlib.closing(open_connection(options, options.database)) as marking:
            found = acquired(options, catalog, marking, _say_who_is_waited_for)
        save_receipt(replace(known, acquired=found), receipt, is_new=False)
        say(_IN_STREAM.format(receipt=json.dumps(str(receipt.absolute()))))
        click.echo(show(found.since))


def _say_switched(table: Table, was_on: bool) -> None:
    if was_on:
        say(
            f"{table.name}: full row logging was on already; whether it was off in between cannot be"
            " seen."
        )
    else:
        say(f"{table.name}: full row logging is on.")


def _position_behind_the_switch(catalog: Catalog) -> tuple[int, frozenset[int]]:
    """Return where every change from now on lies, and what is open there.

    Who was open before the switch may have changed rows without full row logging. A stream knows that
    it is older by its BEGINTX below the position; the log's end is only known within a page, so that
    it is waited for until the log has moved on by two, or all of these have ended.

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
                "full row logging is on, but the log does not move on behind the switch, so that"
                f" transactions that were open before it may lie there: {ids}.",
                "Run this again when they have ended; or run it again and meanwhile switch the log:"
                " onmode -l.",
            )
        time.sleep(_POLL_SECONDS)


def _say_who_is_waited_for(still_open: Collection[int]) -> None:
    ids = ", ".join(map(str, sorted(still_open)))
    say(f"Waiting for transactions that were open before the switch to end: {ids}.")


def _say_position(position: str, open_transactions: Collection[int]) -> None:
    say(_NEXT.format(position=position))
    if open_transactions:
        ids = ", ".join(map(str, sorted(open_transactions)))
        say(
            f"Open transactions: {len(open_transactions)} (ids {ids}). A stream that begins at this"
            " position leaves those out that began before it, with all they change."
        )
    click.echo(position)
