"""`informix-cdc release`: switch full row logging off so that tables can be altered without data loss.

Rule: all checks that need no reading of the log come first, then the confirmation. The log is read
after it, so that nothing commits while the user decides. The switch comes last. `--yes` skips no check.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from informix_capture_client.catalog import Catalog, Table
from informix_capture_client.errors import NEW_STREAM, BadOption
from informix_capture_client.positions import show
from informix_capture_client.printable import shown_bytes
from informix_capture_client.shell_commands import table_argument, with_tables
from informix_capture_client.sql_names import TableName
from informix_cdc.commands.altering import only_released, receipt_of
from informix_cdc.commands.row_logging import require_not_captured, switch_off
from informix_cdc.commands.undelivered import OnRead, StreamOfTables, require_all_delivered, streams_of
from informix_cdc.options import SourceOptions
from informix_cdc.server import (
    open_capture_connection,
    open_catalog,
    require_logged_database,
    with_named_tables,
)
from informix_cdc.terminal import arguments_for, require_yes, say, say_command, shown_progress
from informix_checkpoints.receipts import save_receipt

_WARNING = (
    "Full row logging of {tables} will be switched off on server {server}. Changes made after"
    " that cannot be captured: do not change rows of the tables until you have run acquire."
)
_BUFFERED = (
    "Database {database} has buffered logging: the latest commits may still be in the server's"
    " log buffer, which a capture cannot read. When the writers have stopped, run as user"
    " {owner}: onmode -c"
)
_READING = (
    "Reading the log to its end. If nothing is written on the server, this takes {seconds:g}"
    " seconds without new records."
)
_ALTER_IN_STREAM = """\
Full row logging of {tables} is off. Next steps; do not change rows of the tables meanwhile:
  1. Run the ALTER.
  2. Switch row logging on again; then writers may resume:"""
_QUERY_IN_STREAM = """\
  3. Restart the query with the same checkpoint and this option:
     .option("schemaChange", {receipt})
     In the file of a mirror, under [source]:
     schemaChange = {receipt}"""
_ALTER = """\
Full row logging of {tables} is off. Next steps:
  1. Run the ALTER, while no writer changes the table.
  2. Switch row logging on again; this prints the position from which it is on:"""
_NEW_QUERY = """\
  3. Start the query as a new stream, with a new checkpoint and that position as startingPosition."""


def release(
    options: SourceOptions,
    checkpoints: Sequence[str],
    *,
    needs_no_checkpoint: bool,
    is_sure: bool,
    quiet_seconds: float,
    receipt: Path | None = None,
) -> None:
    """Check, ask for confirmation, and switch full row logging off.

    Args:
        options: option `table` names the tables to release.
        checkpoints: of all queries that capture one of them.
        needs_no_checkpoint: the user confirms that no query needs their changes.
        is_sure: do not ask for confirmation.
        quiet_seconds: seconds without new records after which the log counts as fully read.
        receipt: file to create, with which the streams continue after the ALTER.

    Raises:
        BadOption: neither or both of checkpoints and `needs_no_checkpoint`; or one does not match.
        DataLoss: a query has not delivered everything.
        ServerRefused: a session captures a table, or the server refuses the switch.
    """
    _require_one_choice(checkpoints, needs_no_checkpoint, receipt)
    with open_catalog(options) as catalog:
        named = options.table_choice().names
        options = with_named_tables(options, catalog)
        tables = _logged_tables(options, catalog, receipt)
        if not tables:
            return
        db_locale = options.db_locale or catalog.database_locale()
        with contextlib.closing(open_capture_connection(options, db_locale)) as connection:
            require_not_captured(connection, tables, options.dialect, _say_what_is_waited_for)
        streams = streams_of(checkpoints, catalog, options)
        if checkpoints:
            _require_streams_cover(streams, tables)
        if receipt is not None:
            streams = only_released(streams, tables, catalog)
        _warn_of_buffered_logging(options, catalog)
        _ask(options, tables, streams, is_sure)
        reached = _read_to_end(streams, options, catalog, db_locale, quiet_seconds)
        if receipt is not None:  # before the switch: if it cannot be written, nothing is changed
            save_receipt(receipt_of(streams, tables), receipt, is_new=True)
        _switch_all_off(tables, options, catalog, db_locale)
        if reached is not None:
            _say_what_is_delivered(reached, catalog.current_position())
        _say_what_comes_next(options, _to_acquire(options, named, tables), receipt)


def _read_to_end(
    streams: Sequence[StreamOfTables],
    options: SourceOptions,
    catalog: Catalog,
    db_locale: str,
    quiet_seconds: float,
) -> int | None:
    """Require that everything is delivered; return the position up to which the log was read."""
    if streams:
        say(_READING.format(seconds=quiet_seconds))
    with _shown_reading(quiet_seconds) as on_read:
        return require_all_delivered(streams, options, catalog, db_locale, quiet_seconds, on_read)


@contextlib.contextmanager
def _shown_reading(most_quiet_seconds: float) -> Iterator[OnRead]:
    with shown_progress("Reading the log", total=1.0) as show:

        def show_reading(read_bytes: int, total_bytes: int, quiet_seconds: float) -> None:
            quiet = f"no new records for {quiet_seconds:.0f} of {most_quiet_seconds:g} s"
            size = f"{shown_bytes(read_bytes)} of {shown_bytes(total_bytes)}, " if total_bytes else ""
            show(read_bytes / total_bytes if total_bytes else 0, size + quiet)

        yield show_reading


def _say_what_is_waited_for(captured: str, seconds: float) -> None:
    say(
        f"{captured}. If its query was just stopped, the session ends soon: waiting up to"
        f" {seconds:g} s."
    )


def _switch_all_off(
    tables: Iterable[Table], options: SourceOptions, catalog: Catalog, db_locale: str
) -> None:
    with contextlib.closing(open_capture_connection(options, db_locale)) as connection:
        for table in tables:
            switch_off(connection, catalog, table, options.dialect)
            say(f"{table.name}: full row logging is off.")


def _require_one_choice(
    checkpoints: Sequence[str], needs_no_checkpoint: bool, receipt: Path | None
) -> None:
    if receipt is not None and (needs_no_checkpoint or not checkpoints):
        raise BadOption(
            "--receipt requires the checkpoints of the queries that continue with the tables.",
            "Give --checkpoint PATH for each of them, or omit --receipt.",
        )
    if bool(checkpoints) == needs_no_checkpoint:
        raise BadOption(
            "release must know which queries still need changes of these tables.",
            "Give --checkpoint PATH for each of them, or --no-checkpoint if there are none.",
        )


def _logged_tables(options: SourceOptions, catalog: Catalog, receipt: Path | None) -> list[Table]:
    """Return the tables whose full row logging is on; report the others.

    Raises:
        BadOption: a receipt is requested, but row logging of a table is off: changes since then are
            unknown.
    """
    require_logged_database(options, catalog)
    tables = catalog.tables(options.table_names())
    off = catalog.without_row_logging(tables)
    for table in off:
        if receipt is not None:
            raise BadOption(
                f"full row logging of {table.name} is already off, so a receipt cannot record"
                " what was delivered.",
                "If release has written a receipt before, use that one. Otherwise the stream"
                f" has lost the changes made since: run informix-cdc acquire, {NEW_STREAM}.",
            )
        say(f"{table.name}: full row logging is already off.")
    return [table for table in tables if table not in off]


def _require_streams_cover(streams: Iterable[StreamOfTables], tables: Iterable[Table]) -> None:
    captured = {table.name for stream in streams for table in stream.tables}
    for table in tables:
        if table.name not in captured:
            raise BadOption(
                f"none of the given checkpoints belongs to a stream that captures {table.name}.",
                "Give its checkpoint too, or release the table separately with --no-checkpoint.",
            )


def _warn_of_buffered_logging(options: SourceOptions, catalog: Catalog) -> None:
    logging = catalog.database_logging()
    if logging is not None and logging.is_buffered:
        say(_BUFFERED.format(database=options.database, owner=options.dialect.owner))


def _ask(
    options: SourceOptions, tables: Sequence[Table], streams: Iterable[StreamOfTables], is_sure: bool
) -> None:
    shown = ", ".join(str(table.name) for table in tables)
    say(_WARNING.format(tables=shown, server=options.server))
    captured = {str(table.name) for stream in streams for table in stream.tables}
    if others := sorted(captured - {str(table.name) for table in tables}):
        say(
            f"The streams end for {', '.join(others)} too: do not change rows of these tables"
            " either, until you have the position of the new stream."
        )
    if not is_sure:
        require_yes("Switch it off?")


def _say_what_is_delivered(reached: int, switched: int) -> None:
    say(
        f"All changes up to {show(reached)} are delivered. Row logging was switched off before"
        f" {show(switched)}. The streams do not deliver changes made in between."
    )


def _to_acquire(
    options: SourceOptions, named: Collection[TableName], switched_off: Iterable[Table]
) -> list[TableName]:
    """Return the tables to acquire: named tables, and those of a pattern that were switched off now."""
    off = {table.name for table in switched_off}
    return [name for name in options.table_names() if name in off or name in named]


def _say_what_comes_next(
    options: SourceOptions, names: Sequence[TableName], receipt: Path | None
) -> None:
    alter, query = (_ALTER, _NEW_QUERY) if receipt is None else (_ALTER_IN_STREAM, _QUERY_IN_STREAM)
    place = str(receipt.absolute()) if receipt else ""
    flags, of_receipt = arguments_for("acquire", options), ("--receipt", place) if receipt else ()
    say(alter.format(tables=", ".join(map(str, names))), to_stdout=True)
    words = with_tables(flags, *map(table_argument, names))
    say_command("acquire", *words, *of_receipt, before="     ", to_stdout=True)
    say(query.format(receipt=json.dumps(place)), to_stdout=True)
