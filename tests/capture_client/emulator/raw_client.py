"""The least client of the emulator's protocol, and a reader of records written from the guide."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field

LO_READ = "{call ifx_lo_read(?, ?)}"
NAMES = {
    1: "BEGINTX",
    2: "COMMTX",
    3: "RBTX",
    40: "INSERT",
    41: "DELETE",
    42: "UPDBEF",
    43: "UPDAFT",
    62: "DISCARD",
    119: "TRUNCATE",
    200: "TABSCHEMA",
    201: "TIMEOUT",
    202: "ERROR",
}


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, sqlstate: str, native: int, message: str) -> None:
        super().__init__(sqlstate, native, message)
        self.sqlstate = sqlstate
        self.native = native


@dataclass
class Record:
    """One record, its fields after the common header as words."""

    name: str
    header: bytes
    payload: bytes

    @property
    def sequence(self) -> int:
        return struct.unpack_from(">Q", self.header)[0]

    @property
    def transaction_id(self) -> int:
        return struct.unpack_from(">I", self.header, 8)[0]

    @property
    def user_data(self) -> int:
        return struct.unpack_from(">i", self.header, 12)[0]

    @property
    def sizes(self) -> tuple[int, ...]:
        return struct.unpack(f">{(len(self.header) - 20) // 4}I", self.header[20:])


@dataclass
class RawClient:
    """A connection; `rest` holds the bytes of a record that is not complete."""

    port: int
    database: str = "stores"
    user: str = "informix"
    password: str = "in4mix"
    extra: str = ""
    rest: bytes = b""
    session: int = 0
    connection: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self.connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        try:
            self.request(
                f"CSERVER=informix;DATABASE={self.database};UID={self.user};PWD={self.password}"
                f";DB_LOCALE=en_US.utf8{self.extra}".encode()
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.connection.close()

    def send(self, message: bytes) -> None:
        self.connection.sendall(struct.pack("<I", len(message)) + message)

    def receive(self) -> tuple[bytes, bytes]:
        head_bytes, out_bytes = struct.unpack("<II", self._exactly(8))
        return self._exactly(head_bytes), self._exactly(out_bytes)

    def request(self, message: bytes) -> tuple[bytes, bytes]:
        self.send(message)
        return self.answer()

    def answer(self) -> tuple[bytes, bytes]:
        head, out = self.receive()
        if head[0] != 0:
            _, state, native, length = struct.unpack_from("<b5siH", head)
            raise Refused(state.decode(), native, head[12 : 12 + length].decode())
        return head, out

    def rows(self, statement: str, *arguments: object) -> list[tuple[str | None, ...]]:
        head, _ = self.request(execute_message(statement, *arguments))
        return parse_rows(head)

    def call(self, function: str, *arguments: object) -> int:
        marks = ", ".join("?" * len(arguments))
        rows = self.rows(f"EXECUTE FUNCTION syscdcv1:informix.{function}({marks})", *arguments)
        return int(rows[0][0] or "")

    def open(self, timeout: int = 0, max_recs: int = 256) -> int:
        self.session = self.call("cdc_opensess", "informix", 0, timeout, max_recs, 1, 1)
        assert self.session > 0
        return self.session

    def capture(self, table: str, columns: str, user_data: int = 7) -> None:
        assert self.call("cdc_startcapture", self.session, 0, table, columns, user_data) == 0

    def activate(self, position: int = 0) -> None:
        assert self.call("cdc_activatesess", self.session, position) == 0

    def read(self, room: int = 1 << 16) -> bytes:
        return self.request(read_message(self.session, room))[1]

    def records(self, room: int = 1 << 16) -> list[Record]:
        """Return the records of one read; a cut one is completed by the next call."""
        self.rest += self.read(room)
        found, self.rest = split(self.rest)
        return found

    def until_timeout(self, room: int = 1 << 16) -> list[Record]:
        found: list[Record] = []
        while not found or found[-1].name != "TIMEOUT":
            found += self.records(room)
        return found

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self.connection.recv(size - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return data


def execute_message(statement: str, *arguments: object) -> bytes:
    text = statement.encode()
    message = b"X" + struct.pack("<I", len(text)) + text + bytes((len(arguments),))
    for argument in arguments:
        value = b"" if argument is None else str(argument).encode()
        length = 0xFFFFFFFF if argument is None else len(value)
        message += struct.pack("<BI", 1, length) + value
    return message


def read_message(session: int, room: int) -> bytes:
    message = execute_message(LO_READ, session)
    place = 5 + len(LO_READ)
    return message[:place] + b"\2" + message[place + 1 :] + struct.pack("<BI", 4, room)


def parse_rows(head: bytes) -> list[tuple[str | None, ...]]:
    _, _, columns = struct.unpack_from("<bqH", head)
    place = 11
    for _ in range(columns):
        place += 1 + head[place] + 6
    (count,) = struct.unpack_from("<I", head, place)
    place += 4
    cells: list[str | None] = []
    for _ in range(count * columns):
        (length,) = struct.unpack_from("<i", head, place)
        place += 4
        cells.append(None if length < 0 else head[place : place + length].decode())
        place += max(length, 0)
    assert place == len(head)
    return [tuple(cells[n * columns : (n + 1) * columns]) for n in range(count)]


def split(data: bytes) -> tuple[list[Record], bytes]:
    found, place = [], 0
    while len(data) - place >= 16:
        header_bytes, payload_bytes, scheme, number = struct.unpack_from(">4I", data, place)
        assert scheme == 66
        end = place + header_bytes + payload_bytes
        if end > len(data):
            break
        header = data[place + 16 : place + header_bytes]
        found.append(Record(NAMES[number], header, data[place + header_bytes : end]))
        place = end
    return found, data[place:]
