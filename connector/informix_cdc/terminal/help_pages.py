"""Pages of `--help` and usage errors: lines are broken between words, never at the hyphen of a flag.

Rule: click formats the pages; this module only controls line breaks, and lists a command's own flags
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

# Raised since click 8.2 if a command is given no arguments; earlier versions print the page directly.
_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
_UNBREAKABLE = "\N{NON-BREAKING HYPHEN}"


class _Pages(click.HelpFormatter):
    """Prevents line breaks at hyphens; the page has ordinary hyphens."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(_unbreakable(text))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write flags or commands with their descriptions."""
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
    """An option that most commands share, for the connection or the format of rows."""


class Command(click.Command):
    """A command of the command line."""

    context_class = _Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own flags first, then the shared ones."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        for heading, is_shared in _SECTIONS.items():
            chosen = [each for each in options if isinstance(each, SharedOption) == is_shared]
            if records := [record for each in chosen if (record := each.get_help_record(ctx))]:
                with formatter.section(heading):
                    formatter.write_dl(records)


_SECTIONS = {"Options": False, "Options of the source, as in Spark": True}


class Commands(click.Group):
    """The group of all commands."""

    context_class = _Context
    command_class = Command

    def main(self, *arguments: Any, **settings: Any) -> Any:  # noqa: ANN401 - click's
        """Run the command line; replace characters that the terminal cannot encode."""
        show_every_text()
        return super().main(*arguments, **settings)

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:  # noqa: ANN401 - click's
        """Parse the arguments before a command."""
        with _errors_broken_between_words():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: click.Context) -> object:
        """Parse the arguments of a command, and run it."""
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
        raise  # this is the help page
    except click.UsageError as error:
        start = "Error: "  # click prints it before the message
        shown = broken_between_words(start + _message_of(error)).removeprefix(start)
        raise click.UsageError(shown, error.ctx) from None
