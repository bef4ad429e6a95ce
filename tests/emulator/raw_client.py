"""The least client of a capture session over SQLI, and a reader of records written from the guide."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from emulator.sqli.caller import REFUSED, Caller
from emulator.sqli.spoken import CURSOR, EOT, char, packed

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
    """The server answered with an error: its number, and the word that goes into the client's text."""

    def __init__(self, native: int, argument: str = "") -> None:
        super().__init__(native, argument)
        self.native = native
        self.argument = argument


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
    server_name: str = "informix"
    rest: bytes = b""
    session: int = 0
    caller: Caller = field(init=False)

    def __post_init__(self) -> None:
        pairs = (pair.partition("=") for pair in self.extra.split(";") if pair)
        environment = {"DB_LOCALE": "en_US.utf8", **{key: value for key, _, value in pairs}}
        given = {key: value for key, value in environment.items() if value}
        self.caller = Caller(self.port, self.server_name, self.user, self.password, given)
        try:
            if self.caller.kind == REFUSED:
                raise Refused(self.caller.service_error)
            _raise_if_refused(self.caller.begin(self.database))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.caller.close()

    def rows(self, statement: str, *arguments: object) -> list[tuple[str | None, ...]]:
        """Return all rows, values as text, blanks at the end of a CHAR cut off."""
        description = bytes.fromhex(_raise_if_refused(self.caller.prepare(statement)))
        number, columns = description[4:6].hex(), _columns(description)
        bound = packed(f"0005 {len(arguments):04x}", *map(_bound, arguments)) if arguments else b""
        _raise_if_refused(self.caller.ask("0004", number, CURSOR, bound, "0006"))
        answers = []
        while not answers or "0f" not in _codes(answers[-1]):
            answers.append(_raise_if_refused(self.caller.ask("0004", number, "0009 00001000 0000")))
        self.caller.ask("0004", number, "000b")
        return [_row(data, columns) for answer in answers for data in _tuples(answer)]

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
        self.ask_to_read(room)
        return self.read_answer()

    def ask_to_read(self, room: int = 1 << 16) -> None:
        """Send a read's request; its answer is fetched by `read_answer`."""
        self.caller.ask_to_read(self.session, room)

    def read_answer(self) -> bytes:
        """Return what a read has brought."""
        found = self.caller.read_answer()
        if isinstance(found, str):
            _raise_if_refused(found)
            raise AssertionError(f"neither bytes nor an error: {found}")
        return found

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


def _raise_if_refused(answer: str) -> str:
    data = bytes.fromhex(answer)
    if data[:2] == b"\0\x0d":
        native, _isam, _offset, length = struct.unpack_from(">hhIH", data, 2)
        raise Refused(native, data[12 : 12 + length].decode("latin-1"))
    return answer


def _bound(argument: object) -> bytes:
    if argument is None:
        return packed("0000 ffff 0000")
    return packed("0000 0000 0000", char(str(argument)))


def _columns(description: bytes) -> list[tuple[int, int]]:
    """Return type and encoded length of each column."""
    (count,) = struct.unpack_from(">H", description, 12)
    columns, place = [], 18
    for _ in range(count):
        (kind,) = struct.unpack_from(">H", description, place + 8)
        place += 14
        for _ in range(2):  # owner and name of an extended type
            (size,) = struct.unpack_from(">H", description, place)
            place += 2 + size + (size & 1)
        columns.append((kind & 0xFF, struct.unpack_from(">I", description, place + 8)[0]))
        place += 12
    return columns


def _messages(answer: str) -> Iterator[tuple[str, bytes]]:
    """Yield code and body of the messages of a fetch's answer."""
    data, place = bytes.fromhex(answer), 0
    while data[place : place + 2] != packed(EOT):
        code = data[place + 1]
        size = {15: 14, 55: 8, 99: 6}.get(code)
        if size is None:
            assert code == 14, answer
            (length,) = struct.unpack_from(">I", data, place + 4)
            size = 6 + length + (length & 1)
            yield "0e", data[place + 8 : place + 8 + length]
        else:
            yield f"{code:02x}", data[place + 2 : place + 2 + size]
        place += 2 + size


def _codes(answer: str) -> set[str]:
    return {code for code, _ in _messages(answer)}


def _tuples(answer: str) -> list[bytes]:
    return [body for code, body in _messages(answer) if code == "0e"]


def _row(data: bytes, columns: list[tuple[int, int]]) -> tuple[str | None, ...]:
    values = []
    for kind, length in columns:
        value, size = _TEXTS[kind](data, length)
        values.append(value)
        data = data[size:]
    assert not data
    return tuple(values)


def _integer(form: str) -> Callable[[bytes, int], tuple[str | None, int]]:
    size = struct.calcsize(form)
    null = -(1 << (8 * size - 1))

    def text(data: bytes, _length: int) -> tuple[str | None, int]:
        (value,) = struct.unpack_from(form, data)
        return None if value == null else str(value), size

    return text


def _char(data: bytes, length: int) -> tuple[str | None, int]:
    return (None if not data[0] else data[:length].decode().rstrip()), length


def _varchar(data: bytes, _length: int) -> tuple[str | None, int]:
    size = data[0]
    return (None if data[:2] == b"\1\0" else data[1 : 1 + size].decode()), 1 + size


def _lvarchar(data: bytes, _length: int) -> tuple[str | None, int]:
    is_null, size = struct.unpack_from(">BI", data)
    return (None if is_null else data[5 : 5 + size].decode()), 5 + size


def _decimal(data: bytes, length: int) -> tuple[str | None, int]:
    """Read a count: DECIMAL(p,0), never negative here."""
    digits = ((length >> 8) + 3) // 2 - 1  # of base 100
    pairs = data[1 : 1 + (data[0] & 0x7F) - 64]
    return (str(int("".join(f"{pair:02d}" for pair in pairs) or "0")) if data[0] else None), 1 + digits


def _date(data: bytes, _length: int) -> tuple[str | None, int]:
    day = datetime.date(1899, 12, 31) + datetime.timedelta(days=struct.unpack_from(">i", data)[0])
    return day.strftime("%m/%d/%Y"), 4


_TEXTS = {
    **dict.fromkeys((0, 15), _char),
    1: _integer(">h"),
    **dict.fromkeys((2, 6), _integer(">i")),
    **dict.fromkeys((52, 53), _integer(">q")),
    5: _decimal,
    7: _date,
    **dict.fromkeys((13, 16), _varchar),
    40: _lvarchar,
}


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
