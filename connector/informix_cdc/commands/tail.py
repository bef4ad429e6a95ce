"""`informix-cdc tail`: print what commits, until Ctrl-C or a number of rows.

Rule: changes go to stdout, everything else to stderr, so that `| jq` and `| head` just work.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
from collections.abc import Callable, Iterable, Iterator

import click
from rich.text import Text

from informix_capture_client.shapes import ChangeRow
from informix_cdc.operations import TailFigures, follow
from informix_cdc.options import SourceOptions
from informix_cdc.terminal import as_lines, kind_of, plain_console, table_of, time_of, to_json

_TABLE_WIDTH = 12


def print_changes(options: SourceOptions, output_format: str, limit: int | None) -> None:
    """Follow the tables and print; returns when interrupted or when the limit is reached.

    Raises:
        InformixCdcError: the capture cannot start or go on.
    """
    figures = TailFigures()
    tables = ", ".join(str(name) for name in options.table_names())

    def tell_that_it_begins() -> None:
        click.echo(f"Following {tables} from now on. Ctrl-C ends.", err=True)

    batches = follow(options, figures, tell_that_it_begins)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            for line in itertools.islice(_counted(_PRINTERS[output_format](batches), figures), limit):
                line()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # closing the session takes a moment, not long
        batches.close()
    click.echo(
        f"{figures.rows:,} rows of {figures.transactions:,} transactions in {figures.seconds:.1f} s.",
        err=True,
    )


Line = Callable[[], None]


def _counted(lines: Iterable[Line], figures: TailFigures) -> Iterator[Line]:
    for line in lines:
        figures.rows += 1
        yield line


def _json_lines(batches: Iterable[list[ChangeRow]]) -> Iterator[Line]:
    for changes in batches:
        for change in changes:
            yield lambda change=change: click.echo(to_json(change))  # type: ignore[misc]


def _table_lines(batches: Iterable[list[ChangeRow]]) -> Iterator[Line]:
    shown = plain_console(soft_wrap=True)
    latest_commit = -1
    for changes in batches:
        for change, values in as_lines(changes):
            begins = change.commit != latest_commit
            latest_commit = change.commit
            line = _line(change, values, begins=begins)
            yield lambda line=line: shown.print(line)  # type: ignore[misc]


def _line(change: ChangeRow, values: Text, *, begins: bool) -> Text:
    """Return one line; only the first row of a transaction shows the time."""
    line = Text(f"{time_of(change):9}" if begins else " " * 9, "bold")
    kind = kind_of(change)
    kind.pad_right(9 - len(kind))
    return line.append(kind).append(f"{table_of(change):{_TABLE_WIDTH}} ", "blue").append(values)


_PRINTERS: dict[str, Callable[[Iterable[list[ChangeRow]]], Iterator[Line]]] = {
    "table": _table_lines,
    "json": _json_lines,
}
