"""Pages of `--help` and usage errors: lines are broken between words, never at the hyphen of a flag.

Rule: click formats the pages; this module only controls line breaks, and what is on which: `--help` is
one screen with a command's own flags, and `--help-all` explains all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from informix_cdc.terminal.encodings import show_every_text
from informix_cdc.terminal.flag_names import no_such_flag
from informix_cdc.terminal.options import PASSWORD_HINT, one_line_errors
from informix_cdc.terminal.screen import broken_between_words
from informix_cdc.terminal.shared_options import NEEDED, SharedOption, SourceOption

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


class Command(click.Command):
    """A command of the command line."""

    context_class = _Context

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, and `--help-all` before `--help`."""
        *params, usual = super().get_params(ctx)
        return [*params, _HELP_ALL, usual]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own flags, then the shared ones: all, or the names of the most needed."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        shared = [each for each in options if isinstance(each, SharedOption)]
        in_full = _IN_FULL in ctx.meta
        self._write(ctx, formatter, "Options", [each for each in options if each not in shared])
        if in_full:
            for heading in dict.fromkeys(each.heading for each in shared):
                self._write(ctx, formatter, heading, [x for x in shared if x.heading == heading])
        elif shared:
            needed = [each.opts[0] for each in shared if each.name in NEEDED]
            with formatter.section(_OF_THE_SOURCE):
                formatter.write_text(
                    f"{', '.join(needed)}; {len(shared) - len(needed)} more: --help-all"
                )

    def _write(
        self,
        ctx: click.Context,
        formatter: click.HelpFormatter,
        heading: str,
        options: Sequence[click.Option],
    ) -> None:
        records = [record for each in options if (record := each.get_help_record(ctx))]
        if _IN_FULL not in ctx.meta:
            records = [(name, _first_sentence(meaning)) for name, meaning in records]
        if records:
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say below all options of the source how else they are set."""
        if _IN_FULL in ctx.meta and any(isinstance(each, SourceOption) for each in self.params):
            with formatter.section("Other ways to set options of the source"):
                formatter.write_text(PASSWORD_HINT)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an error of ours, or of the operating system, is one line."""
        with one_line_errors():
            return super().invoke(ctx)


def _first_sentence(text: str) -> str:
    first, ends, _ = text.partition(". ")
    return f"{first}." if ends else text


def _show_all(ctx: click.Context, _option: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        ctx.meta[_IN_FULL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_IN_FULL = f"{__name__}.in_full"  # key of `Context.meta`
_OF_THE_SOURCE = "Options of the source, as in Spark"
_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Explain all options, and exit.",
)


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
