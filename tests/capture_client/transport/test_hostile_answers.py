"""Whatever bytes arrive, a transport returns or raises one of ours: no crash, no hang."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from capture_client.transport.conftest import Connect
from harness.runs.examples import examples
from harness.servers.scripted_wire import (
    FETCH,
    LO_DATA,
    PREPARE,
    Conversation,
    Login,
    Row,
    Value,
    char,
    describe,
    done,
    error,
    large_object,
    row,
)
from informix_capture_client.errors import (
    AccessRefused,
    ConnectionLost,
    InformixCdcError,
    ProtocolViolation,
    ServerRefused,
)
from informix_capture_client.transport.base import Transport

END = b"\0\x0c"
_NONE = -1  # no request has this code
ROOM = 128


@pytest.fixture(params=["sqli", "narrow"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class OneAnswer:
    """Admits whoever comes, answers the first request with a code with fixed bytes, and hangs up."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.script = _OneColumn()
        self.code = PREPARE
        self.answer = b""
        self.others: dict[int, bytes] = {}  # answers by the code of a request, after which it goes on
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
                    Conversation(connection, self.script, self._falsified(connection)).run()

    def _falsified(self, connection: socket.socket) -> Callable[[list[int], bytes], bytes]:
        def falsified(codes: list[int], answer: bytes) -> bytes:
            if self.code not in codes:
                return next((self.others[code] for code in codes if code in self.others), answer)
            connection.sendall(self.answer)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass
            raise EOFError

        return falsified


class _OneColumn:
    """Answers every statement with texts: one, if nothing else is said."""

    def __init__(self) -> None:
        self.found: Sequence[Row] = [("x",)]

    def admit(self, login: Login) -> None: ...

    def open_database(self, name: str) -> None: ...

    def columns(self, _statement: str) -> Sequence[type]:
        return [str]

    def rows(self, _statement: str, _values: Sequence[Value]) -> Sequence[Row]:
        return self.found

    def lo_read(self, _session_id: int, size: int) -> bytes:
        return bytes(size)


@pytest.fixture
def one_answer() -> Iterator[OneAnswer]:
    with closing(OneAnswer()) as listening:
        yield listening


def ask(transport: Transport, code: int) -> object:
    """Let the transport send a request that has this code."""
    return bytes(transport.lo_read(1, ROOM)) if code == LO_DATA else transport.rows("SELECT x")


