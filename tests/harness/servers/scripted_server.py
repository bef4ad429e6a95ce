"""A server that answers each statement of the contract in a way that is known beforehand.

Rule: it is written from docs/emulator-protocol.md alone and shares no code with the emulator or the
transports, so it also holds both to that page. Session numbers choose how a read behaves:

    1 .. 9   the bytes of `STREAM`, each connection and session from its beginning
    20       a TIMEOUT record      21  nothing      22  a hundred bytes, whatever was asked
    23       answers after half a second            24  never answers
    other    SQLSTATE IX000, -12008
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

Cell = str | None
STREAM = random.Random(20).randbytes(3 * 1024 * 1024)
TIMEOUT_RECORD = struct.pack(">iiiiQ", 24, 0, 66, 201, 1 << 32)
LONG_TEXT = "Zoë, größer als ein Stück, 漢字 und 😀. " * 4_000
PASSWORD = "s3cr}et;w0rd"

SLOW_SESSION, SILENT_SESSION = 23, 24


class Refusal(Exception):
    """An error answer: sqlstate, native code, text."""


class ScriptedServer:
    """Listens on a loopback port until it is closed."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.statements: list[str] = []
        self.connection_strings: list[str] = []
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
        positions: dict[int, int] = {}
        with suppress(OSError, EOFError), connection:
            while True:
                header, out = self._answer(_receive_request(connection), connection, positions)
                connection.sendall(struct.pack("<II", len(header), len(out)) + header + out)

    def _answer(
        self, request: bytes, connection: socket.socket, positions: dict[int, int]
    ) -> tuple[bytes, bytes]:
        try:
            if request[:1] == b"C":
                self.connection_strings.append(request[1:].decode())
                return _admit(request[1:].decode()), b""
            statement, parameters = _statement(request)
            self.statements.append(statement)
            if statement == "{call ifx_lo_read(?, ?)}":
                return _good([]), _lo_read(parameters, connection, positions)
            return _good(_rows(statement, parameters)), b""
        except Refusal as refusal:
            sqlstate, native, text = refusal.args
            words = text.encode()
            return struct.pack("<b5siH", 2, sqlstate.encode(), native, len(words)) + words, b""


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """Run one for the length of a with block."""
    server = ScriptedServer()
    try:
        yield server
    finally:
        server.close()


def _receive_request(connection: socket.socket) -> bytes:
    (length,) = struct.unpack("<I", _receive(connection, 4))
    return _receive(connection, length)


def _receive(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            raise EOFError
        received += piece
    return received


def _admit(text: str) -> bytes:
    if f"PWD={{{PASSWORD.replace('}', '}}')}}}" not in text:
        raise Refusal("28000", -951, f"Incorrect password ({text}).")
    if "SERVER=informix" not in text:
        raise Refusal("08004", -761, "INFORMIXSERVER does not match DBSERVERNAME.")
    if "DATABASE=syscdcv1" not in text:
        raise Refusal("HY000", -329, "Database not found or no system permission.")
    return b"\0"


def _statement(request: bytes) -> tuple[str, list[int | str | None]]:
    (length,) = struct.unpack_from("<I", request, 1)
    text = request[5 : 5 + length].decode()
    at = 6 + length
    parameters: list[int | str | None] = []
    for _ in range(request[at - 1]):
        way, size = struct.unpack_from("<BI", request, at)
        at += 5
        if way == 4:
            parameters.append(size)
        else:
            parameters.append(request[at : at + size].decode())
            at += size
    assert at == len(request), "the request has bytes too many or too few"
    return text, parameters


def _good(rows: Sequence[Sequence[Cell]]) -> bytes:
    width = len(rows[0]) if rows else 0
    header = struct.pack("<bqH", 0, -1, width)
    header += struct.pack("<B3shI", 3, b"col", 12, 255) * width
    return header + struct.pack("<I", len(rows)) + b"".join(_cell(c) for row in rows for c in row)


def _cell(text: Cell) -> bytes:
    return struct.pack("<i", -1) if text is None else _counted(text.encode())


def _counted(text: bytes) -> bytes:
    return struct.pack("<i", len(text)) + text


_ANSWERS: dict[str, Callable[..., list[tuple[Cell, ...]]]] = {
    "EXECUTE FUNCTION total(?, ?)": lambda a, b: [(str(int(a) + int(b)),)],
    "EXECUTE FUNCTION echo(?)": lambda text: [(text,)],
    "EXECUTE FUNCTION size_of(?)": lambda text: [(str(len(text)),)],
    "EXECUTE FUNCTION nothing()": list,
    "EXECUTE FUNCTION null()": lambda: [(None,)],
    "SELECT nulls": lambda: [(None, "", "x"), ("", None, "y")],
    "SELECT long": lambda: [("before", LONG_TEXT, "after")],
    "SELECT many": lambda: [(str(number), None) for number in range(5_000)],
    "SELECT no rows": list,
}
_REFUSALS = {
    "SELEC": Refusal("42000", -201, "A syntax error has occurred."),
    "SELECT secret": Refusal("42S02", -206, f"Table {PASSWORD} of UID=me;PWD={PASSWORD};X=1."),
    "SELECT forbidden": Refusal("42000", -272, "No SELECT permission for orders."),
    "SELECT two reasons": Refusal("HY000", -271, "Could not insert a row.\nISAM error: no space."),
}


def _rows(statement: str, parameters: list[int | str | None]) -> list[tuple[Cell, ...]]:
    if statement in _REFUSALS:
        raise _REFUSALS[statement]
    return _ANSWERS[statement](*parameters)


def _lo_read(
    parameters: list[int | str | None], connection: socket.socket, positions: dict[int, int]
) -> bytes:
    session_id, size = int(parameters[0] or 0), int(parameters[1] or 0)
    if 1 <= session_id <= 9:
        at = positions.get(session_id, 0)
        positions[session_id] = (at + size) % len(STREAM)
        return STREAM[at : at + size]
    if session_id == SLOW_SESSION:
        time.sleep(0.5)
    if session_id == SILENT_SESSION:
        connection.recv(1)  # until the connection is dropped
        raise EOFError
    answers = {20: TIMEOUT_RECORD, 21: b"", 22: STREAM[:100], SLOW_SESSION: b"late"}
    if session_id not in answers:
        raise Refusal("IX000", -12008, "Invalid smart-large-object file descriptor.")
    return answers[session_id]
