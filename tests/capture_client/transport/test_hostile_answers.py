"""Whatever bytes arrive, a transport returns or raises one of ours: no crash, no hang."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from capture_client.transport.conftest import Connect
from harness.runs.examples import examples
from harness.servers.scripted_server import ScriptedServer
from informix_capture_client.errors import InformixCdcError, ProtocolViolation, ServerRefused
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.emulator import EmulatorTransport
from informix_capture_client.transport.odbc import OdbcTransport

ADMITTED = struct.pack("<II", 1, 0) + b"\0"


@pytest.fixture(params=["emulator", "narrow"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class OneAnswer:
    """Admits whoever comes, answers the first statement with fixed bytes, and hangs up."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.answer = b""
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError):
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(ADMITTED)
        connection.recv(65_536)
        connection.sendall(self.answer)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass


def _header(body: bytes, out: bytes = b"") -> bytes:
    return struct.pack("<II", len(body), len(out)) + body + out


plausible = st.builds(
    lambda kind, columns, names, rows, cells: (
        struct.pack("<bqH", kind, -1, columns) + names + struct.pack("<I", rows) + cells
    ),
    st.sampled_from([0, 0, 0, 2, 1]),
    st.sampled_from([0, 1, 2, 65_535]),
    st.sampled_from([b"", b"\x01a\x04\x00\x00\x00\x00\x00", b"\xffabc"]),
    st.sampled_from([0, 1, 2, 2**31, 2**32 - 1]),
    st.sampled_from([b"", b"\x01\x00\x00\x00x", b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff"]),
)
answers = st.one_of(
    st.binary(max_size=60),
    st.builds(_header, st.binary(max_size=60), st.binary(max_size=200)),
    st.builds(_header, plausible, st.binary(max_size=200)),
    st.builds(lambda error: _header(b"\x02" + error), st.binary(max_size=40)),
)


@examples(120, HealthCheck.function_scoped_fixture)
@given(answer=answers, reads=st.booleans())
def test_any_noise_is_understood_or_refused(
    settings: ConnectionSettings, one_answer: OneAnswer, answer: bytes, reads: bool
) -> None:
    one_answer.answer = answer
    there = replace(settings, port=one_answer.port)
    factory = OdbcTransport if there.driver else EmulatorTransport
    with closing(factory(there)) as transport, suppress(InformixCdcError):
        if reads:
            assert len(transport.lo_read(1, 128)) <= 128
        else:
            transport.rows("SELECT nulls")


@pytest.fixture
def one_answer() -> Iterator[OneAnswer]:
    with closing(OneAnswer()) as listening:
        yield listening


@pytest.mark.parametrize("kind", ["emulator"], indirect=True)
@pytest.mark.parametrize(
    "answer",
    [
        _header(struct.pack("<bqHI", 0, -1, 0, 0), b"x" * 129),
        _header(b"\x07"),
        struct.pack("<II", 2**31, 0),
        _header(struct.pack("<bqHI", 0, -1, 0, 5)),
        _header(struct.pack("<bqHBchIIi", 0, -1, 1, 1, b"a", 4, 10, 1, 100) + b"short"),
    ],
    ids=[
        "more bytes than asked for",
        "an unknown kind",
        "an endless header",
        "rows of nothing",
        "a value that ends too early",
    ],
)
def test_the_emulator_s_breach_of_protocol_closes_the_connection(
    settings: ConnectionSettings, one_answer: OneAnswer, answer: bytes
) -> None:
    one_answer.answer = answer
    with closing(EmulatorTransport(replace(settings, port=one_answer.port))) as transport:
        with pytest.raises(ProtocolViolation):
            transport.lo_read(1, 128) if answer.endswith(b"x") else transport.rows("SELECT nulls")
        with pytest.raises(InformixCdcError, match="broke"):
            transport.rows("SELECT nulls")


def test_a_server_that_hangs_up_instead_of_admitting_is_named(
    connect: Connect, server: ScriptedServer
) -> None:
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
    settings: ConnectionSettings, one_answer: OneAnswer
) -> None:
    # with SQL_SUCCESS_WITH_INFO the indicator tells what is available, not what was read
    one_answer.answer = _header(struct.pack("<bqHI", 0, -1, 0, 0), b"x" * 200)
    with closing(OdbcTransport(replace(settings, port=one_answer.port))) as transport:
        assert bytes(transport.lo_read(1, 128)) == b"x" * 128


@pytest.mark.parametrize("kind", ["narrow"], indirect=True)
def test_a_malformed_answer_is_an_error_of_the_driver(
    settings: ConnectionSettings, one_answer: OneAnswer
) -> None:
    one_answer.answer = _header(struct.pack("<bqHI", 0, -1, 0, 5))
    with (
        closing(OdbcTransport(replace(settings, port=one_answer.port))) as transport,
        pytest.raises(ServerRefused, match="malformed"),
    ):
        transport.rows("SELECT nulls")
