"""What a person must know whose command has just switched full row logging on.

Rule: said at once, and again when the command ends; the remedy is a command that can be pasted.
"""

from __future__ import annotations

from collections.abc import Iterable

from informix_capture_client.catalog import Table
from informix_capture_client.shell_commands import table_argument
from informix_cdc.options import SourceOptions
from informix_cdc.terminal.command_text import arguments_for
from informix_cdc.terminal.screen import say, say_command

# What the server then refuses: docs/assumptions.md, 52.
_SWITCHED_ON = (
    "Full row logging of {table} was off and was switched on, as every capture needs it: the server"
    " refuses ALTER TABLE of it until `informix-cdc release` switches it off."
)
_STAYS_ON = (
    "Full row logging of {tables} stays on. The server refuses ALTER TABLE, and logs every changed row"
    " whole, until you run:"
)


def say_switched_on(table: Table) -> None:
    """Say that a table was changed in a way that outlasts the command."""
    say(_SWITCHED_ON.format(table=table.name))


def say_stays_on(tables: Iterable[Table], options: SourceOptions) -> None:
    """Say so again, at the end, of those that were switched on; nothing if there are none.

    No query can need their changes: full row logging was off.
    """
    if tables := list(tables):
        say(_STAYS_ON.format(tables=", ".join(str(table.name) for table in tables)))
        names = [table_argument(table.name) for table in tables]
        say_command("release", *names, *arguments_for("release", options), "--no-checkpoint")
