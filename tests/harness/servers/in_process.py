"""The emulator's connection without a wire: text goes in, and comes out as a driver prints it.

Rule: what `SqlSession` and `lo_read` answer, nothing else; an SqlError passes through.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from harness.servers.stores import PASSWORD
from informix_capture_client.transport.base import Argument, Row
from informix_emulator import EmulatedServer
from informix_emulator.connection import Connection

LOGIN = {"SERVER": "informix", "UID": "informix", "PWD": PASSWORD, "DB_LOCALE": "en_US.utf8"}


class InProcessConnection:
    """A connection to one database of an emulated server, in the caller's thread."""

    def __init__(self, server: EmulatedServer, attributes: Mapping[str, str], database: str) -> None:
        self.inner = Connection(server, {"DELIMIDENT": "y", **attributes})
        self.inner.open_database(database)

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        """Run a statement; every value as text, NULL as None."""
        prepared = self.inner.session().prepare(statement)
        outcome = prepared.run([str(argument) for argument in arguments], lambda: None)
        return [tuple(map(_text, row)) for row in outcome.rows]

    def lo_read(self, session_id: int, max_bytes: int) -> bytes:
        """Read a capture session."""
        return self.inner.lo_read(session_id & 0xFFFF, max_bytes, lambda: None)

    def close(self) -> None:
        """Release what the connection held."""
        self.inner.close()


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "1" if value else "0"
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
