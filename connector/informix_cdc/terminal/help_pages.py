"""Pages of `--help`: lines are broken between words, and not at the hyphen of a flag.

Rule: click makes the pages; here is only what it breaks lines at.
"""

from __future__ import annotations

from collections.abc import Iterable

import click

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


class Command(click.Command):
    """A word of the command line."""

    context_class = _Context


class Commands(click.Group):
    """The command line as a whole."""

    context_class = _Context
    command_class = Command
