"""Commands to run next, printed with the flags that connect to the same server.

Rule: flags are repeated as the user gave them, so a file stays a file; passwords are never
printed. That full row logging was switched on is reported at once, and again when the command ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from informix_capture_client.shell_commands import table_argument, with_tables
from informix_cdc.options import SourceOptions, connection_arguments
from informix_cdc.terminal.options import SOURCE_FILE
from informix_cdc.terminal.screen import say, say_command
from informix_cdc.terminal.shared_options import SharedOption

if TYPE_CHECKING:  # the commands that need these modules load them
    from informix_capture_client.catalog import Table


_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def arguments_for(word: str, options: SourceOptions, *, without: Collection[str] = ()) -> list[str]:
    """Return the file and flags, in this order, with which another command reaches the same server.

    Args:
        word: of the command.
        options: of this one.
        without: flags to be left out.
    """
    context = click.get_current_context(silent=True)
    if context is None or not isinstance(main := context.find_root().command, click.Group):
        return list(connection_arguments(options))
    names = {param.name for param in main.commands[word].params if isinstance(param, SharedOption)}
    names &= set(context.params) - {*without}
    found = [context.meta[SOURCE_FILE]] if SOURCE_FILE in context.meta else []
    for param in context.command.params:
        name = param.name or ""
        if name in names and context.get_parameter_source(name) in _GIVEN:
            found += (param.opts[0], str(context.params[name]))
    return found


# Statements that the server then refuses: docs/assumptions.md, 52.
_SWITCHED_ON = (
    "Full row logging of {table} was off and has been switched on, because capture requires it."
    " The server refuses ALTER TABLE on it until `informix-cdc release` switches it off."
)
_STAYS_ON = (
    "Full row logging of {tables} remains on. The server refuses ALTER TABLE and logs every"
    " changed row in full until you run:"
)


def say_switched_on(table: Table) -> None:
    """Report that full row logging of a table was switched on, which outlasts the command."""
    say(_SWITCHED_ON.format(table=table.name))


def say_stays_on(tables: Iterable[Table], options: SourceOptions) -> None:
    """Report at the end which tables were switched on and how to undo it; print nothing if none were.

    No query can need their changes: full row logging was off.
    """
    if tables := list(tables):
        say(_STAYS_ON.format(tables=", ".join(str(table.name) for table in tables)))
        names = [table_argument(table.name) for table in tables]
        say_command(
            "release", *with_tables(arguments_for("release", options), *names), "--no-checkpoint"
        )
