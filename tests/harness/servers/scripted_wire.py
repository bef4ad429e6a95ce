"""SQLI from the server's side, as little of it as our clients use, for servers that tests script.

Rule: it is written from docs/emulator-protocol.md alone and shares no code with the emulator or the
transports, so it also holds both to that page. What a client sends is read strictly: a byte too many or
too few ends the connection.
"""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

Value = int | str | None
Row = Sequence[Value]

ACCEPTED, REFUSED = 2, 3
PREPARE, FETCH, END, LO_DATA = 2, 9, 12, 97
_SELECT, _OTHER, _EXECUTE = 2, 20, 56
_PROTOCOLS = bytes.fromhex("bdbe9ffe7fb7ffeff8")  # of a live 14.10: tests/golden/sqli_protocols.json
_IS_LOGGED = 0x15  # the warnings of a database that is opened: its properties


class Refusal(Exception):
    """An error answer: native code, ISAM code, argument of the message."""


class Script(Protocol):
    """What a scripted server says to one client."""

    def admit(self, login: Login) -> None:
        """Take note of a login, or refuse it with a code."""

    def open_database(self, name: str) -> None:
        """Open a database, or refuse it."""

    def columns(self, statement: str) -> Sequence[type]:
        """Understand a statement: the types of its columns, int or str."""

    def rows(self, statement: str, values: Sequence[Value]) -> Sequence[Row]:
        """Run it."""

    def lo_read(self, session_id: int, size: int) -> bytes:
        """Read."""


@dataclass(frozen=True)
class Login:
    """What a client says of itself."""

    server: str
    user: str
    password: str
    environment: dict[str, str]


# ---- what a server sends ----


def char(data: bytes) -> bytes:
    """Return a length, the bytes, and one zero where the length is odd."""
    return struct.pack(">H", len(data)) + data + bytes(len(data) & 1)


def _asc(text: str) -> bytes:
    data = text.encode() + b"\0"
    return struct.pack(">H", len(data)) + data


def welcome(kind: int = ACCEPTED, service_error: int = 0) -> bytes:
    """Return the answer to a login."""
    body = struct.pack(">HHI", 100, 101, 61) + _asc("IEEEI") + struct.pack(">H12s", 108, b"srvinfx")
    body += _asc("Scripted server Version 14.10.FC10") + _asc("RDS#N000000") + _asc("informix")
    body += struct.pack(">III6x", 0x13C, 0, 0) + b"on\0\0\0\0\0\0" + struct.pack(">I", 61)
    body += b"soctcp\0\0" + struct.pack(">IHHIhhHH", 1, 102, 0, 0, service_error, 0, 0, 127)
    return struct.pack(">HBBH", len(body) + 6, kind, 60, 0) + body


def describe(columns: Sequence[type], kind: int = _SELECT) -> bytes:
    """Return SQ_DESCRIBE of a statement: int is BIGINT, str is LVARCHAR."""
    names = b"".join(b"c%d\0" % number for number in range(len(columns)))
    head = struct.pack(">HHHIHHI", 8, kind, 0, 0, 0, len(columns), len(names))
    at, described = 0, b""
    for number, column in enumerate(columns):
        described += struct.pack(">II", at, 0) + _COLUMNS[column]
        at += len(b"c%d\0" % number)
    return head + described + names + bytes(len(names) & 1)


_COLUMNS = {
    int: struct.pack(">HIHHHHII", 52, 0, 0, 0, 0, 0, 0, 8),
    str: struct.pack(">HI", 40, 1)
    + char(b"informix")
    + char(b"lvarchar")
    + struct.pack(">HHII", 0, 0, 0, 32_739),
}


def row(columns: Sequence[type], values: Row) -> bytes:
    """Return SQ_TUPLE."""
    data = b"".join(_cell(column, value) for column, value in zip(columns, values, strict=True))
    return struct.pack(">HHI", 14, 0, len(data)) + data + bytes(len(data) & 1)


