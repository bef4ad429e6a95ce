"""How text meets the edge of a terminal: broken between words only, and never where nobody looks.

Rule: a pipe or a file gets every line whole, for `grep`. On a terminal a sentence is broken between
words; what is meant to be copied stays one line there too: blanks up to the edge let the terminal's own
break fall between words. Control characters are written out where rich makes pieces of text out of
anything, so that no table, line or live view is forgotten. A `Text` in a table may be cut at its
column's width, which rich has measured before.
"""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from collections.abc import Iterator
from typing import IO, Any

import click
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from informix_capture_client.errors import BadOption
from informix_capture_client.printable import printable
from informix_capture_client.shell_commands import PROGRAM, shell_words


class PlainConsole(Console):
    """A console of rich that writes control characters out; rich strips only some of them."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield the pieces of something, those that come from rich itself as they are."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=printable(piece.text))

    def render_str(self, text: str, **settings: Any) -> Text:  # noqa: ANN401 - those of rich
        """Return a text as rich takes it, escaped before its width is measured."""
        return super().render_str(printable(text), **settings)


def plain_console(**settings: Any) -> Console:  # noqa: ANN401 - those of rich
    """Return a console that takes text as text: no markup, no emoji, no colours of rich's own."""
    return PlainConsole(highlight=False, markup=False, emoji=False, **settings)


_WIDTH_ELSEWHERE = 80
_KEPT = "\0"  # stands for a blank while lines are broken; no word is shown with one
_LEAST_FOR_TEXT = 20  # columns; a narrower terminal has no use for indents


def counted(count: int, noun: str) -> str:
    """Return a number and its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def say(text: str, *, to_stdout: bool = False) -> None:
    """Print sentences, mostly on stderr; a line that begins with blanks is continued below its text."""
    stream = sys.stdout if to_stdout else sys.stderr
    click.echo(broken_between_words(text, stream), file=stream)


def broken_between_words(text: str, stream: IO[Any] | None = None) -> str:
    """Return sentences as a terminal, mostly that of stderr, shows them without breaking a word."""
    text, width = printable(text), width_of(stream or sys.stderr)
    return "\n".join(_wrapped(line, width) for line in text.splitlines()) if width else text


def say_unbroken(text: str, *, to_stdout: bool = False) -> None:
    """Print one line that is to be copied, mostly on stderr."""
    stream, text = sys.stdout if to_stdout else sys.stderr, printable(text)
    width = width_of(stream)
    click.echo(unbroken(text, width) if width else text, file=stream)


def say_command(*words: str, before: str = "  ", after: str = "", to_stdout: bool = False) -> None:
    """Print a command of informix-cdc that is to be pasted, mostly on stderr."""
    stream = sys.stdout if to_stdout else sys.stderr
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # A blank within a word is part of it, and no place to break the line.
    line = " ".join(word.replace(" ", _KEPT) for word in shell_words((PROGRAM, *words), encoding))
    width = width_of(stream)
    text = f"{before}{line}{after}"
    shown = unbroken(text, width, len(before)) if width else text
    click.echo(shown.replace(_KEPT, " "), file=stream)


@contextlib.contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C end it; what is said next has a line without the terminal's ^C, and breaks rightly."""
    try:
        yield
    except KeyboardInterrupt:
        if width_of(sys.stderr):
            click.echo(err=True)


def unbroken(text: str, width: int, indent: int = 0) -> str:
    """Return one line that a terminal of that width breaks between words.

    >>> unbroken("echo one two", 6)
    'echo  one   two'
    """
    pieces = textwrap.wrap(
        text,
        max(width - 1, 1),  # behind each piece a blank, or whoever copies gets two words as one
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    line = ""
    for piece in pieces:
        if line:  # a long word may end at the edge: its blank begins the next row, which has room
            line += " " * (-len(line) % width or 1)
        line += piece
    return line


def _wrapped(line: str, width: int) -> str:
    indent = len(line) - len(line.lstrip())
    hanging = " " * (indent and indent + 2)
    return textwrap.fill(
        line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )


def width_of(stream: IO[Any] | None) -> int:
    """Return the columns of a terminal; 0 if it is none."""
    if stream is None or not stream.isatty():
        return 0
    try:
        return os.get_terminal_size(stream.fileno()).columns or _WIDTH_ELSEWHERE
    except (OSError, ValueError):
        return _WIDTH_ELSEWHERE


def answers(*, on_stderr: bool = False) -> Console:
    """Return a console that breaks lines on a terminal, between words, and nowhere else."""
    console = plain_console(stderr=on_stderr)
    console.soft_wrap = not console.is_terminal
    return console


def hanging(
    head: Text, body: Text, console: Console, indent: int, *, is_wrapped: bool = False
) -> Iterator[Text]:
    """Yield lines of `head` and `body`, in which the body is continued below its beginning.

    They are wrapped on a terminal; with `is_wrapped` elsewhere too.
    """
    room = console.width - indent
    if not (console.is_terminal or is_wrapped) or room < _LEAST_FOR_TEXT:
        yield Text.assemble(head, body)
        return
    first = console.width - cell_len(head.plain)
    margin = Text(" " * indent)
    lines = list(body.wrap(console, room))
    if first < room and (not lines or cell_len(lines[0].plain.rstrip()) > first):
        yield head
        head = margin
    for number, line in enumerate(lines or [Text()]):
        line.rstrip()
        yield Text.assemble(margin if number else head, line)


def require_yes(question: str) -> None:
    """Ask, and go on only with a yes.

    Raises:
        click.Abort: the answer is no.
        BadOption: there is no answer, as the standard input is no terminal.
    """
    try:
        is_confirmed = click.confirm(question, err=True, default=False)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise BadOption(
            "nobody has confirmed it: the standard input is no terminal.",
            "Give --yes to confirm it in advance.",
        ) from None
    if not is_confirmed:
        raise click.Abort
