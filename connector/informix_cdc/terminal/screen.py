"""Print text on terminals and elsewhere: lines are broken between words on a terminal only.

Rule: pipes and files get whole lines, for `grep`. On a terminal sentences are broken between words.
Text that is meant to be copied stays one logical line, padded with spaces so that the terminal breaks
it between words. Control characters are escaped where rich renders segments, so that tables and live
views are covered too. A `Text` in a table may be cut at its column's width, which rich measures before.
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

TABLES_STOPPED = 3  # exit code: a mirror no longer writes a table


class PlainConsole(Console):
    """A rich console that escapes all control characters; rich itself strips only some of them."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield the segments of a renderable; rich's own control segments are unchanged."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=printable(piece.text))

    def render_str(self, text: str, **settings: Any) -> Text:  # noqa: ANN401 - rich's settings
        """Return a text, escaped before rich measures its width."""
        return super().render_str(printable(text), **settings)


def plain_console(**settings: Any) -> Console:  # noqa: ANN401 - rich's settings
    """Return a console without markup, emoji and automatic highlighting."""
    return PlainConsole(highlight=False, markup=False, emoji=False, **settings)


_WIDTH_ELSEWHERE = 80
_KEPT = "\0"  # stands for a space inside a word while lines are broken; never in a shown word
_LEAST_FOR_TEXT = 20  # columns; narrower terminals get no indentation


def counted(count: int, noun: str) -> str:
    """Return a number with its noun in singular or plural.

    >>> counted(1, "row"), counted(1200, "row"), counted(0, "batch")
    ('1 row', '1,200 rows', '0 batches')
    """
    return f"{count:,} {noun}{'' if count == 1 else 'es' if noun.endswith('ch') else 's'}"


def say(text: str, *, to_stdout: bool = False) -> None:
    """Print sentences, by default on stderr; continuations of indented lines are indented further."""
    stream = sys.stdout if to_stdout else sys.stderr
    click.echo(broken_between_words(text, stream), file=stream)


def broken_between_words(text: str, stream: IO[Any] | None = None) -> str:
    """Return sentences with line breaks between words for a terminal, by default that of stderr."""
    text, width = printable(text), width_of(stream or sys.stderr)
    return "\n".join(_wrapped(line, width) for line in text.splitlines()) if width else text


def say_unbroken(text: str, *, to_stdout: bool = False) -> None:
    """Print a line that is meant to be copied, by default on stderr."""
    stream, text = sys.stdout if to_stdout else sys.stderr, printable(text)
    width = width_of(stream)
    click.echo(unbroken(text, width) if width else text, file=stream)


def say_command(*words: str, before: str = "  ", after: str = "", to_stdout: bool = False) -> None:
    """Print a command of informix-cdc that is meant to be pasted, by default on stderr."""
    stream = sys.stdout if to_stdout else sys.stderr
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # Spaces inside a quoted word are not places to break the line.
    line = " ".join(word.replace(" ", _KEPT) for word in shell_words((PROGRAM, *words), encoding))
    width = width_of(stream)
    text = f"{before}{line}{after}"
    shown = unbroken(text, width, len(before)) if width else text
    click.echo(shown.replace(_KEPT, " "), file=stream)


@contextlib.contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the block; on a terminal, start a new line after its ^C."""
    try:
        yield
    except KeyboardInterrupt:
        if width_of(sys.stderr):
            click.echo(err=True)


def unbroken(text: str, width: int, indent: int = 0) -> str:
    """Return a line padded so that a terminal of that width breaks it between words only.

    >>> unbroken("echo one two", 6)
    'echo  one   two'
    """
    pieces = textwrap.wrap(
        text,
        max(width - 1, 1),  # every row ends with a space, so that copied words stay separate
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    line = ""
    for piece in pieces:
        if line:  # a long word may end at the edge; its space then starts the next row
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
    """Return the width of a terminal in columns; 0 if the stream is not a terminal."""
    if stream is None or not stream.isatty():
        return 0
    try:
        return os.get_terminal_size(stream.fileno()).columns or _WIDTH_ELSEWHERE
    except (OSError, ValueError):
        return _WIDTH_ELSEWHERE


def answers(*, on_stderr: bool = False) -> Console:
    """Return a console that wraps lines between words on a terminal, and does not wrap otherwise."""
    console = plain_console(stderr=on_stderr)
    console.soft_wrap = not console.is_terminal
    return console


def hanging(
    head: Text, body: Text, console: Console, indent: int, *, is_wrapped: bool = False
) -> Iterator[Text]:
    """Yield lines of `head` and `body`, with the continuation of the body indented.

    They are wrapped on a terminal, or always with `is_wrapped`.
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
    """Ask for confirmation.

    Raises:
        click.Abort: the answer is no.
        BadOption: standard input is not a terminal, so there is no answer.
    """
    try:
        is_confirmed = click.confirm(question, err=True, default=False)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise BadOption(
            "confirmation is required, but standard input is not a terminal.",
            "Give --yes to confirm in advance.",
        ) from None
    if not is_confirmed:
        raise click.Abort
