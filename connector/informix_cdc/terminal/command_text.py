"""Commands that a command prints for what comes next: with the flags by which it was told the server.

Rule: what the user gave, as it was given, so that a profile stays a profile; no password is among it.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.core import ParameterSource

from informix_cdc.options import SourceOptions, connection_arguments
from informix_cdc.terminal.help_pages import SharedOption
from informix_cdc.terminal.options import PROFILE

_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def arguments_for(word: str, options: SourceOptions) -> list[str]:
    """Return flags with which another command reaches the same server, as far as it has them."""
    context = click.get_current_context(silent=True)
    if context is None or not isinstance(main := context.find_root().command, click.Group):
        return list(connection_arguments(options))
    names = {param.name for param in main.commands[word].params if isinstance(param, SharedOption)}
    return list(_as_given(context, names & set(context.params)))


def _as_given(context: click.Context, names: set[str]) -> Iterator[str]:
    if profile := context.meta.get(PROFILE):
        yield from ("--profile", profile)
    for param in context.command.params:
        name = param.name or ""
        if name in names and context.get_parameter_source(name) in _GIVEN:
            yield from (param.opts[0], str(context.params[name]))
