"""Record the calls of connections as events (docs/recording-format.md).

Rule: an event is a plain dictionary, passed to the sink before the call returns; the sink stores it. Of
a connection's settings it contains only the database: no user, host or password. Bytes of a read are
recorded unchanged, even if they cannot be parsed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, TypeVar

from informix_capture_client.errors import DriverAnswer, InformixCdcError
from informix_capture_client.transport.base import (
    Argument,
    ConnectionSettings,
    Row,
    Transport,
)

FORMAT = "informix-cdc recording"
VERSION = 1

_Answer = TypeVar("_Answer")
RecordedEvent = dict[str, Any]
Sink = Callable[[RecordedEvent], None]


class RecordingTransport:
    """A `Transport` that delegates all calls, and passes events to a sink.

    Args:
        inner: the connection.
        settings: of the connection.
        connection: its number among the recording's connections.
        sink: is called with each event; its exceptions end the call.
    """

    def __init__(
        self, inner: Transport, settings: ConnectionSettings, connection: int, sink: Sink
    ) -> None:
        self._inner = inner
        self._dialect = settings.dialect
        self._connection = connection
        self._sink = sink
        self._is_open = True
        self._write(what="open", database=settings.database)

    def call(self, statement: str, *arguments: Argument) -> int:
        """Execute a function and return its single integer result."""
        event = self._statement(statement, arguments)
        answer = self._answered(event, lambda: self._inner.call(statement, *arguments))
        self._write(**event, rows=[[str(answer)]])
        return answer

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        """Run a query and return all its rows, with every value as text and NULL as None."""
        event = self._statement(statement, arguments)
        answer = self._answered(event, lambda: self._inner.rows(statement, *arguments))
        self._write(**event, rows=[list(row) for row in answer])
        return answer

    def lo_read(self, session_id: int, max_bytes: int) -> memoryview:
        """Return the next bytes of a capture session; valid until the call after the next."""
        event = {"what": "read", "session": session_id, "room": max_bytes}
        answer = self._answered(event, lambda: self._inner.lo_read(session_id, max_bytes))
        self._write(**event, bytes=base64.b64encode(answer).decode("ascii"))
        return answer

    def close(self) -> None:
        """Release the connection. Calling it twice is harmless."""
        self._inner.close()
        if self._is_open:
            self._is_open = False
            self._write(what="close")

    def _statement(self, statement: str, arguments: tuple[Argument, ...]) -> RecordedEvent:
        # as the server is sent it: two products differ in words
        return {
            "what": "statement",
            "text": self._dialect.statement(statement),
            "arguments": [str(argument) for argument in arguments],
        }

    def _answered(self, event: RecordedEvent, ask: Callable[[], _Answer]) -> _Answer:
        try:
            return ask()
        except InformixCdcError as error:
            self._write(**event, error=_described(error))
            raise

    def _write(self, **event: Any) -> None:  # noqa: ANN401 - values of JSON
        self._sink({"connection": self._connection, **event})


def _described(error: InformixCdcError) -> RecordedEvent:
    """Return the driver's diagnostics; empty for an error without them."""
    answer = error.answer or DriverAnswer("HY000", 0)
    text = answer.diagnostics[0][2] if answer.diagnostics else error.message
    return {
        "code": error.code,
        "sqlstate": answer.sqlstate,
        "native": answer.native,
        "message": text,
    }
