"""`informix-cdc tail`: print committed changes until Ctrl-C or a number of rows.

Rule: the stream is that of a query, with a temporary spool. Changes go to stdout and everything else to
stderr, so that `| jq` and `| head` work. Progress of snapshots is drawn on the last lines of a terminal
and removed while rows are printed.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

from informix_capture_client.catalog import Table
from informix_capture_client.errors import BadOption
from informix_capture_client.log_events import CAPTURE_FAILED
from informix_capture_client.shapes import ChangeRow
from informix_cdc.options import ConnectionOptions, SourceOptions
from informix_cdc.reading import FollowedStream
from informix_cdc.server import open_catalog, server_version_text
from informix_cdc.terminal import (
    answers,
    as_lines,
    counted,
    echo_json,
    ended_by_interrupt,
    hanging,
    kind_of,
    require_yes,
    say,
    say_stays_on,
    say_switched_on,
    table_of,
    table_progress,
    time_of,
    to_json,
)

# Called with the tables, and whether the server is the emulator.
OnRowLoggingOff = Callable[[Sequence[Table], bool], None]

_EMULATOR = " emulator Version "  # part of the emulator's version, in every emulated version
_TIME_WIDTH, _KIND_WIDTH, _TABLE_WIDTH = 9, 9, 13
_INDENT = _TIME_WIDTH + _KIND_WIDTH + _TABLE_WIDTH
_WITH_ROWS = "starting with a snapshot of the existing rows"
_WILL_SWITCH = (
    "Full row logging of {tables} is off. Capture requires it, and it remains on afterwards:"
    " the server then logs each changed row in full and refuses ALTER TABLE until `informix-cdc"
    " release` switches it off."
)
_BEGINNINGS = {"latest": "from now on", "earliest": "from the oldest log file on"}


@dataclass(slots=True)
class TailFigures:
    """Counts of printed rows; rows of a transaction that are not printed do not count.

    `existing_rows` are those of a snapshot, which belong to no transaction.
    """

    transactions: int = 0
    rows: int = 0
    existing_rows: int = 0
    latest_commit: int = -1
    begun_at: float = field(default_factory=time.monotonic)

    def count(self, commit: int, *, is_existing: bool = False) -> None:
        """Count a printed row; rows of one commit are consecutive."""
        if is_existing:
            self.existing_rows += 1
            return
        self.rows += 1
        self.transactions += commit != self.latest_commit
        self.latest_commit = commit

    def __str__(self) -> str:
        rows, transactions = counted(self.rows, "row"), counted(self.transactions, "transaction")
        existing = f"{counted(self.existing_rows, 'existing row')}, " if self.existing_rows else ""
        return f"{existing}{rows} of {transactions} in {time.monotonic() - self.begun_at:.1f} s."


@contextlib.contextmanager
def with_spool(
    given: Mapping[str, str | None], *, snapshot: bool = False
) -> Iterator[dict[str, str | None]]:
    """Add a temporary folder for the spool, and a snapshot if requested."""
    with TemporaryDirectory(prefix="informix-cdc-tail-") as folder:
        existing_rows = {"initialSnapshot": "all"} if snapshot else {}
        # By default a TRUNCATE fails a query; here it is printed.
        yield {**given, **existing_rows, "spoolPath": folder, "truncate": "emit"}


def permission(*, may_switch: bool, is_sure: bool) -> OnRowLoggingOff | None:
    """Return the callback that decides about switching full row logging on; None to always switch."""
    if not may_switch:
        return _refuse_switch
    return None if is_sure else _ask_to_switch


def _refuse_switch(tables: Sequence[Table], _is_emulator: bool) -> None:
    raise BadOption(
        f"full row logging of {_names(tables)} is off, and --no-switch is given.",
        "Omit --no-switch, or ask the owner to run informix-cdc acquire.",
    )


def _ask_to_switch(tables: Sequence[Table], is_emulator: bool) -> None:
    if not is_emulator:
        say(_WILL_SWITCH.format(tables=_names(tables)))
        require_yes("Switch it on?")


def _names(tables: Sequence[Table]) -> str:
    return ", ".join(str(table.name) for table in tables)


def print_changes(
    options: SourceOptions,
    output_format: str,
    limit: int | None,
    on_row_logging_off: OnRowLoggingOff | None = None,
) -> None:
    """Follow the tables and print their changes until interrupted or until the limit is reached.

    Args:
        options: where to connect and what to capture.
        output_format: table or json.
        limit: number of rows to print.
        on_row_logging_off: may refuse to switch full row logging on.

    Raises:
        InformixCdcError: the capture cannot start or continue.
    """
    figures = TailFigures()
    switched_on: list[Table] = []

    def on_switched_on(table: Table) -> None:
        switched_on.append(table)
        say_switched_on(table)

    batches = _batches(options, on_switched_on, on_row_logging_off)
    try:
        with _failure_not_logged(), ended_by_interrupt():
            for line in itertools.islice(_PRINTERS[output_format](batches), limit):
                line.show()
                figures.count(line.commit, is_existing=line.is_existing)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # closing the session takes only a moment
        batches.close()
        say_stays_on(switched_on, options)
    say(str(figures))


def _beginning(options: SourceOptions) -> str:
    choice, place = options.table_choice(), options.stream.starting_position
    tables = ", ".join(map(str, (*choice.names, *choice.patterns)))
    beginning = _WITH_ROWS if options.snapshots.tables else _BEGINNINGS.get(place, f"from {place} on")
    zone = datetime.now().astimezone().tzname()
    return f"Following {tables} {beginning}. Times are in {zone}. Press Ctrl-C to stop."


def _report_row_logging_off(
    connection: ConnectionOptions, tables: Sequence[Table], on_off: OnRowLoggingOff
) -> None:
    """Call `on_off` if a capture would have to switch full row logging of a table on; it may refuse."""
    with open_catalog(connection) as catalog:
        off = catalog.without_row_logging(tables)
        is_emulator = bool(off) and is_of_emulator(server_version_text(catalog))
    if off:
        on_off(off, is_emulator)


def is_of_emulator(version: str) -> bool:
    """Return whether a server's version is that of the emulator, where switching needs no confirmation.

    >>> is_of_emulator("IBM Informix Dynamic Server Version 14.10.FC10")
    False
    """
    return _EMULATOR in version


def _batches(
    options: SourceOptions,
    on_switched_on: Callable[[Table], None],
    on_row_logging_off: OnRowLoggingOff | None,
) -> Generator[list[ChangeRow], None, None]:
    """Yield rows, and say when every later commit will be among them; draw progress meanwhile."""
    stream = FollowedStream(options, on_switched_on=on_switched_on)
    if on_row_logging_off is not None:
        _report_row_logging_off(options.connection, stream.tables, on_row_logging_off)
    with table_progress() as progress, contextlib.closing(stream):
        while True:
            is_new = not stream.offset.is_started
            for changes in stream.next_batch():
                progress.show(stream.snapshots)  # before the rows: --limit may end it within them
                progress.hide()
                yield [change for change in changes if not _begins_snapshot(change)]
            if stream.offset.is_started:
                if is_new:
                    say(_beginning(options))
                progress.show(stream.snapshots)


def _begins_snapshot(change: ChangeRow) -> bool:
    """Return whether a row is the truncate that starts a snapshot in a sink; it is not printed."""
    return change.change_type == "truncate" and bool(change.metadata.get("_snapshot"))


@contextlib.contextmanager
def _failure_not_logged() -> Iterator[None]:
    """Suppress the capture's log event of the error that ends the command: it is printed anyway."""

    def is_news(record: logging.LogRecord) -> bool:
        return getattr(record, "event", None) != CAPTURE_FAILED.name

    logger = logging.getLogger("informix_cdc.connector.capture_thread")
    logger.addFilter(is_news)
    try:
        yield
    finally:
        logger.removeFilter(is_news)


