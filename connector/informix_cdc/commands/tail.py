"""`informix-cdc tail`: print what commits, until Ctrl-C or a number of rows.

Rule: changes go to stdout, everything else to stderr, so that `| jq` and `| head` just work.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import click
from rich.console import Console
from rich.text import Text

from informix_capture_client.catalog import Table
from informix_capture_client.shapes import ChangeRow
from informix_cdc.operations import TailFigures, follow
from informix_cdc.options import SourceOptions
from informix_cdc.terminal import (
    answers,
    as_lines,
    counted,
    hanging,
    kind_of,
    say,
    say_stays_on,
    say_switched_on,
    table_of,
    time_of,
    to_json,
)

_TIME_WIDTH, _KIND_WIDTH, _TABLE_WIDTH = 9, 9, 13
_INDENT = _TIME_WIDTH + _KIND_WIDTH + _TABLE_WIDTH
_BEGINNINGS = {"latest": "from now on", "earliest": "from the oldest log file on"}


def print_changes(
    options: SourceOptions, output_format: str, limit: int | None, *, may_switch_on: bool = True
) -> None:
    """Follow the tables and print; returns when interrupted or when the limit is reached.

    Raises:
        InformixCdcError: the capture cannot start or go on.
    """
    figures = TailFigures()
    switched_on: list[Table] = []
    choice = options.table_choice()
    tables = ", ".join(map(str, (*choice.names, *choice.patterns)))
    place = options.starting_position

    def tell_that_it_begins() -> None:
        say(f"Following {tables} {_BEGINNINGS.get(place, f'from {place} on')}. Ctrl-C ends.")

    def tell_the_switch(table: Table) -> None:
        switched_on.append(table)
        say_switched_on(table)

    batches = follow(
        options, figures, tell_that_it_begins, tell_the_switch, may_switch_on=may_switch_on
    )
    try:
        with contextlib.suppress(KeyboardInterrupt):
            for line in itertools.islice(_PRINTERS[output_format](batches), limit):
                line.show()
                figures.count(line.commit)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # closing the session takes a moment, not long
        batches.close()
        say_stays_on(switched_on)
    rows, transactions = counted(figures.rows, "row"), counted(figures.transactions, "transaction")
    say(f"{rows} of {transactions} in {figures.seconds:.1f} s.")


@dataclass(frozen=True, slots=True)
class _Line:
    """A row to be shown, and the commit that it belongs to."""

    commit: int
    show: Callable[[], None]


def _json_lines(batches: Iterable[list[ChangeRow]]) -> Iterator[_Line]:
    for changes in batches:
        for change in changes:
            yield _Line(change.commit, partial(_print_json, change))


def _print_json(change: ChangeRow) -> None:
    click.echo(to_json(change))


def _table_lines(batches: Iterable[list[ChangeRow]]) -> Iterator[_Line]:
    console = answers()
    latest_commit = -1
    for changes in batches:
        for change, values in as_lines(changes):
            begins = change.commit != latest_commit
            latest_commit = change.commit
            head = _head(change, begins=begins)
            yield _Line(change.commit, partial(_print, console, head, values))


def _head(change: ChangeRow, *, begins: bool) -> Text:
    """Return when, what and where; only the first row of a transaction shows the time."""
    time = f"{time_of(change):{_TIME_WIDTH}}" if begins else " " * _TIME_WIDTH
    kind = kind_of(change)
    kind.pad_right(_KIND_WIDTH - len(kind))
    table = f"{table_of(change):{_TABLE_WIDTH - 1}} "
    return Text.assemble((time, "bold" if begins else ""), kind, (table, "blue"))


def _print(console: Console, head: Text, values: Text) -> None:
    for line in hanging(head, values, console, _INDENT):
        console.print(line)


_PRINTERS: dict[str, Callable[[Iterable[list[ChangeRow]]], Iterator[_Line]]] = {
    "table": _table_lines,
    "json": _json_lines,
}
