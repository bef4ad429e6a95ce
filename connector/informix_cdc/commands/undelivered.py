"""Check whether the streams of checkpoints have delivered all changes of their tables in the log.

Rule: the tables of a checkpoint are never guessed. Its digests must match the tables as they are now.
Then the log is read from the restart position to the end, and changes are counted.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from informix_capture_client.catalog import (
    Catalog,
    LogSpace,
    Table,
    choose_columns,
    read_log_space,
    require_in_log,
    source_digest,
    table_digest,
    unqualified,
)
from informix_capture_client.errors import BadOption, DataLoss, ServerRefused
from informix_capture_client.positions import page_after, show
from informix_capture_client.session import CapturedTable, CaptureSession, SessionSettings
from informix_capture_client.sql_names import TableName
from informix_capture_client.stream import ChangeCount, UndeliveredChanges, find_undelivered_changes
from informix_capture_client.transport import Transport
from informix_cdc.options import SourceOptions
from informix_cdc.server import open_capture_connection
from informix_checkpoints.offsets import SourceProgress, read_checkpoint

_TAIL_PAGES = 4  # pages that a server may log after the last record that a session returns
OnRead = Callable[[int, int, float], None]  # bytes read, total bytes, seconds without new records
_NOTHING_DONE = "Nothing was switched off."


@dataclass(frozen=True, slots=True)
class StreamOfTables:
    """One source of a checkpoint, with the tables that it captures."""

    place: str
    progress: SourceProgress
    tables: tuple[Table, ...]

    def __str__(self) -> str:
        return f"checkpoint {self.place}, source {self.progress.name}"


def streams_of(places: Iterable[str], catalog: Catalog, options: SourceOptions) -> list[StreamOfTables]:
    """Read checkpoints, and describe the tables that each stream captures.

    Raises:
        BadOption: a checkpoint is damaged, or does not match its tables as they are now.
    """
    return [
        StreamOfTables(place, progress, _tables_of(progress, place, catalog, options))
        for place in places
        for progress in read_checkpoint(place).sources
    ]


def _tables_of(
    progress: SourceProgress, place: str, catalog: Catalog, options: SourceOptions
) -> tuple[Table, ...]:
    """Return the tables named in a checkpoint."""
    states = progress.delivered.tables
    names = [TableName.parse(name, options.database) for name in states]
    tables = choose_columns(catalog.tables(names), options.column_choice())
    source = source_digest(catalog.server_name(), options.database)
    if source != progress.delivered.source:
        raise BadOption(
            f"checkpoint {place}, source {progress.name}, is not for database {options.database}"
            f" on this server: its source digest is {progress.delivered.source}, not {source}."
            f" {_NOTHING_DONE}",
            "Give the server and database of its query.",
        )
    for table in tables:
        if table_digest(table) != states[unqualified(str(table.name))].digest:
            raise BadOption(
                f"checkpoint {place}, source {progress.name}, does not match {table.name} as it"
                f" is now. {_NOTHING_DONE}",
                "Give --columns, --lobs and --simple-lobs as in its query. If the table was"
                " altered since, its stream cannot continue, and release need not wait for it.",
            )
    return tables


def require_all_delivered(
    streams: Iterable[StreamOfTables],
    options: SourceOptions,
    catalog: Catalog,
    db_locale: str,
    quiet_seconds: float,
    on_read: OnRead = lambda _read, _total, _quiet_seconds: None,
) -> int | None:
    """Refuse to continue while a stream has changes to deliver.

    If nothing is written to the log, its end cannot be passed; then `quiet_seconds` without new records
    count as the end. Tables whose full row logging is off already are skipped: nothing of them can be
    captured.

    Returns:
        The position up to which the log was read for all streams; None if there are none.

    Raises:
        DataLoss: the message has the number of transactions and rows by table; or the log was
            overwritten.
        ServerRefused: the end of the log cannot be read.
    """
    reached = []
    for stream in streams:
        found = _undelivered(stream, options, catalog, db_locale, quiet_seconds, on_read)
        reached.append(found.reached)
        if found:
            raise DataLoss(
                f"{stream}, is at {show(stream.progress.delivered.position.commit)} and has not"
                f" yet delivered {_described(found, stream.tables)}. {_NOTHING_DONE}",
                "Run its query until it has delivered them (open transactions must end first),"
                " stop it, and run release again.",
            )
    return min(reached, default=None)


def _undelivered(
    stream: StreamOfTables,
    options: SourceOptions,
    catalog: Catalog,
    db_locale: str,
    quiet_seconds: float,
    on_read: OnRead,
) -> UndeliveredChanges:
    position = stream.progress.delivered.position
    try:
        require_in_log(position, catalog.current_position())
        with contextlib.closing(open_capture_connection(options, db_locale)) as connection:
            found = _read_log(stream, options, catalog, connection, quiet_seconds, on_read)
            _require_end(found.reached, read_log_space(connection), catalog)
    except DataLoss as reason:
        raise DataLoss(
            f"the undelivered changes of {stream}, cannot be determined: {reason.message}"
            f" {_NOTHING_DONE}",
            "The stream has lost changes. Once you have dealt with that, use --no-checkpoint.",
        ) from None
    return found


def _read_log(
    stream: StreamOfTables,
    options: SourceOptions,
    catalog: Catalog,
    connection: Transport,
    quiet_seconds: float,
    on_read: OnRead,
) -> UndeliveredChanges:
    position = stream.progress.delivered.position
    settings = SessionSettings(
        server=options.server,
        timeout_seconds=options.read_timeout_seconds,
        dialect=options.dialect,
    )
    with contextlib.closing(CaptureSession(connection, settings)) as session:
        logged = catalog.log_full_rows(stream.tables)
        for number, (table, is_on) in enumerate(zip(stream.tables, logged, strict=True)):
            if is_on:  # one column is enough: rows are only counted
                one = (table.columns[0].name,)
                session.start_capture(CapturedTable(str(table.name), one, number))
        session.activate(position.restart)
        return find_undelivered_changes(
            session,
            position,
            lambda: page_after(catalog.current_position()),  # a partly filled page may not count
            quiet_seconds,
            time.monotonic,
            _in_bytes(catalog.log_space(), position.restart, on_read),
        )


def _in_bytes(space: LogSpace | None, begin: int, on_read: OnRead) -> Callable[[int, float], None]:
    """Convert log positions to bytes, if the server lists its log files."""
    total = space.bytes_since(begin) if space else 0

    def show_read(reached: int, quiet_seconds: float) -> None:
        left = space.bytes_since(reached) if space else 0
        on_read(max(0, total - max(0, left)), total, quiet_seconds)

    return show_read


def _require_end(reached: int, space: LogSpace, catalog: Catalog) -> None:
    """Refuse a session that stops advancing before the end of the log.

    A log that grows without transactions looks the same; the remedy covers that case.
    """
    unread_bytes = space.bytes_since(reached)
    if unread_bytes > _TAIL_PAGES * space.page_bytes:
        raise ServerRefused(
            f"the session reads the log only up to {show(reached)}, {unread_bytes:,} bytes"
            f" before its end {show(catalog.current_position())}. {_NOTHING_DONE}",
            "Commit a transaction on any logged table of this server and try again. If that"
            " does not help, inspect the server's sessions (syscdcsess).",
        )


def _described(found: UndeliveredChanges, tables: Sequence[Table]) -> str:
    counts = {"committed": found.committed, "still open": found.open}
    return " and ".join(_count(kind, count, tables) for kind, count in counts.items() if count.rows)


def _count(kind: str, count: ChangeCount, tables: Sequence[Table]) -> str:
    rows = Counter({str(tables[number].name): rows for number, rows in count.rows.items()})
    shown = ", ".join(f"{_some(of_table, 'row')} of {name}" for name, of_table in sorted(rows.items()))
    return f"{_some(count.transactions, 'transaction')} {kind} ({shown})"


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
