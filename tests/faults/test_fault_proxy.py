"""The proxy does what it says: the tests beside this one rest on it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from harness.servers.fault_proxy import Fault, FaultProxy, on_captures, on_connections

CAPTURE = b"Select errcode from syscdcerrcodes"


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it is sent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]


def _serve(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            threading.Thread(target=_echo, args=(listener.accept()[0],), daemon=True).start()


def _echo(client: socket.socket) -> None:
    with client, suppress(OSError):
        while piece := client.recv(1 << 16):
            client.sendall(piece)


def answer_to(port: int, message: bytes, timeout: float = 5) -> bytes:
    """Send, and receive until as much has come back or the connection ends."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=timeout)) as client:
        client.sendall(message)
        got = b""
        while len(got) < len(message) and (piece := client.recv(1 << 16)):
            got += piece
        return got


@pytest.mark.parametrize("fault", [Fault(), Fault(drip=(3, 0.001)), Fault(delay_seconds=0.01)], ids=str)
def test_what_is_slow_comes_whole(echo: int, fault: Fault) -> None:
    with FaultProxy(echo, on_connections({1: fault})) as proxy:
        assert answer_to(proxy.port, CAPTURE) == CAPTURE
        assert (proxy.connections, proxy.captures, proxy.sent_on_capture(1)) == (1, 1, len(CAPTURE))


@pytest.mark.parametrize("count", range(len(CAPTURE)))
def test_a_connection_is_cut_after_exactly_so_many_bytes(echo: int, count: int) -> None:
    with FaultProxy(echo, on_connections({1: Fault(cut_after=count)})) as proxy:
        assert answer_to(proxy.port, CAPTURE) == CAPTURE[:count]
        assert answer_to(proxy.port, CAPTURE) == CAPTURE


def test_a_reset_is_a_reset_and_no_end_of_file(echo: int) -> None:
    with (
        FaultProxy(echo, on_connections({1: Fault(reset_after=5)})) as proxy,
        pytest.raises(ConnectionResetError),
    ):
        answer_to(proxy.port, CAPTURE)


def test_a_frozen_connection_stays_open_and_says_nothing(echo: int) -> None:
    with (
        FaultProxy(echo, on_connections({1: Fault(freeze_after=5)})) as proxy,
        pytest.raises(TimeoutError),
    ):
        answer_to(proxy.port, CAPTURE, timeout=0.2)


def test_bits_are_turned_in_one_byte_of_one_capture_connection(echo: int) -> None:
    with FaultProxy(echo, on_captures({2: Fault(flip=(0, 0x20))})) as proxy:
        answers = [answer_to(proxy.port, sent) for sent in (CAPTURE, b"others", CAPTURE)]
    assert answers == [CAPTURE, b"others", b"s" + CAPTURE[1:]]


def test_connections_are_refused_for_a_while(echo: int) -> None:
    with FaultProxy(echo) as proxy:
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            answer_to(proxy.port, b"x")
        proxy.accept_again()
        assert answer_to(proxy.port, b"x") == b"x"


def test_open_connections_can_be_disturbed(echo: int) -> None:
    with (
        FaultProxy(echo) as proxy,
        closing(socket.create_connection(("127.0.0.1", proxy.port), timeout=5)) as client,
    ):
        client.sendall(b"x")
        assert client.recv(1) == b"x"
        proxy.disturb(Fault(reset_after=0))
        with pytest.raises(ConnectionResetError):
            client.recv(1)
