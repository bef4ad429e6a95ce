"""Progress of a task, and of the snapshot of each table.

Rule: printed on stderr. On a terminal, lines and bars are updated in place and removed afterwards; bars
of snapshots are also removed while rows are printed. Otherwise a task prints one line, and a snapshot
a line now and then. Many tables are shown by their total, with bars for those being read.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from informix_cdc.terminal.screen import answers, counted, say, width_of

if TYPE_CHECKING:  # the commands that need these modules load them
    from informix_cdc.snapshots import TableProgress
    from informix_checkpoints.offsets import StreamOffset
    from informix_checkpoints.table_states import SnapshotState


Show = Callable[[float, str], None]
_BAR_WIDTH = 16  # columns; leaves room for the text in a terminal of 80


@contextlib.contextmanager
def shown_progress(what: str, total: float | None = None) -> Iterator[Show]:
    """Yield a function to call with the completed amount, out of `total`, and a short note.

    Without a total, a spinner and the elapsed time are shown.
    """
    if not width_of(sys.stderr):
        yield lambda _done, _note: None
        return
    bar = [] if total is None else [BarColumn(_BAR_WIDTH)]
    columns = [
        SpinnerColumn(),
        TextColumn(what),
        *bar,
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    ]
    console = answers(on_stderr=True)
    progress = Progress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    )
    with progress:
        task = progress.add_task(what, total=total, note="")
        yield lambda done, note: progress.update(task, completed=done, note=note)


@contextlib.contextmanager
def waiting(what: str, total: float | None = None) -> Iterator[Show]:
    """Show progress of a task, of `total` if known; without a terminal, print one line."""
    if not width_of(sys.stderr):
        say(f"{what} …")
    with shown_progress(f"{what} …", total) as show:
        yield show


_LINE_SECONDS = 10.0
_MOST_NAMED = 8  # tables; more are shown by their total


class TableProgressShown(Protocol):
    """Shows the progress of tables until the block ends."""

    def __enter__(self) -> TableProgressShown:
        """Start."""
        ...

    def __exit__(self, *_: object) -> None:
        """Remove everything except for final lines."""

    def show(self, tables: Sequence[TableProgress], line: str = "") -> None:
        """Show the current progress of tables, and a line about everything."""

    def hide(self) -> None:
        """Clear the display so that rows can be printed."""


def table_progress() -> TableProgressShown:
    """Return bars for a terminal, else lines."""
    return TableBars() if width_of(sys.stderr) else TableLines()


def progress_text(table: TableProgress) -> str:
    """Return the progress of a table as text.

    >>> from informix_cdc.snapshots import TableProgress
    >>> progress_text(TableProgress("informix.orders", 5000, 20000, is_done=False))
    '5,000 of about 20,000 rows, 25 %'
    >>> progress_text(TableProgress("informix.orders", 5, 0, is_done=True, left_out=4))
    '5 rows, 4 of them printed as changes'
    """
    rows = counted(table.rows, "row")
    if table.is_done and table.left_out:
        return f"{rows}, {table.left_out:,} of them printed as changes"
    if table.is_done or table.percent is None:
        return rows
    return f"{table.rows:,} of about {counted(table.estimate, 'row')}, {table.percent:.0f} %"


def snapshots_of(offset: StreamOffset) -> dict[str, SnapshotState]:
    """Return the snapshot states in an offset, by table."""
    states = sorted(offset.tables.items())
    return {name: state.snapshot for name, state in states if state.snapshot is not None}


def snapshot_text(name: str, snapshot: SnapshotState) -> str:
    """Return the state of a snapshot as text.

    >>> from informix_checkpoints.table_states import SnapshotState
    >>> snapshot_text("informix.orders", SnapshotState(rows=20, is_done=True))
    'informix.orders done, 20 rows'
    >>> snapshot_text("informix.orders", SnapshotState(rows=5, purpose="resync"))
    'informix.orders (resync) 5 rows so far'
    """
    if snapshot.purpose:
        name = f"{name} ({snapshot.purpose})"
    if snapshot.is_done:
        return f"{name} done, {counted(snapshot.rows, 'row')}"
    return f"{name} {counted(snapshot.rows, 'row')} so far"


def total_text(tables: Sequence[TableProgress]) -> str:
    """Return the progress of many tables as text.

    >>> from informix_cdc.snapshots import TableProgress
    >>> of = [TableProgress("a", 5, 5, is_done=True), TableProgress("b", 1200, 0, is_done=False)]
    >>> total_text(of)
    'Loading: 1 of 2 tables done, 1,205 rows'
    >>> total_text(of[:1])
    'Snapshot of 1 table: done, 5 rows.'
    """
    done, rows = sum(table.is_done for table in tables), sum(table.rows for table in tables)
    if done == len(tables):
        return f"Snapshot of {counted(done, 'table')}: done, {counted(rows, 'row')}."
    return f"Loading: {done:,} of {counted(len(tables), 'table')} done, {counted(rows, 'row')}"


class _Done:
    """Prints tables that are done: each with a line, or many of them with one."""

    def __init__(self) -> None:
        self._done = set[str]()

    def news(self, tables: Sequence[TableProgress]) -> list[str]:
        """Return the lines of tables that are newly done."""
        new = [table for table in tables if table.is_done and table.name not in self._done]
        self._done |= {table.name for table in new}
        if len(tables) > _MOST_NAMED:
            is_end = new and all(table.is_done for table in tables)
            return [total_text(tables)] if is_end else []
        return [f"Snapshot of {table.name}: done, {progress_text(table)}." for table in new]


class TableLines:
    """Prints a line when a table is done, and from time to time before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_line = clock() + _LINE_SECONDS
        self._done, self._line = _Done(), ""

    def __enter__(self) -> TableLines:
        """Start."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def show(self, tables: Sequence[TableProgress], line: str = "") -> None:
        """Print a line for tables that are done; and for others, and about everything, at intervals."""
        for text in self._done.news(tables):
            say(text)
        if self._clock() < self._next_line:
            return
        self._next_line = self._clock() + _LINE_SECONDS
        left = [table for table in tables if not table.is_done]
        if len(tables) > _MOST_NAMED and left:
            say(f"{total_text(tables)}.")
        elif left:
            for table in left:
                if table.rows:
                    say(f"Snapshot of {table.name}: {progress_text(table)}.")
        if line and line != self._line:
            self._line = line
            say(line)

    def hide(self) -> None:
        """Nothing to clear."""


class TableBars:
    """Draws a bar for each table that is being read, and a line below them."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(_BAR_WIDTH))
        self._bars = Progress(*columns, TextColumn("{task.fields[note]}"), auto_refresh=False)
        self._live = Live(
            console=answers(on_stderr=True),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._tasks: dict[str, TaskID] = {}
        self._done = _Done()

    def __enter__(self) -> TableBars:
        """Start."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bars."""
        self.hide()

    @property
    def are_shown(self) -> bool:
        """Whether something is drawn."""
        return self._live.is_started

    def show(self, tables: Sequence[TableProgress], line: str = "") -> None:
        """Draw the progress of tables; finished tables leave a line."""
        if news := self._done.news(tables):
            self.hide()
            for text in news:
                say(text)
        left = [table for table in tables if not table.is_done]
        self._draw_bars(left)
        head = [Text(total_text(tables))] if left and len(tables) > _MOST_NAMED else []
        shown: list[RenderableType] = [*head, *([self._bars] if self._tasks else [])]
        shown += [Text(line)] if line else []
        if not shown:
            self.hide()
            return
        self._live.update(Group(*shown))
        if not self.are_shown:
            self._live.start()
        self._live.refresh()

    def hide(self) -> None:
        """Clear the display so that rows can be printed."""
        if self.are_shown:
            self._live.stop()

    def _draw_bars(self, left: Sequence[TableProgress]) -> None:
        """Draw bars of unfinished tables; of many, those that are being read."""
        for name in self._tasks.keys() - {table.name for table in left}:
            self._bars.remove_task(self._tasks.pop(name))
        being_read = [table for table in left if table.rows] if len(left) > _MOST_NAMED else left
        for table in being_read[:_MOST_NAMED]:
            if table.name not in self._tasks:
                total = 100.0 if table.percent is not None else None
                self._tasks[table.name] = self._bars.add_task(table.name, total=total, note="")
            self._bars.update(
                self._tasks[table.name], completed=table.percent or 0.0, note=progress_text(table)
            )