@dataclass(frozen=True, slots=True)
class _Line:
    """A row to print, and its commit position."""

    commit: int
    show: Callable[[], None]
    is_existing: bool = False


def _json_lines(batches: Iterable[list[ChangeRow]]) -> Iterator[_Line]:
    for changes in batches:
        for change in changes:
            yield _Line(change.commit, partial(echo_json, to_json(change)), _is_existing(change))


def _table_lines(batches: Iterable[list[ChangeRow]]) -> Iterator[_Line]:
    console = answers()
    latest_commit = -1
    for changes in batches:
        for change, values in as_lines(changes):
            begins = change.commit != latest_commit
            latest_commit = change.commit
            head = _head(change, begins=begins)
            yield _Line(change.commit, partial(_print, console, head, values), _is_existing(change))


def _is_existing(change: ChangeRow) -> bool:
    return bool(change.metadata.get("_snapshot"))


def _head(change: ChangeRow, *, begins: bool) -> Text:
    """Return time, kind and table; only the first row of a transaction shows the time."""
    time = f"{time_of(change):{_TIME_WIDTH}}" if begins else " " * _TIME_WIDTH
    kind = kind_of(change)
    kind.pad_right(_KIND_WIDTH - len(kind))
    table = f"{table_of(change):{_TABLE_WIDTH - 1}} "
    return Text.assemble((time, "bold" if begins else ""), kind, (table, "blue"))


def _print(console: Console, head: Text, values: Text) -> None:
    # printed at once: Ctrl-C never leaves half a row
    console.print(Text("\n").join(hanging(head, values, console, _INDENT)))


_PRINTERS: dict[str, Callable[[Iterable[list[ChangeRow]]], Iterator[_Line]]] = {
    "table": _table_lines,
    "json": _json_lines,
}
