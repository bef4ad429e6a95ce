"""A list of hosts of which one is silent: its silence is waited out once, not by every connection."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.sqli import admission as sqli_admission
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_emulator import EmulatedServer, ListeningServer

PASSWORD = "in4mix"


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqli_admission, "_asked_last_until", {})


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A host that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


@pytest.fixture
def settings(silent: socket.socket) -> Iterator[ConnectionSettings]:
    """The silent host, and behind it one that answers."""
    server = EmulatedServer("informix", {"informix": PASSWORD})
    server.create_database("stores", locale="en_US.utf8")
    with ListeningServer(server) as listening:
        yield ConnectionSettings(
            host=f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{listening.port}",
            port=0,
            server="informix",
            database="stores",
            user="informix",
            password=PASSWORD,
            db_locale="en_US.utf8",
            connect_timeout_seconds=2,
        )


def was_asked(silent: socket.socket) -> int:
    """Return how many connections have come since the last look."""
    count = 0
    while True:
        try:
            silent.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def connect(settings: ConnectionSettings) -> None:
    with closing(SqliTransport(settings, 5)):
        pass


@pytest.mark.slow
def test_a_silent_host_is_asked_last_from_then_on(
    settings: ConnectionSettings, silent: socket.socket
) -> None:
    connect(settings)
    assert was_asked(silent) == 1
    connect(settings)
    assert was_asked(silent) == 0


@pytest.mark.slow
def test_after_a_while_it_has_its_place_again(
    settings: ConnectionSettings, silent: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqli_admission, "_ASKED_LAST_SECONDS", 0.0)
    connect(settings)
    connect(settings)
    assert was_asked(silent) == 2


@pytest.mark.slow
def test_a_host_that_fails_at_once_keeps_its_place(
    settings: ConnectionSettings, silent: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqli_admission, "_COSTLY_SECONDS", 1e9)
    connect(settings)
    connect(settings)
    assert was_asked(silent) == 2


def test_the_kernel_asks_now_and_then_whether_the_other_end_is_there(
    settings: ConnectionSettings,
) -> None:
    """A firewall forgets a connection that is idle for some minutes, and nobody hears of it."""
    with closing(SqliTransport(settings, 5)) as transport:
        opened = transport._wire._socket
        assert opened is not None
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 60
