"""`informix-cdc tail`: print committed changes until Ctrl-C or a number of rows.

Rule: changes go to stdout and everything else to stderr, so that `| jq` and `| head` work. Progress of
snapshots is drawn on the last lines of a terminal and removed while rows are printed.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

from informix_capture_client.catalog import Table
from informix_capture_client.errors import BadOption
from informix_capture_client.log_events import CAPTURE_FAILED
from informix_capture_client.shapes import ChangeRow
from informix_cdc.commands.following import OnRowLoggingOff, TailFigures, follow, follow_with_rows
from informix_cdc.options import SourceOptions
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

_TIME_WIDTH, _KIND_WIDTH, _TABLE_WIDTH = 9, 9, 13
_INDENT = _TIME_WIDTH + _KIND_WIDTH + _TABLE_WIDTH
_WITH_ROWS = "starting with a snapshot of the existing rows"
_WILL_SWITCH = (
    "Full row logging of {tables} is off. Capture requires it, and it remains on afterwards:"
    " the server then logs each changed row in full and refuses ALTER TABLE until `informix-cdc"
    " release` switches it off."
)
_BEGINNINGS = {"latest": "from now on", "earliest": "from the oldest log file on"}


@contextlib.contextmanager
def with_spool(
    given: Mapping[str, str | None], *, snapshot: bool = False
) -> Iterator[dict[str, str | None]]:
    """Add a temporary folder for the spool, and a snapshot if requested.

    Snapshot rows and contents of large objects pass through a spool, as in a stream.
    """
    with TemporaryDirectory(prefix="informix-cdc-tail-") as folder:
        existing_rows = {"initialSnapshot": "all"} if snapshot else {}
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
    choice = options.table_choice()
    tables = ", ".join(map(str, (*choice.names, *choice.patterns)))
    place = options.stream.starting_position
    beginning = _WITH_ROWS if options.snapshots.tables else _BEGINNINGS.get(place, f"from {place} on")

    def say_that_it_begins() -> None:
        zone = datetime.now().astimezone().tzname()
        say(f"Following {tables} {beginning}. Times are in {zone}. Press Ctrl-C to stop.")

    def on_switched_on(table: Table) -> None:
        switched_on.append(table)
        say_switched_on(table)

    if options.snapshots.tables or options.columns.reads_contents:
        batches = _with_progress(options, say_that_it_begins, on_switched_on, on_row_logging_off)
    else:
        batches = follow(options, figures, say_that_it_begins, on_switched_on, on_row_logging_off)
    try:
        with ended_by_interrupt():
            for line in itertools.islice(_PRINTERS[output_format](batches), limit):
                line.show()
                figures.count(line.commit, is_existing=line.is_existing)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # closing the session takes only a moment
        batches.close()
        say_stays_on(switched_on, options)
    rows, transactions = counted(figures.rows, "row"), counted(figures.transactions, "transaction")
    existing = f"{counted(figures.existing_rows, 'existing row')}, " if figures.existing_rows else ""
    say(f"{existing}{rows} of {transactions} in {figures.seconds:.1f} s.")


def _with_progress(
    options: SourceOptions,
    on_ready: Callable[[], None],
    on_switched_on: Callable[[Table], None],
    on_row_logging_off: OnRowLoggingOff | None,
) -> Generator[list[ChangeRow], None, None]:
    progress = table_progress()
    batches = follow_with_rows(options, on_ready, progress.show, on_switched_on, on_row_logging_off)
    with progress, _failure_not_logged(), contextlib.closing(batches):
        for changes in batches:
            progress.hide()
            yield changes


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
