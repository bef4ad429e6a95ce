"""Blocks of rows while a server answers, refuses and breaks off: both transports."""

from __future__ import annotations

import gc
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain

import numpy as np
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
    error,
)
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import (
    BadOption,
    ConnectionLost,
    InformixCdcError,
    ProtocolViolation,
    ServerRefused,
)
from informix_capture_client.row_fetch import block_reader
from informix_capture_client.transport import OdbcTransport
from informix_capture_client.transport.base import Transport
from informix_capture_client.transport.odbc import api as odbc_api
from informix_capture_client.values import Column

END = b"\0\x0c"
CLOSE, RELEASE = 10, 11
INTEGERS = (Column("v", "integer"),)
TEXTS = (Column("v", "varchar(9,0)"),)


class _NoScript:
    def admit(self, login: Login) -> None: ...

    def open_database(self, name: str) -> None: ...

    def columns(self, _statement: str) -> Sequence[type]:
        return [str]

    def rows(self, _statement: str, _values: Sequence[Value]) -> Sequence[Row]:
        return [("x",)]

    def lo_read(self, _session_id: int, _size: int) -> bytes:
        return b""


class HangUp(bytes):
    """Part of an answer, behind which the server hangs up."""


class Answers:
    """A server whose fetches are answered with these bytes, one after the other, then with no rows."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.column = (2, 4)  # type and encoded length
        self.fetches: list[bytes] = []
        self.codes: list[int] = []
        self._next = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def ends(self) -> list[int]:
        """What was closed and released."""
        return [code for code in self.codes if code in (CLOSE, RELEASE)]

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                self._connection, _ = self._listener.accept()
                connection = self._connection
                with connection, suppress(OSError, EOFError):
                    Conversation(connection, _NoScript(), self._answer).run()

    def _answer(self, codes: list[int], answer: bytes) -> bytes:
        self.codes += codes
        if PREPARE in codes:
            self._next = 0
            return self._described() + done() + END
        if FETCH not in codes:
            return answer
        self._next += 1
        if self._next > len(self.fetches):
            return done() + END
        found = self.fetches[self._next - 1]
        if isinstance(found, HangUp):
            self._connection.sendall(found)
            raise OSError("hung up")
        return found + END

    def _described(self) -> bytes:
        kind, length = self.column
        head = struct.pack(">HHHIHHI", 8, 2, 1, 0, 0, 1, 2)
        field = struct.pack(">IIHI", 0, 0, kind, 0) + char(b"") + char(b"")
        return head + field + struct.pack(">HHII", 0, 0, 0, length) + b"v\0"


def rows(*values: int | bytes) -> bytes:
    data = (struct.pack(">i", v) if isinstance(v, int) else bytes([len(v)]) + v for v in values)
    return packed(*data)


def packed(*data: bytes) -> bytes:
    return b"".join(struct.pack(">HHI", 14, 0, len(d)) + d + bytes(len(d) & 1) for d in data)


@pytest.fixture(params=["sqli", "narrow", "wide"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def answers() -> Iterator[Answers]:
    with closing(Answers()) as listening:
        yield listening


@pytest.fixture
def transport(connect: Connect, answers: Answers) -> Transport:
    return connect(port=answers.port)


def blocks(
    transport: Transport, columns: Sequence[Column] = INTEGERS, most: int = 2
) -> Iterator[list[object]]:
    reader = block_reader(transport, DecodeRules(), "t")
    for batch in reader.blocks("SELECT v", (), columns, most):
        assert 0 < batch.num_rows <= most
        yield batch.column(0).to_pylist()


def test_rows_of_many_answers_come_in_their_order(transport: Transport, answers: Answers) -> None:
    answers.fetches = [rows(1, 2, 3), rows(4), rows(5, 6, 7, 8)]
    assert list(chain(*blocks(transport, most=3))) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert answers.ends == [CLOSE, RELEASE]


def test_a_query_without_rows_has_no_block(transport: Transport, answers: Answers) -> None:
    assert list(blocks(transport)) == []
    assert answers.ends == [CLOSE, RELEASE]


def test_an_error_in_the_middle_is_one_of_ours_and_takes_its_answer_along(
    transport: Transport, answers: Answers
) -> None:
    answers.fetches = [rows(1, 2, 3), rows(4, 5) + error(-244, -107)]
    found = blocks(transport)
    assert next(found) == [1, 2]
    with pytest.raises(ServerRefused, match=r"\(-244\)"):
        list(found)
    answers.fetches = []
    assert list(blocks(transport)) == []  # the connection goes on


def test_an_error_of_the_statement_comes_with_its_first_block(transport: Transport) -> None:
    reader = block_reader(transport, DecodeRules(), "t")
    found = reader.blocks("SELECT v", (), (Column("v", "text"),), 2)
    with pytest.raises(InformixCdcError, match="TEXT, which cannot be captured"):
        next(found)


@pytest.mark.parametrize("cut", [b"", b"\0\x0e\0\0\0\0", b"\0\x0e\0\0\0\0\0\4\0\0"])
def test_a_connection_that_breaks_leaves_no_half_block(
    transport: Transport, answers: Answers, cut: bytes
) -> None:
    answers.fetches = [rows(1, 2), HangUp(rows(3) + cut)]
    found = blocks(transport)
    assert next(found) == [1, 2]
    with pytest.raises(ConnectionLost):
        list(found)


def test_who_stops_in_the_middle_frees_the_cursor(transport: Transport, answers: Answers) -> None:
    answers.fetches = [rows(*range(9)), rows(*range(9))]
    found = block_reader(transport, DecodeRules(), "t").blocks("SELECT v", (), INTEGERS, 2)
    next(found)
    found.close()
    found.close()
    assert answers.ends == [CLOSE, RELEASE]


def test_who_forgets_the_blocks_frees_the_cursor(transport: Transport, answers: Answers) -> None:
    answers.fetches = [rows(*range(9)), rows(*range(9))]
    found = block_reader(transport, DecodeRules(), "t").blocks("SELECT v", (), INTEGERS, 2)
    next(found)
    del found
    gc.collect()
    assert answers.ends == [CLOSE, RELEASE]


def test_a_connection_that_was_closed_first_is_no_harm(transport: Transport, answers: Answers) -> None:
    answers.fetches = [rows(*range(9)), rows(*range(9))]
    found = block_reader(transport, DecodeRules(), "t").blocks("SELECT v", (), INTEGERS, 2)
    next(found)
    transport.close()
    found.close()
    again = block_reader(transport, DecodeRules(), "t").blocks("SELECT v", (), INTEGERS, 2)
    with pytest.raises(ConnectionLost, match="is closed"):
        next(again)


def test_a_driver_s_statement_is_freed_before_its_connection(
    transport: Transport, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Freed after it, its handle would be nobody's: a crash, or another statement's."""
    answers.fetches = [rows(*range(9))]
    found = block_reader(_odbc(transport), DecodeRules(), "t").blocks("SELECT v", (), INTEGERS, 2)
    next(found)
    made, real = list[str](), odbc_api.OdbcApi.call

    def recorded(api: odbc_api.OdbcApi, name: str, *arguments: object) -> int:
        made.append(name)
        return real(api, name, *arguments)

    monkeypatch.setattr(odbc_api.OdbcApi, "call", recorded)
    transport.close()
    found.close()
    assert made == ["SQLFreeHandle", "SQLDisconnect", "SQLFreeHandle", "SQLFreeHandle"]