_TEXT = describe([str]) + done() + END
_ROW = row([str], ["text"])
_ROWS = _ROW + done(1) + END
_SOUND = [
    describe([str]) + done(),
    describe([int, str], 56) + done(),
    _ROW + done(1),
    _ROW * 3 + done(3),
    large_object(b"bytes"),
    large_object(b"x" * ROOM),
    error(-201, -111, "word"),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An answer with some bytes replaced, left out, or put in twice."""
    answer = draw(st.sampled_from(_SOUND)) + END
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(answer)))
        end = draw(st.integers(begin, min(begin + 8, len(answer))))
        other = draw(st.one_of(st.binary(max_size=8), st.sampled_from(_AWKWARD)))
        answer = answer[:begin] + other + answer[end:]
    return answer


_AWKWARD = [b"\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0", b"\xff\xff\xff\xff"]
_CODES = st.sampled_from([8, 10, 12, 13, 14, 15, 55, 56, 94, 97, 99, 125, 126, 0xFFFF])
_messages = st.builds(lambda code, rest: struct.pack(">H", code) + rest, _CODES, st.binary(max_size=40))
answers = st.one_of(
    st.binary(max_size=60),
    damaged(),
    st.lists(_messages, max_size=4).map(lambda parts: b"".join(parts) + END),
)


@examples(150, HealthCheck.function_scoped_fixture)
@given(answer=answers, code=st.sampled_from([PREPARE, FETCH, LO_DATA]))
def test_any_noise_is_understood_or_refused(
    connect: Connect, one_answer: OneAnswer, answer: bytes, code: int
) -> None:
    one_answer.answer, one_answer.code = answer, code
    with closing(connect(port=one_answer.port)) as transport, suppress(InformixCdcError):
        ask(transport, code)


_OF_3_BYTES = struct.pack(">HHI", LO_DATA, 0, 3)
MALFORMED = {
    "a message of no known kind": (PREPARE, struct.pack(">H", 7777)),
    "a description after another": (PREPARE, describe([str]) * 2 + done() + END),
    "a description without columns' names": (PREPARE, describe([str])[:-4] + done() + END),
    "a description of 65,535 columns": (PREPARE, struct.pack(">HHHIHHI", 8, 2, 1, 0, 0, 65_535, 4)),
    "a description whose names are 2 GB": (PREPARE, struct.pack(">HHHIHHI", 8, 2, 1, 0, 0, 1, 2**31)),
    "a column of an unknown type": (
        PREPARE,
        _TEXT.replace(b"\0\x28\0\0", b"\0\xfe\0\0"),
    ),
    "no description": (PREPARE, done() + END),
    "rows of nothing": (PREPARE, _ROW + END),
    "a value that is longer than its row": (
        FETCH,
        _ROWS.replace(b"\x04text", b"\x7ftext"),
    ),
    "a row that is longer than its values": (
        FETCH,
        _ROWS.replace(b"\x04text", b"\x02text"),
    ),
    "a row of 2 GB": (FETCH, struct.pack(">HHI", 14, 0, 2**31) + b"x" * 100),
    "a row of -1 bytes": (FETCH, struct.pack(">HHI", 14, 0, 2**32 - 1) + b"x" * 100),
    "an error without a number": (FETCH, error(0) + END),
    "a large object that was not asked for": (FETCH, large_object(b"x" * 40) + END),
    "a large object of -1 bytes": (LO_DATA, struct.pack(">HHi", 97, 0, -1)),
    "a piece that is longer than what is left": (
        LO_DATA,
        _OF_3_BYTES + char(b"four") + END,
    ),
    "a piece of nothing": (LO_DATA, _OF_3_BYTES + char(b"") + char(b"abc") + END),
}


# A driver reads a whole answer before it says anything; our own client takes what it needs, and may
# meet the end of the connection first.
TOLD = {
    "narrow": (ServerRefused, "malformed"),
    "sqli": ((ProtocolViolation, ConnectionLost), "IFXCDC-000[17]"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_an_answer_that_cannot_be_is_an_error_and_ends_the_connection(
    connect: Connect, one_answer: OneAnswer, kind: str, what: str
) -> None:
    one_answer.code, one_answer.answer = MALFORMED[what]
    transport = connect(port=one_answer.port)
    error, words = TOLD[kind]
    with pytest.raises(error, match=words):
        ask(transport, one_answer.code)
    with pytest.raises(ConnectionLost):
        ask(transport, one_answer.code)


@pytest.mark.parametrize("code", [PREPARE, FETCH, LO_DATA])
def test_a_connection_cut_within_an_answer_is_lost_at_every_byte(
    connect: Connect, one_answer: OneAnswer, code: int
) -> None:
    whole = {PREPARE: describe([str]) + done(), FETCH: _ROW + done(1), LO_DATA: large_object(b"12345")}[
        code
    ]
    one_answer.code = code
    for count in range(len(whole + END)):
        one_answer.answer = (whole + END)[:count]
        with closing(connect(port=one_answer.port)) as transport, pytest.raises(ConnectionLost):
            ask(transport, code)


def test_rows_without_an_end_are_given_up(
    connect: Connect, one_answer: OneAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answer after answer, each of them small and in time."""
    one_answer.code, one_answer.script.found = _NONE, [("x" * 1_000,)] * 1_000
    for module in ("sqli.transport", "odbc.api"):
        monkeypatch.setattr(f"informix_capture_client.transport.{module}.MOST_RESULT_BYTES", 100_000)
    transport = connect(port=one_answer.port)
    with pytest.raises(ProtocolViolation, match="bytes of rows for one query"):
        transport.rows("SELECT x")


@pytest.mark.parametrize("kind", ["sqli"], indirect=True)
def test_rows_of_many_values_in_few_bytes_are_given_up(
    connect: Connect, one_answer: OneAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CHAR(0) takes no byte of the wire, and its value some of memory."""
    monkeypatch.setattr("informix_capture_client.transport.sqli.transport.MOST_RESULT_BYTES", 100_000)
    empty = struct.pack(">IIHIHH8xI", 0, 0, 0, 0, 0, 0, 0) * 1_000
    described = struct.pack(">HHHIHHI", 8, 2, 1, 0, 0, 1_000, 2) + empty + b"x\0"
    rows = struct.pack(">HHI", 14, 0, 0) * 10
    one_answer.code = _NONE
    one_answer.others = {PREPARE: described + done() + END, FETCH: rows + done(10) + END}
    transport = connect(port=one_answer.port)
    with pytest.raises(ProtocolViolation, match="bytes of rows for one query"):
        transport.rows("SELECT x")


def test_a_server_that_hangs_up_instead_of_admitting_is_named(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as rude:

        def hang_up() -> None:
            rude.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        port = rude.getsockname()[1]
        with pytest.raises(InformixCdcError, match=f"127.0.0.1:{port}"):
            connect(port=port)
        thread.join()


@pytest.mark.parametrize("kind", ["narrow"], indirect=True)
def test_a_driver_that_announces_more_than_it_was_given_room_for_is_cut(
    connect: Connect, one_answer: OneAnswer
) -> None:
    # with SQL_SUCCESS_WITH_INFO the indicator tells what is available, not what was read
    one_answer.code, one_answer.answer = LO_DATA, large_object(b"x" * 200, chunk=90) + END
    assert bytes(connect(port=one_answer.port).lo_read(1, ROOM)) == b"x" * ROOM


PROTOCOLS = 126
AGREED = bytes.fromhex("fffc7ffc3c84aa87")
DISAGREEMENTS = {
    "lengths of 16 bits": AGREED[:7] + b"\x85",
    "none at all": b"",
}


@pytest.mark.parametrize("what", DISAGREEMENTS)
def test_protocols_that_cannot_be_agreed_on_end_the_connection(
    connect: Connect, one_answer: OneAnswer, kind: str, what: str
) -> None:
    one_answer.code = PROTOCOLS
    one_answer.answer = struct.pack(">H", PROTOCOLS) + char(DISAGREEMENTS[what]) + END
    words = {"narrow": "malformed", "sqli": "IFXCDC-000[127]"}[kind]
    with pytest.raises((AccessRefused, ConnectionLost, ProtocolViolation), match=words):
        connect(port=one_answer.port)
