"""Pages of `--help` and errors of usage: lines are broken between words, and not at a flag's hyphen.

Rule: click makes the pages; here is only what it breaks lines at, and that a command's own flags come
before those that all commands share.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import click

from informix_cdc.terminal.encodings import show_every_text
from informix_cdc.terminal.flag_names import no_such_flag
from informix_cdc.terminal.screen import broken_between_words

# Raised since click 8.2 where a command is given nothing; before, the page is printed at once.
_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
_UNBREAKABLE = "\N{NON-BREAKING HYPHEN}"


class _Pages(click.HelpFormatter):
    """Lets the wrapping see hyphens that are no place to break; the page has ordinary ones."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(_unbreakable(text))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write flags, or commands, and what they mean."""
        shown = [(_unbreakable(name), _unbreakable(meaning)) for name, meaning in rows]
        super().write_dl(shown, col_max, col_spacing)

    def getvalue(self) -> str:
        """Return the page."""
        return super().getvalue().replace(_UNBREAKABLE, "-")


def _unbreakable(text: str) -> str:
    return text.replace("-", _UNBREAKABLE)


class _Context(click.Context):
    formatter_class = _Pages


class SharedOption(click.Option):
    """An option that most commands have: how to reach a server, and how rows are read."""


class Command(click.Command):
    """A word of the command line."""

    context_class = _Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write its own flags first: the shared ones are many, and the same everywhere."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        for heading, is_shared in _SECTIONS.items():
            chosen = [each for each in options if isinstance(each, SharedOption) == is_shared]
            if records := [record for each in chosen if (record := each.get_help_record(ctx))]:
                with formatter.section(heading):
                    formatter.write_dl(records)


_SECTIONS = {"Options": False, "Options of the source, as in Spark": True}


class Commands(click.Group):
    """The command line as a whole."""

    context_class = _Context
    command_class = Command

    def main(self, *arguments: Any, **settings: Any) -> Any:  # noqa: ANN401 - click's
        """Run the command line on a terminal of any encoding."""
        show_every_text()
        return super().main(*arguments, **settings)

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:  # noqa: ANN401 - click's
        """Read the words before a command."""
        with _errors_broken_between_words():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: click.Context) -> object:
        """Read the words of a command, and run it."""
        with _errors_broken_between_words():
            return super().invoke(ctx)


def _message_of(error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        return no_such_flag(error.option_name, error.ctx) or error.format_message()
    return error.format_message()


@contextlib.contextmanager
def _errors_broken_between_words() -> Iterator[None]:
    try:
        yield
    except _HELP:
        raise  # it is the page of help
    except click.UsageError as error:
        start = "Error: "  # which click puts before it
        shown = broken_between_words(start + _message_of(error)).removeprefix(start)
        raise click.UsageError(shown, error.ctx) from None
