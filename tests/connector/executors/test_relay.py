"""What the relay in front of the Flight server passes on, and whom it lets go."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from harness.capture.scraping import free_port
from harness.runs.patience import wait_until
from informix_cdc.executors import relay as module
from informix_cdc.executors.relay import Relay

HELLO = bytes([22, 3, 1, 0, 4]) + b"abcd"  # records as in RFC 8446, 5.1
DATA = bytes([23, 3, 3, 0, 3]) + b"xyz"


class Echo:
    """A server that sends back what it gets."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.accepted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.accepted += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while got := connection.recv(1 << 16):
                connection.sendall(got)

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    yield made
    made.close()


@pytest.fixture
def relay(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    monkeypatch.setattr(module, "_MOST_HALF_OPEN", 3)
    made = Relay(socket.create_server(("127.0.0.1", 0)), lambda: echo.port)
    yield made
    made.close()


@contextlib.contextmanager
def connected(relay: Relay) -> Iterator[socket.socket]:
    with socket.create_connection(relay._listening.getsockname()) as made:
        made.settimeout(60)
        yield made


def exchanged(connection: socket.socket, sent: bytes) -> bytes:
    connection.sendall(sent)
    got = b""
    while len(got) < len(sent):
        if not (more := connection.recv(1 << 16)):
            break
        got += more
    return got


def is_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_bytes_of_any_size_pass_in_both_directions(relay: Relay) -> None:
    """More than both ends hold at a time: neither is read faster than the other takes it."""
    sent = bytes(range(256)) * (1 << 15)
    with connected(relay) as made:
        writer = threading.Thread(target=made.sendall, args=(sent,))
        writer.start()
        got = bytearray()
        while len(got) < len(sent):
            got += made.recv(1 << 16)
        writer.join()
    assert bytes(got) == sent


@pytest.mark.parametrize("step", [1, 2, 7, 100])
def test_whoever_has_ended_its_handshake_stays_whatever_others_begin(step: int, relay: Relay) -> None:
    with contextlib.ExitStack() as opened:
        known = opened.enter_context(connected(relay))
        assert exchanged(known, HELLO + DATA) == HELLO + DATA  # as the server's part of it
        for begin in range(0, len(DATA), step):
            piece = DATA[begin : begin + step]
            assert exchanged(known, piece) == piece
        strangers = [opened.enter_context(connected(relay)) for _ in range(5)]
        for each in strangers[-3:]:
            assert exchanged(each, HELLO) == HELLO
        assert [is_ended(each) for each in strangers[:2]] == [True, True]  # the oldest
        assert exchanged(known, b"more") == b"more"


@pytest.mark.parametrize("said", [[HELLO + DATA], [HELLO, DATA, HELLO]], ids=["at once", "again"])
def test_application_data_before_that_of_the_server_lets_nobody_in(
    said: list[bytes], relay: Relay
) -> None:
    """Also not if the server asks for another first message, and leaves out what comes before it."""
    with contextlib.ExitStack() as opened:
        stranger = opened.enter_context(connected(relay))
        for each in said:
            assert exchanged(stranger, each) == each
        for _ in range(3):
            assert exchanged(opened.enter_context(connected(relay)), HELLO) == HELLO
        assert is_ended(stranger)


def test_a_client_that_says_nothing_is_no_connection_of_the_server(relay: Relay, echo: Echo) -> None:
    with connected(relay), connected(relay) as speaks:
        assert exchanged(speaks, HELLO) == HELLO
        assert echo.accepted == 1
    wait_until(lambda: relay.refused == 1)  # the one that has spoken, and not the probe


def test_a_handshake_that_takes_too_long_ends(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HANDSHAKE_SECONDS", 0.01)
    with connected(relay) as made:
        assert is_ended(made)


def test_only_so_many_are_connected(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CONNECTIONS", 2)
    with connected(relay) as first, connected(relay) as stranger:
        assert exchanged(first, HELLO + DATA) == HELLO + DATA
        assert exchanged(first, DATA) == DATA  # it is let in
        assert exchanged(stranger, HELLO) == HELLO
        with connected(relay) as second:
            assert exchanged(second, HELLO + DATA) == HELLO + DATA
            assert is_ended(stranger)
            assert exchanged(second, DATA) == DATA
            with connected(relay) as third:
                assert is_ended(third)
        assert exchanged(first, DATA) == DATA


def test_a_server_that_is_not_there_ends_the_connection() -> None:
    port = free_port()
    gone = Relay(socket.create_server(("127.0.0.1", 0)), lambda: port)
    with connected(gone) as made:
        made.sendall(HELLO)
        assert is_ended(made)
    gone.close()


def test_its_end_frees_the_port_first_and_then_ends_what_there_is(echo: Echo) -> None:
    made = Relay(socket.create_server(("127.0.0.1", 0)), lambda: echo.port)
    address = made._listening.getsockname()
    with connected(made) as known:
        assert exchanged(known, HELLO) == HELLO
        made.stop()
        wait_until(lambda: made._listening.fileno() == -1)
        socket.create_server(address).close()
        assert exchanged(known, DATA) == DATA
        made.close()
        assert is_ended(known)
