"""What a person must know whose command has just switched full row logging on.

Rule: said at once, and again when the command ends; the remedy is a command that can be copied.
"""

from __future__ import annotations

from collections.abc import Iterable

from informix_capture_client.catalog import Table
from informix_cdc.capture import to_alter
from informix_cdc.terminal.screen import say

# What the server then refuses: docs/assumptions.md, 52.
_SWITCHED_ON = (
    "Full row logging of {table} was off and was switched on, as every capture needs it: the server"
    " refuses ALTER TABLE of it until `{command}`."
)
_STAYS_ON = (
    "Full row logging of {tables} stays on. The server refuses ALTER TABLE, and logs every changed row"
    " whole, until you run:"
)


def say_switched_on(table: Table) -> None:
    """Say that a table was changed in a way that outlasts the command."""
    say(_SWITCHED_ON.format(table=table.name, command=to_alter(table)))


def say_stays_on(tables: Iterable[Table]) -> None:
    """Say so again, at the end, of those that were switched on; nothing if there are none."""
    if tables := list(tables):
        say(_STAYS_ON.format(tables=", ".join(str(table.name) for table in tables)))
        say("\n".join(f"  {to_alter(table)}" for table in tables))
