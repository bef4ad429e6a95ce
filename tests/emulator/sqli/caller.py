"""The least client of SQLI: it sends what clients were seen to send, and knows how long answers are."""

from __future__ import annotations

import socket
import ssl
import struct
from dataclasses import dataclass, field

from emulator.sqli.spoken import EOT, OFFER_JDBC_4, char, login_packet, packed, sql

ACCEPTED, REFUSED, REDIRECTED = 2, 3, 13


@dataclass
class Caller:
    """A connection; `answer` returns messages as hexadecimal digits up to the end of the turn."""

    port: int
    server: str = "informix"
    user: str = "informix"
    password: str | None = field(default="in4mix", repr=False)
    environment: dict[str, str] = field(default_factory=lambda: {"DB_LOCALE": "en_US.utf8"})
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    connection: socket.socket = field(init=False)
    kind: int = field(init=False)
    service_error: int = field(init=False, default=0)
    tail: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.connection = socket.create_connection((self.host, self.port), timeout=20)
        if self.tls is not None:
            self.connection = self.tls.wrap_socket(self.connection, server_hostname="localhost")
        given = {"server": self.server, "user": self.user, "password": self.password}
        self.connection.sendall(login_packet(environment=self.environment, **given))
        size, self.kind, _, _ = struct.unpack(">HBBH", self._exactly(6))
        self.tail = self._exactly(size - 6)
        if self.kind in (ACCEPTED, REFUSED):
            (self.service_error,) = struct.unpack(">h", self.tail[-8:-6])

    def begin(self, database: str) -> str:
        """Agree on the usual bits and open a database."""
        self.send("007e", char(bytes.fromhex(OFFER_JDBC_4).decode("latin-1")), EOT)
        assert self._exactly(16)[-2:] == packed(EOT)
        return self.ask("0024", char(database), "0000")

    def ask(self, *parts: str | bytes) -> str:
        self.send(*parts, EOT)
        return self.answer()

    def call(self, text: str) -> int:
        """Run a function that returns a number."""
        described = self.prepare(text)
        assert described.startswith("0008"), described
        number = described[8:12]
        self.ask("0004", number, "0003 0000 0006")
        fetched = self.ask("0004", number, "0009 00001000 0000")
        assert fetched.startswith("000e"), fetched
        self.ask("0004", number, "000b")
        return int(struct.unpack(">i", bytes.fromhex(fetched[16:24]))[0])

    def prepare(self, text: str) -> str:
        self.send(sql(text))
        return self.answer()

    def read(self, session: int, room: int = 1 << 16) -> bytes:
        self.ask_to_read(session, room)
        found = self.read_answer()
        assert isinstance(found, bytes), found
        return found

    def ask_to_read(self, session: int, room: int) -> None:
        self.send(f"0061 0000 {session & 0xFFFF:04x} {room:08x} 7d00", EOT)

    def read_answer(self) -> bytes | str:
        """Return the bytes of a read, or as `answer` what came in their place."""
        code = self._exactly(2)
        if code != b"\0\x61":
            rest = _BODIES[code[1]](self)
            return (code + rest).hex() + self.answer()
        _, size = struct.unpack(">HI", self._exactly(6))
        data = b""
        while len(data) < size or not size:
            (length,) = struct.unpack(">H", self._exactly(2))
            data += self._exactly(length)
            self._exactly(length & 1)
            if not size:
                break
        assert self._exactly(2) == packed(EOT)
        return data

    def send(self, *parts: str | bytes) -> None:
        self.connection.sendall(packed(*parts))

    def interrupt(self) -> None:
        self.connection.send(b"B", socket.MSG_OOB)

    def answer(self) -> str:
        parts: list[str] = []
        while not parts or parts[-1] != EOT:
            parts.append(self._message())
        return "".join(parts)

    def close(self) -> None:
        self.connection.close()

    def _message(self) -> str:
        head = self._exactly(2)
        (code,) = struct.unpack(">H", head)
        return (head + _BODIES[code](self)).hex()

    def _error(self) -> bytes:
        head = self._exactly(10)
        (length,) = struct.unpack(">H", head[8:])
        return head + self._exactly(length + (length & 1))

    def _tuple(self) -> bytes:
        head = self._exactly(6)
        (length,) = struct.unpack(">I", head[2:])
        return head + self._exactly(length + (length & 1))

    def _description(self) -> bytes:
        head = self._exactly(16)
        count, names = struct.unpack(">HI", head[10:])
        body = b""
        for _ in range(count):
            body += self._exactly(14)
            for _ in range(2):
                length = self._exactly(2)
                (size,) = struct.unpack(">H", length)
                body += length + self._exactly(size + (size & 1))
            body += self._exactly(12)
        return head + body + self._exactly(names + (names & 1))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self.connection.recv(size - len(data))
            if not chunk:
                raise EOFError(data.hex())
            data += chunk
        return data


_BODIES = {
    8: Caller._description,
    12: lambda _caller: b"",
    13: Caller._error,
    14: Caller._tuple,
    15: lambda caller: caller._exactly(14),
    55: lambda caller: caller._exactly(8),
    56: lambda _caller: b"",
    94: lambda caller: caller._exactly(18),
    99: lambda caller: caller._exactly(6),
}
