"""Values of every type as a server's bytes have them, and the text that either transport makes of them.

Rule: golden vectors. Those with "(jdbc)" are bytes that IBM's JDBC driver sends of the value; the
others follow from the layout that it reads. A column is its type, extended type and encoded length.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import NamedTuple

import pytest

from capture_client.transport.conftest import Connect
from harness.servers.scripted_wire import (
    FETCH,
    PREPARE,
    Conversation,
    Login,
    Row,
    Value,
    char,
    done,
)

END = b"\0\x0c"


class Vector(NamedTuple):
    """One value."""

    what: str
    type: int
    encoded: int
    data: str  # hexadecimal
    text: str | None
    extended: int = 0


UDT = {1: (b"informix", b"lvarchar"), 5: (b"informix", b"boolean")}
VECTORS = [
    Vector("CHAR is padded to its length", 0, 4, "61622020", "ab  "),
    Vector("a CHAR that begins with a zero is NULL", 0, 4, "00202020", None),
    Vector("NCHAR is a CHAR", 15, 3, "c3bc20", "ü "),
    Vector("SMALLINT", 1, 2, "fff9", "-7"),
    Vector("the lowest SMALLINT is NULL", 1, 2, "8000", None),
    Vector("INTEGER", 2, 4, "80000001", "-2147483647"),
    Vector("the lowest INTEGER is NULL", 2, 4, "80000000", None),
    Vector("SERIAL is an INTEGER", 6, 4, "00000005", "5"),
    Vector("BIGINT", 52, 8, "0000010000000000", "1099511627776"),
    Vector("the lowest BIGINT is NULL", 52, 8, "8000000000000000", None),
    Vector(
        "INT8 has a sign, a low and a high word (jdbc)",
        17,
        10,
        "ffff0000000500000002",
        "-8589934597",
    ),
    Vector("an INT8 without a sign is NULL", 17, 10, "00" * 10, None),
    Vector("FLOAT", 3, 8, "3ff8000000000000", "1.5"),
    Vector("a FLOAT of ones is NULL", 3, 8, "ff" * 8, None),
    Vector("SMALLFLOAT", 4, 4, "40100000", "2.25"),
    Vector("DECIMAL(12,2) has an exponent and pairs", 5, 0x0C02, "c20c2200000000", "1234.00"),
    Vector("a negative one has the complement of both (jdbc)", 5, 0x0C02, "3e574200000000", "-12.34"),
    Vector("a DECIMAL below one", 5, 0x0C02, "c00100000000" + "00", "0.01"),
    Vector("zero", 5, 0x0C02, "80000000000000", "0.00"),
    Vector("a DECIMAL whose exponent byte is zero is NULL", 5, 0x0C02, "00" * 7, None),
    Vector(
        "a floating DECIMAL has the digits that it has",
        5,
        0x10FF,
        "c1030e0f5a" + "00" * 5,
        "3.14159",
    ),
    Vector("MONEY is a DECIMAL", 8, 0x1002, "c1630a" + "00" * 6, "99.10"),
    Vector("DATE counts from 31 December 1899 (jdbc)", 7, 4, "0000b126", "2024-02-29"),
    Vector("a DATE before it", 7, 4, "ffffffff", "1899-12-30"),
    Vector("the first DATE", 7, 4, "fff56aa6", "0001-01-01"),
    Vector("the last DATE", 7, 4, "002d2480", "9999-12-31"),
    Vector("the lowest DATE is NULL", 7, 4, "80000000", None),
    Vector(
        "DATETIME YEAR TO FRACTION(5) (jdbc)",
        10,
        0x130F,
        "c71418021d0d0e0f0c2232",
        "2024-02-29 13:14:15.12345",
    ),
    Vector("DATETIME YEAR TO DAY has the exponent of seconds", 10, 0x0804, "c71418030f", "2024-03-15"),
    Vector("DATETIME HOUR TO MINUTE", 10, 0x0468, "c30705", "07:05"),
    Vector("midnight has no first pair", 10, 0x0468, "c20500", "00:05"),
    Vector("a DATETIME of zeros is NULL", 10, 0x0468, "000000", None),
    Vector("INTERVAL DAY TO SECOND", 14, 0x084A, "c40c030405", "12 03:04:05"),
    Vector("a negative INTERVAL", 14, 0x084A, "3b57605f5f", "-12 03:04:05"),
    Vector("INTERVAL YEAR TO MONTH", 14, 0x0602, "c60307" + "00", "3-07"),
    Vector("VARCHAR has a byte of length", 13, 40, "03" + "616263", "abc"),
    Vector("an empty VARCHAR", 13, 40, "00", ""),
    Vector("a VARCHAR of one zero is NULL", 13, 40, "0100", None),
    Vector("LVARCHAR has a flag and four bytes of length", 40, 2048, "0000000003616263", "abc", 1),
    Vector("an LVARCHAR whose flag is set is NULL", 40, 2048, "0100000000", None, 1),
    Vector("a BOOLEAN whose flag is set is NULL", 41, 1, "0100000000", None, 5),
]


class _Nothing:
    """Every statement has the one column of the vector."""

    def admit(self, login: Login) -> None: ...

    def open_database(self, name: str) -> None: ...

    def columns(self, _statement: str) -> Sequence[type]:
        return [str]

    def rows(self, _statement: str, _values: Sequence[Value]) -> Sequence[Row]:
        return [("x",)]

    def lo_read(self, _session_id: int, _size: int) -> bytes:
        return b""


class OneValue:
    """A server whose statements answer with one value, as it stands."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.vector = VECTORS[0]
        self._is_sent = False
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError, EOFError):
                    Conversation(connection, _Nothing(), self._answer).run()

    def _answer(self, codes: list[int], answer: bytes) -> bytes:
        if PREPARE in codes:
            self._is_sent = False
            return self._described() + done() + END
        if FETCH not in codes:
            return answer
        was_sent, self._is_sent = self._is_sent, True
        return (done() if was_sent else self._row() + done(1)) + END

    def _described(self) -> bytes:
        vector = self.vector
        owner, name = UDT.get(vector.extended, (b"", b""))
        head = struct.pack(">HHHIHHI", 8, 2, 1, 0, 0, 1, 2)
        kind = struct.pack(">IIHI", 0, 0, vector.type, vector.extended) + char(owner) + char(name)
        return head + kind + struct.pack(">HHII", 0, 0, 0, vector.encoded) + b"v\0"

    def _row(self) -> bytes:
        data = bytes.fromhex(self.vector.data)
        return struct.pack(">HHI", 14, 0, len(data)) + data + bytes(len(data) & 1)


@pytest.fixture(params=["sqli", "narrow"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def one_value() -> Iterator[OneValue]:
    with closing(OneValue()) as listening:
        yield listening


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.what)
def test_a_value_is_the_text_that_it_stands_for(
    connect: Connect, one_value: OneValue, vector: Vector
) -> None:
    one_value.vector = vector
    assert connect(port=one_value.port).rows("SELECT v") == [(vector.text,)]