def _cell(column: type, value: Value) -> bytes:
    if column is int:
        return struct.pack(">q", -(2**63) if value is None else int(value))
    if value is None:
        return b"\1" + bytes(4)
    data = str(value).encode()
    return struct.pack(">BI", 0, len(data)) + data


def done(rows: int = 0, warnings: int = 0) -> bytes:
    """Return SQ_DONE and SQ_COST."""
    return struct.pack(">HHIII", 15, warnings, rows, 0, 0) + struct.pack(">HII", 55, 1, 1)


def error(native: int, isam: int = 0, argument: str = "") -> bytes:
    """Return SQ_ERR."""
    return struct.pack(">HhhI", 13, native, isam, 0) + char(argument.encode())


def large_object(data: bytes, chunk: int = 32_000) -> bytes:
    """Return SQ_LODATA."""
    head = struct.pack(">HHI", LO_DATA, 0, len(data))
    if not data:
        return head + bytes(2)
    return head + b"".join(char(data[at : at + chunk]) for at in range(0, len(data), chunk))


# ---- what a client sends ----


class _Incoming:
    """Takes integers and texts off a stream."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source

    def take(self, count: int) -> bytes:
        data = self._source.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def numbers(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(">" + layout, self.take(struct.calcsize(">" + layout)))

    def number(self, layout: str = "H") -> int:
        return self.numbers(layout)[0]

    def padded(self, count: int) -> bytes:
        data = self.take(count)
        assert self.take(count & 1) in (b"", b"\0")
        return data

    def char(self) -> bytes:
        return self.padded(self.number())

    def asc(self) -> str:
        return self.take(self.number()).rstrip(b"\0").decode()


def _login(incoming: _Incoming) -> Login:
    length, kind, _, _ = incoming.numbers("HBBH")
    assert kind == 1, "this is no login"
    body = _Incoming(io.BytesIO(incoming.take(length - 6)))
    body.take(8)
    body.asc()
    body.take(2 + 12)
    for _ in ("version", "serial number", "application"):
        body.asc()
    body.take(3 * 4 + 2)
    user, password = body.asc(), body.asc()
    body.take(8 + 4 + 8 + 4 + 2 + 2 + 4)
    server = body.asc()
    body.take(5 * 2)
    assert body.number() == 106
    environment = {body.asc(): body.asc() for _ in range(body.number())}
    return Login(server, user, password, environment)


class Conversation:
    """One client's way through a script.

    Args:
        connection: the socket.
        script: what is said.
        falsify: is given the codes of a request and its answer; returns what is sent.
    """

    def __init__(
        self,
        connection: socket.socket,
        script: Script,
        falsify: Callable[[list[int], bytes], bytes] = lambda _codes, answer: answer,
    ) -> None:
        self._connection = connection
        self._incoming = _Incoming(connection.makefile("rb"))
        self._script = script
        self._falsify = falsify
        self._statement = ""
        self._rows: Sequence[Row] = ()
        self._values: list[Value] = []
        self.has_said_goodbye = False

    def run(self) -> None:
        """Answer until the client goes."""
        try:
            self._script.admit(_login(self._incoming))
        except Refusal as refusal:
            self._connection.sendall(welcome(REFUSED, refusal.args[0]))
            return
        self._connection.sendall(welcome())
        while True:
            codes, answer = self._one_request()
            self._connection.sendall(self._falsify(codes, answer))

    def _one_request(self) -> tuple[list[int], bytes]:
        codes, answer, is_refused = [self._incoming.number()], b"", False
        while codes[-1] != END:
            if codes[-1] == 56:
                self.has_said_goodbye = True
                self._connection.sendall(struct.pack(">H", 56))
                raise EOFError
            try:
                said = _HANDLERS[codes[-1]](self)
                answer += b"" if is_refused else said
            except Refusal as refusal:
                answer, is_refused = error(*refusal.args), True
            codes.append(self._incoming.number())
        return codes, answer + struct.pack(">H", END)

    def _protocols(self) -> bytes:
        self._incoming.char()
        return struct.pack(">H", 126) + char(_PROTOCOLS)

    def _environment(self) -> bytes:
        kind, _, _, _ = self._incoming.numbers("HHHH")
        assert kind == 6
        while self._incoming.char():
            self._incoming.char()
        self._incoming.char()
        return b""

    def _open_database(self) -> bytes:
        name, _ = self._incoming.char().decode(), self._incoming.number()
        self._script.open_database(name)
        return done(warnings=_IS_LOGGED)

    def _prepare(self) -> bytes:
        self._incoming.number()
        self._statement = self._incoming.padded(self._incoming.number("I")).decode()
        self._values = []
        columns = self._script.columns(self._statement)
        is_function = self._statement.lower().startswith("execute")
        kind = _EXECUTE if is_function else _SELECT if columns else _OTHER
        return describe(columns, kind) + done()

    def _bind(self) -> bytes:
        self._values = [self._value() for _ in range(self._incoming.number())]
        return b""

    def _value(self) -> Value:
        kind = self._incoming.number()
        if 40 <= kind <= 45:
            self._incoming.char(), self._incoming.char()
        is_null, _ = self._incoming.numbers("hH")
        return None if is_null else _VALUES[kind](self._incoming)

    def _run(self) -> bytes:
        self._rows = list(self._script.rows(self._statement, self._values))
        return b""

    def _execute(self) -> bytes:
        return self._run() + done(len(self._rows))

    def _fetch(self) -> bytes:
        room, _ = self._incoming.numbers("IH")
        columns, answer, count = self._script.columns(self._statement), b"", 0
        while count < len(self._rows) and len(answer) < room:
            answer += row(columns, self._rows[count])
            count += 1
        self._rows = self._rows[count:]
        return answer + done(count)

    def _result_types(self) -> bytes:
        _, count = self._incoming.numbers("HH")
        for _ in range(count):
            if 40 <= self._incoming.number() <= 45:
                self._incoming.char(), self._incoming.char()
            self._incoming.number("I")
        return b""

    def _describe_input(self) -> bytes:
        count = self._statement.count("?")
        field = struct.pack(">HIHHHHII", 13, 0, 0, 0, 0, 0, 0, 255)
        return struct.pack(">HH", 125, count) + (bytes(2) + field * count if count else b"")

    def _lo_read(self) -> bytes:
        _, session_id, size, chunk = self._incoming.numbers("HHIH")
        return large_object(self._script.lo_read(session_id, size), chunk)

    def _skip(self, count: int) -> bytes:
        self._incoming.take(count)
        return b""

    def _cursor_name(self) -> bytes:
        self._incoming.char()
        return b""


_VALUES: dict[int, Callable[[_Incoming], Value]] = {
    0: lambda incoming: incoming.char().decode(),
    2: lambda incoming: incoming.number("i"),
    13: lambda incoming: incoming.char().decode(),
    43: lambda incoming: incoming.padded(incoming.number("I")).decode(),
    52: lambda incoming: incoming.number("q"),
}
_HANDLERS: dict[int, Callable[[Conversation], bytes]] = {
    PREPARE: Conversation._prepare,
    3: Conversation._cursor_name,
    4: lambda talk: talk._skip(2),
    5: Conversation._bind,
    6: Conversation._run,
    7: Conversation._execute,
    FETCH: Conversation._fetch,
    10: lambda talk: talk._skip(0),
    11: lambda talk: talk._skip(0),
    22: lambda talk: talk._skip(0),
    36: Conversation._open_database,
    49: lambda talk: talk._skip(0),
    81: Conversation._environment,
    LO_DATA: Conversation._lo_read,
    100: Conversation._result_types,
    124: Conversation._describe_input,
    126: Conversation._protocols,
}