def test_between_two_blocks_the_connection_may_be_used(transport: Transport, answers: Answers) -> None:
    answers.fetches = [rows(1, 2, 3, 4)]
    found = blocks(transport)
    assert next(found) == [1, 2]
    assert transport.rows("SELECT v") == [("1",), ("2",), ("3",), ("4",)]
    assert next(found) == [3, 4]


def test_the_last_row_is_told_as_it_was_fetched(transport: Transport, answers: Answers) -> None:
    answers.fetches, answers.column = [rows(b"a", b"b ", b"\xff")], (13, 9)
    found = block_reader(transport, DecodeRules(bad_characters="replace"), "t").blocks(
        "SELECT v", (), TEXTS, 2
    )
    assert (next(found).column(0).to_pylist(), found.last_row) == (["a", "b "], ("b ",))
    assert (next(found).column(0).to_pylist(), found.last_row) == (["\ufffd"], ("\udcff",))


def test_a_value_longer_than_its_type_is_refused(transport: Transport, answers: Answers) -> None:
    answers.fetches, answers.column = [rows(b"short", b"far too long")], (13, 9)
    if isinstance(transport, OdbcTransport):  # natively no byte is cut: a length is its own
        with pytest.raises(ProtocolViolation, match=r"t\.v at row 1 .* 12 bytes, but its type has 9"):
            list(blocks(transport, TEXTS))
    else:
        assert list(blocks(transport, TEXTS)) == [["short", "far too long"]]


def test_one_long_text_among_short_ones_does_not_make_room_for_all(
    transport: Transport, answers: Answers
) -> None:
    texts = [b"a", b"b" * 32_000] * 300
    data = [struct.pack(">BI", 0, len(text)) + text for text in texts]
    tuples = [struct.pack(">HHI", 14, 0, len(d)) + d + bytes(len(d) & 1) for d in data]
    answers.fetches, answers.column = [b"".join(tuples[:400]), b"".join(tuples[400:])], (43, 32_739)
    columns = (Column("v", "lvarchar(32739)"),)
    found = list(blocks(transport, columns, most=100_000))
    assert [len(str(text)) for text in chain(*found)] == [len(text) for text in texts]
    assert len(found) > 1 or transport.__class__ is not OdbcTransport


