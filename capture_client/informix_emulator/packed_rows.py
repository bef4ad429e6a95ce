"""Loaded rows that are sent as they lie, as a server does that keeps its rows packed.

Rule: the one place where the engine is told what the wire makes of rows; neither knows the other.
"""

from __future__ import annotations

from .server import EmulatedServer
from .sql import pack_rows as keep_packed
from .sqli import TupleForm


def pack_rows(server: EmulatedServer, name: str) -> None:
    """Have the rows of a table ready to be sent; those that are changed later are packed each time."""
    keep_packed(server, name, TupleForm())
