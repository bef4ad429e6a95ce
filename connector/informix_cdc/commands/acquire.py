"""`informix-cdc acquire`: full row logging on again, and the position from which that holds.

Rule: the position is asked of the server after the switch, so that every record behind it has whole
rows. It alone goes to stdout, for scripts; everything else goes to stderr.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection

import click

from informix_capture_client.positions import show
from informix_cdc.operations import switch_on
from informix_cdc.options import SourceOptions
from informix_cdc.server import open_capture_connection, open_catalog, require_logged_database

_NEXT = """\
Every change that is made from now on has whole rows, and lies at {position} or behind it. What was
changed shortly before may lie behind it too, without them: no writer should have run until now. Start
a new stream there, with a new checkpoint:
  .option("startingPosition", "{position}")"""

_DONE = {
    False: "full row logging is on",
    True: "full row logging was on already; whether it was off in between cannot be seen",
}


def acquire(options: SourceOptions) -> None:
    """Switch full row logging on for the tables and print from where a new stream can begin.

    Raises:
        BadOption: the database is not logged, or a table does not exist.
        ServerRefused: the server turns it down, or the switch does not show.
    """
    with open_catalog(options) as catalog:
        require_logged_database(options, catalog)
        tables = [catalog.table(name) for name in options.table_names()]
        db_locale = options.db_locale or catalog.database_locale()
        with contextlib.closing(open_capture_connection(options, db_locale)) as connection:
            for table in tables:
                was_on = catalog.logs_full_rows(table)
                switch_on(connection, catalog, table, options.dialect)
                click.echo(f"{table.name}: {_DONE[was_on]}.", err=True)
        position = catalog.next_position()
        _tell(show(position), catalog.open_transactions())


def _tell(position: str, open_transactions: Collection[int]) -> None:
    click.echo(_NEXT.format(position=position), err=True)
    if open_transactions:
        ids = ", ".join(map(str, sorted(open_transactions)))
        click.echo(
            f"Open transactions: {len(open_transactions)} (ids {ids}). A stream that begins at this"
            " position leaves those out that began before it, with all they change.",
            err=True,
        )
    click.echo(position)