def test_a_row_that_a_driver_cannot_deliver_ends_the_block(
    transport: Transport, answers: Answers
) -> None:
    # base 100, and an exponent before it: the second is in the year 12024
    days = ((0xC7, 20, 24, 1, 1), (0xC8, 1, 20, 24, 1), (0xC7, 20, 24, 1, 3))
    answers.fetches, answers.column = [packed(*map(bytes, days))], (10, 0x0804)
    why = "Invalid character value" if isinstance(transport, OdbcTransport) else "row 1 of a block"
    with pytest.raises(InformixCdcError, match=why):
        list(blocks(transport, (Column("v", "datetime year to day"),), most=3))


@pytest.mark.parametrize(
    ("declared", "described"),
    [
        ("date", (13, 10)),
        ("varchar(20,0)", (0, 32)),
        ("char(32)", (0, 20)),
        ("integer", (1, 2)),
        ("bigint", (2, 4)),
        ("decimal(12,2)", (5, 0x0C03)),
        ("decimal(12,2)", (5, 0x0D02)),
        ("interval year to month", (14, 0x084A)),
        ("datetime hour to minute", (7, 4)),
    ],
)
def test_a_column_that_is_described_as_another_type_is_refused(
    transport: Transport, answers: Answers, declared: str, described: tuple[int, int]
) -> None:
    """As that of a table that was just altered, or a built-in function that hides a column."""
    answers.fetches, answers.column = [], described
    with pytest.raises(ProtocolViolation, match=r"column v of table t has type .* altered"):
        list(blocks(transport, (Column("v", declared),)))


def test_a_column_too_many_is_refused(transport: Transport, answers: Answers) -> None:
    answers.fetches = [rows(1)]
    with pytest.raises(InformixCdcError, match="1 columns"):
        list(blocks(transport, (*INTEGERS, Column("w", "integer"))))
    assert answers.ends[-1] == RELEASE


def _odbc(transport: Transport) -> OdbcTransport:
    if not isinstance(transport, OdbcTransport):
        pytest.skip("only a driver has buffers of ours")
    return transport


def _driver_only(kind: str) -> None:
    if kind == "sqli":
        pytest.skip("only a driver tells lengths")


def test_a_driver_that_talks_in_another_code_set_is_refused(transport: Transport) -> None:
    with pytest.raises(BadOption, match="uses utf-8, but the database's code set is iso8859-1"):
        block_reader(_odbc(transport), DecodeRules(codec="iso8859-1"), "t")


def test_a_length_of_sql_nts_ends_with_its_nul(connect: Connect, answers: Answers, kind: str) -> None:
    _driver_only(kind)
    answers.fetches, answers.column = [rows(b"a", b"", b"123456789")], (13, 9)
    transport = connect(port=answers.port, extra="HABIT=nts")
    assert list(chain(*blocks(transport, TEXTS))) == ["a", "", "123456789"]


def test_any_other_negative_length_is_refused(connect: Connect, answers: Answers, kind: str) -> None:
    _driver_only(kind)
    answers.fetches, answers.column = [rows(b"a")], (13, 9)
    with pytest.raises(ProtocolViolation, match="has the invalid length -77"):
        list(blocks(connect(port=answers.port, extra="HABIT=negative"), TEXTS))


MISUSES = {
    "a fixed type in a buffer of another size": (odbc_api.C_SBIGINT, 4),
    "a text without room": (odbc_api.C_CHAR, 0),
    "a type that there is not": (1234, 8),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_the_test_driver_refuses_a_buffer_that_cannot_be(transport: Transport, misuse: str) -> None:
    c_type, room = MISUSES[misuse]
    buffer, length = np.zeros(64, np.uint8), np.zeros(8, np.int64)
    query = _odbc(transport).open_query()
    with pytest.raises(odbc_api.OdbcFailure):
        query.statement.call("SQLBindCol", 1, c_type, buffer.ctypes.data, room, length.ctypes.data)


def test_the_test_driver_gives_no_single_values_of_an_array(
    transport: Transport, answers: Answers
) -> None:
    answers.fetches = [rows(1, 2, 3)]
    query = _odbc(transport).open_query()
    query.statement.call("SQLSetStmtAttr", odbc_api.ATTR_ROW_ARRAY_SIZE, 2, 0)
    query.execute("SELECT v", ())
    with pytest.raises(odbc_api.OdbcFailure):
        query.value(1)
    with pytest.raises(odbc_api.OdbcFailure):  # where are their number and their states?
        query.statement.call("SQLFetch")
