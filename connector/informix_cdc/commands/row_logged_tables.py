"""`informix-cdc status --row-logging`: all tables of a server with full row logging on.

Rule: it changes nothing, and lists tables whichever product switched them on. The commands that it
prints switch off only what they name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby

import click

from informix_capture_client.catalog import read_row_logged
from informix_capture_client.errors import AccessRefused
from informix_capture_client.session import OpenSession, read_open_sessions
from informix_capture_client.shell_commands import table_argument, with_tables
from informix_capture_client.sql_names import TableName
from informix_capture_client.transport import Transport
from informix_cdc.options import ConnectionOptions, SourceOptions
from informix_cdc.server import open_server_log
from informix_cdc.terminal import answers, arguments_for, counted, say, say_command

_SWITCH_OFF = "To switch it off, if no query needs their changes any more:"


def print_row_logged(options: SourceOptions, *, as_json: bool) -> None:
    """Print the tables, the sessions that capture them, and commands that switch row logging off.

    Raises:
        InformixCdcError: the server does not answer, or the user may not read sysmaster.
    """
    with open_server_log(options.connection) as connection:
        tables = read_row_logged(connection)
        sessions, refused = _sessions(connection, options.connection)
    if as_json:
        shown = [
            {"table": str(name), "sessions": None if sessions is None else _capturing(name, sessions)}
            for name in tables
        ]
        click.echo(json.dumps({"rowLogging": shown}))
        return
    console = answers()
    if not tables:
        console.print("Full row logging is on for no table of this server.")
        return
    console.print(f"Full row logging is on for {counted(len(tables), 'table')}:", style="bold")
    for name in tables:
        captured = ", ".join(map(str, _capturing(name, sessions or ())))
        console.print(f"  {name}" + (f"  captured by session {captured}" if captured else ""))
    if refused is not None:
        say(f"Which of them a session captures is not known. {refused}")
    say(_SWITCH_OFF)
    flags = arguments_for("release", options, without=["database"])
    for database, of_database in groupby(tables, key=lambda name: name.database):
        words = with_tables(flags, *map(table_argument, of_database))
        say_command("release", *words, "--database", database, "--no-checkpoint")


def _sessions(
    connection: Transport, connection_options: ConnectionOptions
) -> tuple[tuple[OpenSession, ...] | None, AccessRefused | None]:
    """Return the sessions, or why they cannot be listed; the tables can be listed all the same."""
    try:
        return read_open_sessions(connection, connection_options.dialect), None
    except AccessRefused as reason:
        return None, reason


def _capturing(name: TableName, sessions: Iterable[OpenSession]) -> list[int]:
    return [session.session_id for session in sessions if name in session.tables]
