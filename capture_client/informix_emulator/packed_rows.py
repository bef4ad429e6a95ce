"""Loaded rows that are stored in the form of the protocol, so that they are sent without conversion.

The only module that combines the engine with the protocol's row format.
"""

from __future__ import annotations

from .server import EmulatedServer
from .sql import pack_rows as keep_packed
from .sqli import TupleForm


def pack_rows(server: EmulatedServer, name: str) -> None:
    """Have the rows of a table ready to be sent; those that are changed later are packed each time."""
    keep_packed(server, name, TupleForm())
