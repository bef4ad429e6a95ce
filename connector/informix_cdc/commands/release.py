"""`informix-cdc release`: switch full row logging off for tables that no stream needs any more.

Rule: all checks come first, then the confirmation, then the switch. `--yes` skips no check. To change
the definition of a captured table, there is `informix-cdc alter`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from informix_capture_client.catalog import Catalog, Table, source_digest, unqualified
from informix_capture_client.errors import BadOption
from informix_capture_client.shell_commands import table_argument, with_tables
from informix_cdc.commands.row_logging import require_not_captured, switch_off
from informix_cdc.options import ConnectionOptions, SourceOptions
from informix_cdc.server import (
    open_capture_connection,
    open_catalog,
    require_logged_database,
    with_named_tables,
)
from informix_cdc.terminal import arguments_for, require_yes, say, say_command
from informix_checkpoints.offsets import SourceProgress, read_checkpoint

_WARNING = (
    "Full row logging of {tables} will be switched off on server {server}. Changes made after"
    " that cannot be captured."
)
_NOTHING_DONE = "Nothing was switched off."


def release(
    options: SourceOptions, checkpoints: Sequence[str], *, needs_no_checkpoint: bool, is_sure: bool
) -> None:
    """Check, ask for confirmation, and switch full row logging off.

    Args:
        options: option `table` names the tables to release.
        checkpoints: of all queries that captured one of them.
        needs_no_checkpoint: the user confirms that no query needs their changes.
        is_sure: do not ask for confirmation.

    Raises:
        BadOption: neither or both of checkpoints and `needs_no_checkpoint`; or a query needs a table.
        ServerRefused: a session captures a table, or the server refuses the switch.
    """
    if bool(checkpoints) == needs_no_checkpoint:
        raise BadOption(
            "release must know which queries have captured these tables.",
            "Give --checkpoint PATH for each of them, or --no-checkpoint if none needs them.",
        )
    with open_catalog(options.connection) as catalog:
        named = options.table_choice().names
        options = with_named_tables(options, catalog)
        tables = _logged_tables(options, catalog)
        if not tables:
            return
        db_locale = options.connection.db_locale or catalog.database_locale()
        with contextlib.closing(open_capture_connection(options.connection, db_locale)) as connection:
            require_not_captured(
                connection, tables, options.connection.dialect, _say_what_is_waited_for
            )
        for place in checkpoints:
            for progress in read_checkpoint(place).sources:
                _require_not_needed(progress, place, tables, catalog, options.connection)
        shown = ", ".join(str(table.name) for table in tables)
        say(_WARNING.format(tables=shown, server=options.connection.server))
        if not is_sure:
            require_yes("Switch it off?")
        with contextlib.closing(open_capture_connection(options.connection, db_locale)) as connection:
            for table in tables:
                switch_off(connection, catalog, table, options.connection.dialect)
                say(f"{table.name}: full row logging is off.")
        off = {table.name for table in tables}
        acquired = [name for name in options.table_names() if name in off or name in named]
        say("To capture them again, with a new stream:", to_stdout=True)
        words = with_tables(arguments_for("acquire", options), *map(table_argument, acquired))
        say_command("acquire", *words, to_stdout=True)


def _require_not_needed(
    progress: SourceProgress,
    place: str,
    tables: Sequence[Table],
    catalog: Catalog,
    connection: ConnectionOptions,
) -> None:
    """Refuse if a stream has one of the tables, also in a batch that Spark may repeat.

    Raises:
        BadOption: names the table, or the checkpoint that belongs to another server or database.
    """
    source = source_digest(catalog.server_name(), connection.database)
    if source != progress.delivered.source:
        raise BadOption(
            f"checkpoint {place}, source {progress.name}, is not for database {connection.database} on"
            f" this server: its source digest is {progress.delivered.source}, not {source}."
            f" {_NOTHING_DONE}",
            "Give the server and database of its query.",
        )
    needed = {name for offset in (progress.delivered, progress.planned[1]) for name in offset.tables}
    for table in tables:
        if (name := unqualified(str(table.name))) in needed:
            raise BadOption(
                f"the stream of checkpoint {place}, source {progress.name}, captures {name}."
                f" {_NOTHING_DONE}",
                "Remove the table from option table and run the query until it has committed a batch;"
                " or give --no-checkpoint, if the query is never started again. To alter the table, run"
                " informix-cdc alter.",
            )


def _say_what_is_waited_for(captured: str, seconds: float) -> None:
    say(
        f"{captured}. If its query was just stopped, the session ends soon: waiting up to"
        f" {seconds:g} s."
    )


def _logged_tables(options: SourceOptions, catalog: Catalog) -> list[Table]:
    """Return the tables whose full row logging is on; report the others."""
    require_logged_database(options.connection, catalog)
    tables = catalog.tables(options.table_names())
    off = catalog.without_row_logging(tables)
    for table in off:
        say(f"{table.name}: full row logging is already off.")
    return [table for table in tables if table not in off]
