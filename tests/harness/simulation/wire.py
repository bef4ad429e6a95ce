"""A connection to the emulated server without a socket, and a reader of it without a thread.

Rule: the same statements and the same bytes as over the wire; nothing here waits. A read that would
have to wait answers at once, and the simulated clock says that time has passed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from harness.servers.in_process import InProcessConnection
from informix_capture_client import statements
from informix_capture_client.errors import AccessRefused, ConnectionLost, InformixCdcError
from informix_capture_client.failpoints import failpoint
from informix_capture_client.session.session import CaptureSession
from informix_capture_client.transport.base import Argument, ConnectionSettings, Row
from informix_capture_client.transport.errors import Diagnostic, Translator
from informix_emulator.sql_errors import SqlError

if TYPE_CHECKING:
    from harness.simulation.world import World

Answer = TypeVar("Answer")
_TIMEOUT_RECORD_BYTES = 16 + 8
# Answers that no schedule changes; asking for them is a good part of a connection's cost.
_CONSTANT = {
    statements.ERROR_CODES,
    statements.RECORD_TYPES,
    statements.API_VERSION,
    statements.SERVER_NAME,
    statements.DATABASE_LOCALE,
}
_known: dict[str, list[Row]] = {}


class InProcessTransport:
    """A `Transport` that calls the emulator's connection directly."""

    def __init__(self, world: World, settings: ConnectionSettings) -> None:
        world.must_live()
        if world.down_turns:
            raise AccessRefused("nobody answers.", "Wait.", is_temporary=True)
        attributes = {
            "SERVER": settings.server,
            "UID": settings.user,
            "PWD": settings.password,
            "DB_LOCALE": settings.db_locale,
        }
        self.is_broken = False
        self._world = world
        self._translator = Translator(settings)
        self._connection = InProcessConnection(world.server, attributes, settings.database)
        world.transports.append(self)

    def call(self, statement: str, *arguments: Argument) -> int:
        if statement == statements.ACTIVATE_SESSION:
            self._world.note_activation(int(arguments[1]))
        return int(self.rows(statement, *arguments)[0][0] or 0)

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        if statement == statements.LOCK_WAIT:
            return []  # nothing waits here: what would is refused, as it is in the end
        self._world.before_statement(statement)
        if statement in _CONSTANT and statement in _known:
            self._must_work()
            return _known[statement]
        rows = self._answered(lambda: self._connection.rows(statement, *arguments))
        if statement in _CONSTANT:
            _known[statement] = rows
        if statement == statements.OPEN_TRANSACTIONS:
            self._world.note_listing()
        return rows

    def lo_read(self, session_id: int, max_bytes: int) -> memoryview:
        if (session := self._connection.inner.capture_session) is not None:
            session.timeout = 0  # instead of waiting for a real second
        data = self._answered(lambda: self._connection.lo_read(session_id, max_bytes))
        if len(data) == _TIMEOUT_RECORD_BYTES:
            self._world.now += 1.0
        return memoryview(data)

    def close(self) -> None:
        self.is_broken = True
        self._connection.close()

    def hang_up(self) -> None:
        """Break, as seen from both ends."""
        self.close()

    def _answered(self, ask: Callable[[], Answer]) -> Answer:
        self._must_work()
        try:
            return ask()
        except SqlError as reason:
            diagnostic = Diagnostic(reason.sqlstate, reason.native, reason.message)
            raise self._translator.error([diagnostic], connected=True) from None

    def _must_work(self) -> None:
        self._world.must_live()
        if self.is_broken:
            raise ConnectionLost("the connection broke.", "Connect again.", is_temporary=True)


class InlineReader:
    """A `Reader` that reads when it is asked; an error comes after everything read before it."""

    began_at = 0.0

    def __init__(
        self,
        world: World,
        open_session: Callable[[], CaptureSession],
        close_connection: Callable[[], None],
    ) -> None:
        self._world = world
        self._open_session = open_session
        self._close_connection = close_connection
        self._session: CaptureSession | None = None
        self._failure: InformixCdcError | None = None

    def read(self, timeout_seconds: float) -> list[bytes] | None:
        if self._failure is not None:
            raise self._failure
        if self._session is None:
            self._session = self._open_session()
        if (passing := self._world.seconds_without_bytes(timeout_seconds)) is not None:
            self._world.now += max(passing, 0.001)
            return None
        return self._read_on(self._session)

    def _read_on(self, session: CaptureSession) -> list[bytes]:
        chunks: list[bytes] = []
        try:
            for _ in range(self._world.reads_at_once()):
                chunks.append(bytes(session.read()))
                failpoint("capture.after_lo_read")
                if len(chunks[-1]) == _TIMEOUT_RECORD_BYTES:
                    break  # a real one would have come a second later
        except InformixCdcError as reason:
            self._failure = reason
            if not chunks:
                raise
        return chunks

    def stop(self, timeout_seconds: float) -> bool:
        if self._world.is_dead:
            return True
        if self._session is not None:
            self._session.close()
        with contextlib.suppress(InformixCdcError):
            self._close_connection()
        return True
