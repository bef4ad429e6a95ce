"""`informix-cdc release-logging`: the one command that switches full row logging off."""

from __future__ import annotations

import contextlib

import click

from informix_cdc.capture_client.session import release_full_row_logging
from informix_cdc.connector.connections import open_capture_connection
from informix_cdc.connector.options import SourceOptions
from informix_cdc.connector.source_tables import look_up_tables

_WARNING = (
    "Full row logging of {tables} will be switched off on server {server}. Every capture of"
    " {them} loses what changes from then on and stops with an error; a new start needs a reload."
)


def release(options: SourceOptions, *, is_sure: bool) -> None:
    """Warn, ask, and switch full row logging off.

    Raises:
        InformixCdcError: a table does not exist, or the server refuses.
    """
    source = look_up_tables(options)
    names = [str(table.name) for table in source.tables]
    warning = _WARNING.format(
        tables=", ".join(names), server=options.server, them="it" if len(names) == 1 else "them"
    )
    click.echo(warning, err=True)
    if not is_sure:
        click.confirm("Switch it off?", abort=True, err=True)
    with contextlib.closing(open_capture_connection(options, source.db_locale)) as connection:
        release_full_row_logging(connection, names)
    click.echo(f"Full row logging is off for {', '.join(names)}.")
