"""How far something is that a person waits for: a line on stderr that is drawn anew, and is gone after.

Rule: a pipe or a file sees nothing of it; a command says there in one plain sentence what it waits for.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from informix_cdc.terminal.screen import answers, say, width_of

Show = Callable[[float, str], None]
_BAR_WIDTH = 16  # columns, so that 80 have room for what is said beside it


@contextlib.contextmanager
def shown_progress(what: str, total: float | None = None) -> Iterator[Show]:
    """Yield what is called with how much is done, of `total`, and with a few words about it.

    Without a total it is shown that something goes on, and for how long.
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
    """Show that something goes on, of `total` if there is a measure; else a plain line."""
    if not width_of(sys.stderr):
        say(f"{what} …")
    with shown_progress(f"{what} …", total) as show:
        yield show
