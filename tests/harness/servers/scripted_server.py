"""A server that answers each statement of the contract in a way that is known beforehand.

Rule: what it says on the wire is `scripted_wire`'s business. Session numbers choose how a read behaves:

    1 .. 9   the bytes of `STREAM`, each connection and session from its beginning
    20       a TIMEOUT record      21  nothing      22  a hundred bytes, whatever was asked
    23       answers after half a second            24  never answers
    other    -12008
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from harness.servers.scripted_wire import Conversation, Login, Refusal, Row, Value

STREAM = random.Random(20).randbytes(3 * 1024 * 1024)
TIMEOUT_RECORD = struct.pack(">iiiiQ", 24, 0, 66, 201, 1 << 32)
LONG_TEXT = "Zoë, größer als ein Stück, 漢字 und 😀. " * 4_000
PASSWORD = "s3cr}et;w0rd"

SLOW_SESSION, SILENT_SESSION = 23, 24


class ScriptedServer:
    """Listens on a loopback port until it is closed."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.statements: list[str] = []
        self.logins: list[Login] = []
        self.goodbyes = 0
        self._start(self._accept)

    def close(self) -> None:
        """Stop listening, drop every connection, and wait for the threads."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()
        for thread in self._threads:
            thread.join(5)

    def drop_connections(self) -> None:
        """Break every connection, as a server does that is killed."""
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._connections.append(connection)
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        conversation = Conversation(connection, _Client(self, connection))
        with suppress(OSError, EOFError), connection:
            conversation.run()
        self.goodbyes += conversation.has_said_goodbye


class _Client:
    """The script, as one client sees it."""

    def __init__(self, server: ScriptedServer, connection: socket.socket) -> None:
        self._server = server
        self._connection = connection
        self._positions: dict[int, int] = {}

    def admit(self, login: Login) -> None:
        self._server.logins.append(login)
        if login.password != PASSWORD:
            raise Refusal(-951)
        if login.server != "informix":
            raise Refusal(-761)

    def open_database(self, name: str) -> None:
        if name != "syscdcv1":
            raise Refusal(-329, -111, name)

    def columns(self, statement: str) -> Sequence[type]:
        self._server.statements.append(statement)
        if statement in _REFUSALS:
            raise _REFUSALS[statement]
        return _ANSWERS[statement][0]

    def rows(self, statement: str, values: Sequence[Value]) -> Sequence[Row]:
        return _ANSWERS[statement][1](*values)

    def lo_read(self, session_id: int, size: int) -> bytes:
        if 1 <= session_id <= 9:
            at = self._positions.get(session_id, 0)
            self._positions[session_id] = (at + size) % len(STREAM)
            return STREAM[at : at + size]
        if session_id == SLOW_SESSION:
            time.sleep(0.5)
        if session_id == SILENT_SESSION:
            self._connection.recv(1)  # until the connection is dropped
            raise EOFError
        answers = {20: TIMEOUT_RECORD, 21: b"", 22: STREAM[:100], SLOW_SESSION: b"late"}
        if session_id not in answers:
            raise Refusal(-12008, 0, str(session_id))
        return answers[session_id]


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """Run one for the length of a with block."""
    server = ScriptedServer()
    try:
        yield server
    finally:
        server.close()


_ANSWERS: dict[str, tuple[Sequence[type], Callable[..., Sequence[Row]]]] = {
    "EXECUTE FUNCTION total(?, ?)": ([int], lambda a, b: [(a + b,)]),
    "EXECUTE FUNCTION echo(?)": ([str], lambda text: [(text,)]),
    "EXECUTE FUNCTION size_of(?)": ([int], lambda text: [(len(text),)]),
    "EXECUTE FUNCTION nothing()": ([int], list),
    "EXECUTE FUNCTION null()": ([int], lambda: [(None,)]),
    "SELECT nulls": ([str] * 3, lambda: [(None, "", "x"), ("", None, "y")]),
    "SELECT long": ([str] * 3, lambda: [("before", LONG_TEXT, "after")]),
    "SELECT many": ([str] * 2, lambda: [(str(number), None) for number in range(5_000)]),
    "SELECT no rows": ([str], list),
}
_REFUSALS = {
    "SELEC": Refusal(-201),
    "SELECT secret": Refusal(-206, -111, f"Table {PASSWORD} of UID=me;PWD={PASSWORD};X=1."),
    "SELECT forbidden": Refusal(-272, 0, "orders"),
    "SELECT two reasons": Refusal(-271, -131),
}
