"""A capture session with the emulator, over its own socket protocol (docs/emulator-protocol.md).

Rule: what the wire says is never trusted: every length is checked before it is used, and whatever
breaks the order of bytes closes the connection, because nothing after it can be understood.

    request  := u32 n | n bytes
    response := u32 h | u32 d | h header bytes | d out-parameter bytes      (little-endian)
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import TypeVar

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.statements import LO_READ
from informix_capture_client.transport.base import Argument, ConnectionSettings, Row
from informix_capture_client.transport.connection_strings import connection_string
from informix_capture_client.transport.odbc import check_integer, check_read, single_integer
from informix_capture_client.transport.odbc_errors import Diagnostic, Door, OdbcFailure

_LENGTHS = struct.Struct("<II")
_IN, _OUT = 1, 4
_GOOD, _ERROR = 0, 2
# A header holds at most a query's rows: no catalog of ours comes near this.
_MAX_HEADER_BYTES = 256 * 1024 * 1024

# What a driver says in these cases; through the same door as a driver's own words.
_BROKEN = Diagnostic("08S01", -25582, "Network connection is broken.")
_SILENT = Diagnostic("HYT00", -11094, "Time-out expired.")

Read = TypeVar("Read")


class EmulatorTransport:
    """A `Transport` to an emulated server.

    Args:
        settings: `driver` and `extra` play no part.
        receive_timeout_seconds: when to give up on a silent server; None waits as long as it does.

    Raises:
        AccessRefused, ConnectionLost: no connection; the message says what to mend.
    """

    def __init__(
        self, settings: ConnectionSettings, receive_timeout_seconds: float | None = None
    ) -> None:
        introduction = b"C" + connection_string(settings).encode()
        self._dialect = settings.dialect
        self._door = Door(settings)
        self._lengths = memoryview(bytearray(_LENGTHS.size))
        self._buffers: list[bytearray] = [bytearray(), bytearray()]
        self._socket: socket.socket | None = None
        with self._door:
            self._socket = _reach(settings)
            self._introduce(introduction)
            self._socket.settimeout(receive_timeout_seconds)
        self._door.connected = True

    def call(self, statement: str, *arguments: Argument) -> int:
        """Execute a function and return the one integer that it answers with."""
        return single_integer(self.rows(statement, *arguments))

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        """Run a query and return all its rows; every value as text, NULL as None."""
        parameters = [_input(argument) for argument in arguments]
        with self._door:
            self._send(_execute(self._dialect.statement(statement), parameters))
            header, out_bytes = self._receive_header()
            self._refuse_bytes(out_bytes)
            return self._understood(_rows, header)

    def lo_read(self, session_id: int, max_bytes: int) -> memoryview:
        """Return the next bytes of a capture session; valid until the call after the next."""
        check_read(session_id, max_bytes)
        with self._door:
            self._send(_execute(LO_READ, [_input(session_id), struct.pack("<BI", _OUT, max_bytes)]))
            _, out_bytes = self._receive_header()
            if out_bytes > max_bytes:
                raise self._violated(f"{out_bytes} bytes came where {max_bytes} were asked for")
            return self._receive_into(self._next_buffer(max_bytes), out_bytes).toreadonly()

    def close(self) -> None:
        """Release the connection. Calling it twice is harmless."""
        if self._door.is_foreign:
            self._hang_up()  # closes this process's copy of the descriptor only
        elif not self._door.closed:
            with self._door:
                self._door.closed = True
                self._hang_up()

    def _introduce(self, introduction: bytes) -> None:
        try:
            self._send(introduction)
            self._refuse_bytes(self._receive_header()[1])
        except OdbcFailure:
            self._hang_up()
            raise

    def _next_buffer(self, size: int) -> memoryview:
        """Return the buffer whose turn it is; another size gets a new one, views keep the old."""
        self._buffers.reverse()
        if len(self._buffers[0]) != size:
            self._buffers[0] = bytearray(size)
        return memoryview(self._buffers[0])

    def _send(self, body: bytes) -> None:
        if self._socket is None:
            raise OdbcFailure([_BROKEN])
        try:
            self._socket.sendall(struct.pack("<I", len(body)) + body)
        except OSError as reason:
            raise self._lost(reason) from None

    def _receive_header(self) -> tuple[bytes, int]:
        """Receive one answer up to its out-parameter; return the header and what is to follow."""
        header_bytes, out_bytes = _LENGTHS.unpack(self._receive_into(self._lengths, _LENGTHS.size))
        if not 1 <= header_bytes <= _MAX_HEADER_BYTES:
            raise self._violated(f"a header of {header_bytes} bytes")
        header = bytes(self._receive_into(memoryview(bytearray(header_bytes)), header_bytes))
        if header[0] == _ERROR:
            raise OdbcFailure([self._understood(_diagnostic, header)])
        if header[0] != _GOOD:
            raise self._violated(f"an answer of kind {header[0]}")
        return header, out_bytes

    def _receive_into(self, target: memoryview, count: int) -> memoryview:
        """Fill the first `count` bytes of the target and return them."""
        if self._socket is None:
            raise OdbcFailure([_BROKEN])
        filled = 0
        while filled < count:
            try:
                got = self._socket.recv_into(target[filled:count])
            except OSError as reason:
                raise self._lost(reason) from None
            if not got:
                raise self._lost(ConnectionResetError())
            filled += got
        return target[:count]

    def _understood(self, read: Callable[[_Header], Read], header: bytes) -> Read:
        try:
            return read(_Header(header))
        except (struct.error, ValueError) as reason:
            raise self._violated(f"a header that ends too early ({reason})") from None

    def _refuse_bytes(self, out_bytes: int) -> None:
        if out_bytes:
            raise self._violated(f"{out_bytes} bytes of an out-parameter that was not asked for")

    def _lost(self, reason: OSError) -> OdbcFailure:
        self._hang_up()
        return OdbcFailure([_SILENT if isinstance(reason, TimeoutError) else _BROKEN])

    def _violated(self, what: str) -> ProtocolViolation:
        self._hang_up()
        return ProtocolViolation(f"The emulator sent {what}.", "Is something else listening there?")

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _reach(settings: ConnectionSettings) -> socket.socket:
    """Open the socket, or fail as a driver fails that finds nobody."""
    address = (settings.host, settings.port)
    try:
        opened = socket.create_connection(address, timeout=settings.connect_timeout_seconds)
    except OSError as reason:
        text = f"Attempt to connect to database server failed: {reason.strerror or reason}"
        raise OdbcFailure([Diagnostic("08001", -908, text)]) from None
    # a request is one small packet and its answer is waited for: Nagle only adds delay
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def _execute(statement: str, parameters: list[bytes]) -> bytes:
    text = statement.encode()
    head = b"X" + struct.pack("<I", len(text)) + text + struct.pack("<B", len(parameters))
    return head + b"".join(parameters)


def _input(argument: Argument) -> bytes:
    value = check_integer(argument) if isinstance(argument, int) else argument
    text = str(value).encode()
    return struct.pack("<BI", _IN, len(text)) + text


class _Header:
    """Walks a header; takes nothing beyond its end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 1  # behind the kind, which is known by now

    def numbers(self, layout: str) -> tuple[int, ...]:
        """Take integers in the notation of `struct`, little-endian."""
        values = struct.unpack_from("<" + layout, self._content, self._at)
        self._at += struct.calcsize("<" + layout)
        return values

    def text(self, length: int) -> str:
        """Take text."""
        end = self._at + length
        if end > len(self._content):
            raise ValueError(f"text of {length} bytes at byte {self._at}")
        taken, self._at = self._content[self._at : end], end
        return taken.decode("utf-8", "replace")

    def cell(self) -> str | None:
        """Take one value."""
        (length,) = self.numbers("i")
        return None if length < 0 else self.text(length)


def _rows(header: _Header) -> list[Row]:
    _, column_count = header.numbers("qH")
    for _ in range(column_count):
        header.text(*header.numbers("B"))
        header.numbers("hI")
    (row_count,) = header.numbers("I")
    if row_count and not column_count:
        raise ValueError(f"{row_count} rows without a column")
    return [tuple(header.cell() for _ in range(column_count)) for _ in range(row_count)]


def _diagnostic(header: _Header) -> Diagnostic:
    sqlstate = header.text(5)
    native, length = header.numbers("iH")
    return Diagnostic(sqlstate, native, header.text(length))
