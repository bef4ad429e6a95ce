"""The output of the demo: a live table on a terminal, plain lines elsewhere, and a summary.

Rule: a view only reads; the one loop of `demo.py` refreshes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from informix_cdc.demo.check import DemoCheck
from informix_cdc.terminal import as_lines, kind_of, table_of, time_of

_SHOWN_CHANGES = 15
_LINES_AROUND = 8
_PLAIN_SECONDS = 2.0


class DemoView(Protocol):
    """Shows the progress of the demo."""

    def __enter__(self) -> DemoView:
        """Start."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last output on the screen."""

    def refresh(self, elapsed: float) -> None:
        """Show the current figures."""


def view_for(console: Console, check: DemoCheck, seconds: float) -> DemoView:
    """Return the live view for a terminal, else plain lines."""
    kind = LiveView if console.is_terminal else PlainView
    return kind(console, check, seconds)


@dataclass(slots=True)
class PlainView:
    """Prints a line every other second."""

    console: Console
    check: DemoCheck
    seconds: float
    _next_line: float = 0.0

    def __enter__(self) -> PlainView:
        """Start."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to close."""

    def refresh(self, elapsed: float) -> None:
        """Print a line if it is due."""
        if elapsed >= self._next_line:
            self._next_line = elapsed + _PLAIN_SECONDS
            self.console.print(
                f"{elapsed:5.0f} s  ", _figures(self.check, elapsed), sep="", soft_wrap=True
            )


@dataclass(slots=True)
class LiveView:
    """Draws the latest changes and the current figures several times a second."""

    console: Console
    check: DemoCheck
    seconds: float
    _live: Live = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the display; nothing is drawn yet."""
        self._live = Live(console=self.console, auto_refresh=False, transient=False)

    def __enter__(self) -> LiveView:
        """Start drawing."""
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last output on the screen."""
        self._live.stop()

    def refresh(self, elapsed: float) -> None:
        """Draw the current state."""
        self._live.update(self._picture(elapsed), refresh=True)

    def _picture(self, elapsed: float) -> Panel:
        clock = f"{min(elapsed, self.seconds):.0f} of {self.seconds:.0f} s · Ctrl-C stops"
        return Panel(
            Group(self._changes(), "", _figures(self.check, elapsed)),
            title="[bold]informix-cdc[/] · committed changes, live",
            title_align="left",
            subtitle=clock,
            subtitle_align="right",
            border_style="cyan",
        )

    def _changes(self) -> Table:
        room = max(3, min(_SHOWN_CHANGES, self.console.height - _LINES_AROUND))
        table = Table(box=None, expand=True, header_style="dim", pad_edge=False)
        for name, width in (("commit", 8), ("change", 6), ("table", 9)):
            table.add_column(name, width=width, no_wrap=True)
        table.add_column("row", ratio=1, no_wrap=True, overflow="ellipsis")
        lines = list(as_lines(self.check.recent()))[-room:]
        for change, values in lines:
            table.add_row(time_of(change), kind_of(change), Text(table_of(change), "blue"), values)
        for _ in range(room - len(lines)):
            table.add_row()
        return table


def _figures(check: DemoCheck, elapsed: float) -> Text:
    _, rate = check.rates(max(elapsed, 1.0))
    kinds = check.kinds
    pieces = (
        (f"{check.there.arrived:,}", "bold cyan"),
        (" existing rows · ", ""),
        (f"{check.verified:,}", "bold"),
        (" transactions · ", ""),
        (f"{check.rows:,}", "bold"),
        (" rows (", ""),
        (f"+{kinds['insert']:,}", "green"),
        (f" ~{kinds['update_postimage']:,}", "yellow"),
        (f" -{kinds['delete']:,}", "red"),
        (") · ", ""),
        (f"{rate:,.0f}", "bold"),
        (" rows/s · ", ""),
        (f"{1000 * check.latency(50):.0f} ms", "bold"),
        (" p50", ""),
    )
    return Text.assemble(*pieces)


@dataclass(frozen=True, slots=True)
class Account:
    """The facts in the summary besides the check."""

    rolled_back: int
    savepoints_undone: int
    seconds: float
    offset: str
    settings: str


def summary(
    check: DemoCheck,
    account: Account,
    tables: tuple[bool, str],
    kind: str = "Delta",
    cut_over: Sequence[str] = (),
) -> Table:
    """Return the summary, one fact per line.

    Args:
        check: of the stream.
        account: of the workload.
        tables: the comparison of the tables.
        kind: of the tables.
        cut_over: what happened at the cut-over, if there was one.
    """
    is_right, verdict = check.verdict()
    transactions, rows = check.rates(account.seconds)
    kinds, p50, p95 = check.kinds, 1000 * check.latency(50), 1000 * check.latency(95)
    facts = {
        "Existing rows": f"{check.there.total:,} before the start, read by a concurrent snapshot",
        "Transactions": f"{check.committed:,} committed, {account.rolled_back:,} rolled back,"
        f" {account.savepoints_undone:,} savepoints undone",
        "Rows": f"{check.rows:,}: {kinds['insert']:,} inserts, {kinds['update_postimage']:,} updates"
        f" (two images each), {kinds['delete']:,} deletes",
        "Rate": f"{rows:,.0f} rows/s, {transactions:,.0f} transactions/s over {account.seconds:.1f} s",
        "Latency": f"commit to {kind} table, after warm-up: p50 {p50:.0f} ms, p95 {p95:.0f} ms",
        "Last offset": account.offset,
        "Spark": account.settings,
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in facts.items():
        table.add_row(name, fact)
    for words in cut_over:
        table.add_row("Cut-over", words)
    for name, is_fine, words in (("Stream", is_right, verdict), ("Tables", *tables)):
        table.add_row(name, Text(words, "bold green" if is_fine else "bold red"))
    return table
