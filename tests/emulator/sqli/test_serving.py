"""SQLI over sockets: who is let in, interrupts, TLS, and what a lost connection leaves behind."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emulator.conftest import ORDERS, make_server
from emulator.raw_client import RawClient, split
from emulator.sqli.caller import ACCEPTED, REDIRECTED, REFUSED, Caller
from emulator.sqli.spoken import EOT, hexed, login_packet
from emulator.sqli.told import Told
from harness.runs.patience import wait_until
from harness.servers.tls import make_certificate, server_context
from informix_emulator import EmulatedServer, ListeningServer, ServerSocket
from informix_emulator.sqli import Prompt
from informix_emulator.sqli.pam import PromptStyle

Call = Callable[..., Caller]
UTF8 = {"DB_LOCALE": "en_US.utf8"}


@pytest.fixture
def call() -> Iterator[Call]:
    """Return a function that logs in at a port; what it opens is closed."""
    callers: list[Caller] = []

    def call_at(listener: ServerSocket | int, **settings: object) -> Caller:
        port = listener if isinstance(listener, int) else listener.port
        callers.append(Caller(port, **settings))  # type: ignore[arg-type]
        return callers[-1]

    yield call_at
    for caller in callers:
        caller.close()


@pytest.fixture
def told() -> Iterator[ServerSocket]:
    with ServerSocket(Told) as listener:
        yield listener


@pytest.fixture
def listening(server: EmulatedServer) -> Iterator[ListeningServer]:
    with ListeningServer(server) as listener:
        yield listener


# logins

LOGINS = [
    ("the right password", {}, ACCEPTED, 0),
    ("a wrong password", {"password": "in4nix"}, REFUSED, -951),
    ("an unknown user", {"user": "nobody"}, REFUSED, -951),
    ("no password, and no host is trusted", {"password": None}, REFUSED, -956),
    ("another server's name", {"server": "other"}, REFUSED, -761),
    ("no server's name, as in Debezium's URL", {"server": ""}, ACCEPTED, 0),
]


@pytest.mark.parametrize(
    ("settings", "kind", "error"), [login[1:] for login in LOGINS], ids=[login[0] for login in LOGINS]
)
def test_a_client_is_let_in_or_refused_with_a_number(
    settings: dict[str, object], kind: int, error: int, listening: ListeningServer, call: Call
) -> None:
    caller = call(listening, **settings)
    assert (caller.kind, caller.service_error) == (kind, error)


def test_a_refused_client_is_not_spoken_to_any_more(listening: ListeningServer, call: Call) -> None:
    caller = call(listening, password="x")
    with pytest.raises((EOFError, ConnectionError)):
        caller.ask("0035")


def test_a_trusted_host_needs_no_password(server: EmulatedServer, call: Call) -> None:
    server.trusted_user = "informix"
    with ListeningServer(server) as listening:
        assert call(listening, password=None).kind == ACCEPTED


def test_a_client_is_sent_elsewhere(
    server: EmulatedServer, listening: ListeningServer, call: Call
) -> None:
    server.redirect_to = "informix=127.0.0.1|9089"
    caller = call(listening)
    assert caller.kind == REDIRECTED
    assert caller.tail.endswith(b"\0\x67\0\0\0\x18informix=127.0.0.1|9089\0\0\x7f")


def test_with_pam_the_password_of_the_login_does_not_count(
    server: EmulatedServer, listening: ListeningServer, call: Call
) -> None:
    server.prompts = (Prompt(PromptStyle.HIDDEN, "?"),)
    caller = call(listening, password="whatever")
    assert caller.kind == ACCEPTED
    caller.send("007e 0008 fffc7ffc3c8caa97", EOT)
    assert caller._exactly(16).hex() == hexed("007e 0009 bdbe9ffe7fbfffeff8 00 000c")
    caller.send("0080", EOT)
    assert caller._exactly(10).hex() == hexed("0081 0001 0001 3f00 000c")
    caller.send("0082 0006 696e346d6978", EOT)
    assert caller._exactly(4).hex() == hexed("007f 000c")


# databases

DATABASES = [
    ("one with a log", "stores", UTF8, "000f0015"),
    ("one without a log", "plain", UTF8, "000f0014"),
    ("an ANSI one", "ansi", UTF8, "000f0017"),
    ("one that names its server", "stores@informix", UTF8, "000f0015"),
    ("one of another server", "stores@other", UTF8, hexed("000d fc74 0000 00000000 0005 6f74686572")),
    ("none", "nodb", UTF8, hexed("000d feb7 ff91 00000000 0004 6e6f6462")),
    ("one in another code set", "sysmaster", UTF8, "000da563"),
    ("one in the code set of the client", "sysmaster", {"DB_LOCALE": "en_us.819"}, "000f0015"),
    ("one of a client that names none", "sysmaster", {}, "000f0015"),
    ("UTF-8 of a client that names none", "stores", {}, "000da563"),
    ("one of a client whose locale is none", "stores", {"DB_LOCALE": "klingon"}, "000da5c3"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "environment", "begin"), [d[1:] for d in DATABASES], ids=[d[0] for d in DATABASES]
)
def test_a_database_is_opened_with_its_properties_or_refused(
    name: str, environment: dict[str, str], begin: str, server: EmulatedServer, call: Call
) -> None:
    server.create_database("plain", logged=False)
    server.create_database("ansi", ansi=True)
    with ListeningServer(server) as listening:
        assert call(listening, environment=environment).begin(name).startswith(begin)


def test_a_secondary_says_so(server: EmulatedServer, listening: ListeningServer, call: Call) -> None:
    server.ha_role = (2, "informix")
    assert call(listening).begin("stores").startswith("000f0035")


def test_a_connection_without_a_locale_is_in_the_one_of_its_client_where_the_server_has_it_so(
    call: Call,
) -> None:
    server = make_server(unset_locale=None)
    with ListeningServer(server) as listening:
        caller = call(listening, environment={"CLIENT_LOCALE": "en_US.utf8"})
        assert caller.begin("stores").startswith("000f0015")


# capture


def capturing(call: Call, listening: ListeningServer, timeout: int = 0) -> tuple[Caller, int]:
    caller = call(listening)
    caller.begin("stores")
    run = "execute function syscdcv1:informix."
    session = caller.call(f"{run}cdc_opensess('informix', 0, {timeout}, 2, 1, 1)")
    assert caller.call(f"{run}cdc_startcapture({session}, 0, '{ORDERS}', 'id,name,qty', 7)") == 0
    assert caller.call(f"{run}cdc_activatesess({session}, 0)") == 0
    return caller, session


def test_a_capture_session_is_read_with_as_many_records_as_it_was_opened_for(
    server: EmulatedServer, listening: ListeningServer, call: Call
) -> None:
    caller, session = capturing(call, listening)
    with server.transaction() as tx:
        tx.insert(ORDERS, {"id": 1, "name": "a", "qty": None})
    names = []
    while "TIMEOUT" not in names:
        records, rest = split(caller.read(session))
        assert rest == b""
        assert len(records) <= 2
        names += [record.name for record in records]
    assert names == ["TABSCHEMA", "BEGINTX", "INSERT", "COMMTX", "TIMEOUT"]


def test_the_number_of_a_session_beyond_65535_wraps_as_a_descriptor(call: Call) -> None:
    server = make_server(next_session_id=65_543)
    with ListeningServer(server) as listening:
        caller, session = capturing(call, listening)
        assert session == 65_543
        assert split(caller.read(7))[0][0].name == "TABSCHEMA"


def test_a_lost_connection_closes_its_capture_session(
    server: EmulatedServer, listening: ListeningServer, call: Call
) -> None:
    caller, _session = capturing(call, listening)
    assert len(server.sessions()) == 1
    caller.close()
    wait_until(lambda: not server.sessions())


def test_a_lost_connection_closes_its_session_in_the_middle_of_a_read(
    server: EmulatedServer, listening: ListeningServer, call: Call
) -> None:
    caller, session = capturing(call, listening, timeout=-1)
    caller.read(session)
    caller.send(f"0061 0000 {session:04x} 00010000 7d00", EOT)
    caller.close()
    wait_until(lambda: not server.sessions())


def test_a_server_that_goes_down_closes_connections_and_can_come_up_again(
    server: EmulatedServer, listening: ListeningServer, call: Call
) -> None:
    caller, _session = capturing(call, listening)
    listening.go_down()
    with pytest.raises((EOFError, ConnectionError)):
        caller.ask("0035")
    listening.come_up()
    assert call(listening).begin("stores").startswith("000f0015")


# interrupts


def test_one_urgent_byte_ends_a_statement_and_the_connection_goes_on(
    told: ServerSocket, call: Call
) -> None:
    caller = call(told)
    caller.begin("stores")
    caller.prepare("select slow")
    for _ in range(2):
        caller.send("0004 0000 0003 0000 0006", EOT)
        caller.interrupt()
        assert caller.answer() == hexed("000d ff2b 0000 00000000 0000 000c")
    assert caller.prepare("select n from numbers").startswith("0008")


def test_an_interrupt_ends_a_capture_read_and_the_session_goes_on(
    listening: ListeningServer, call: Call
) -> None:
    caller, session = capturing(call, listening, timeout=-1)
    assert split(caller.read(session))[0][0].name == "TABSCHEMA"
    caller.send(f"0061 0000 {session:04x} 00010000 7d00", EOT)
    caller.interrupt()
    assert caller.answer().startswith("000dff2b")
    with listening.server.transaction() as tx:
        tx.insert(ORDERS, {"id": 1, "name": "a", "qty": None})
    assert split(caller.read(session))[0][0].name == "BEGINTX"


def test_an_interrupt_that_comes_too_late_interrupts_nothing(told: ServerSocket, call: Call) -> None:
    caller = call(told)
    caller.begin("stores")
    caller.prepare("select n from numbers")
    caller.interrupt()
    caller.send("0004 0000 0003 0000 0006", EOT)
    assert caller.answer() == EOT
    caller.interrupt()
    assert len(caller.read(7)) == 512


# TLS


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[ServerSocket, ssl.SSLContext]]:
    certificate, key = make_certificate(tmp_path)
    with ServerSocket(Told, tls=server_context(certificate, key)) as listener:
        yield listener, ssl.create_default_context(cafile=str(certificate))


def test_tls_begins_with_the_first_byte(tls: tuple[ServerSocket, ssl.SSLContext], call: Call) -> None:
    listener, context = tls
    caller = call(listener, tls=context)
    assert caller.begin("stores").startswith("000f0015")
    assert len(caller.read(7)) == 512


def test_a_client_of_tls_that_goes_ends_its_statement(
    tls: tuple[ServerSocket, ssl.SSLContext], call: Call
) -> None:
    listener, context = tls
    caller = call(listener, tls=context)
    caller.begin("stores")
    caller.prepare("select slow")
    caller.send("0004 0000 0003 0000 0006", EOT)
    caller.connection.close()
    wait_until(lambda: not listener._clients)


def test_who_speaks_plainly_to_an_encrypted_port_hears_nothing_and_harms_nobody(
    tls: tuple[ServerSocket, ssl.SSLContext], call: Call
) -> None:
    listener, context = tls
    with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as plain:
        plain.sendall(login_packet())
        with contextlib.suppress(ConnectionError):
            assert b"srvinfx" not in plain.recv(1 << 16)
    with socket.create_connection(("127.0.0.1", listener.port)) as broken_off:
        broken_off.sendall(b"\x16\x03\x01")
    assert call(listener, tls=context).kind == ACCEPTED


def test_a_client_that_has_gone_before_the_handshake_is_passed_over(
    tls: tuple[ServerSocket, ssl.SSLContext], call: Call
) -> None:
    listener, context = tls
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", listener.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert call(listener, tls=context).kind == ACCEPTED


def test_a_connection_that_is_reset_while_it_is_wrapped_leaves_no_socket_open(
    tls: tuple[ServerSocket, ssl.SSLContext],
) -> None:
    listener, _context = tls
    assert listener._tls is not None
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            accepted, _address = server.accept()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with pytest.raises(OSError, match="not connected"):
            accepted.getpeername()
        wrapped = listener._tls.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        with wrapped as gone, pytest.raises(OSError, match=r"reset|EOF|closed"):
            gone.do_handshake()


# what makes no sense


def test_an_unknown_message_ends_the_connection_and_is_logged_with_its_bytes(
    told: ServerSocket, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    caller = call(told)
    caller.begin("stores")
    with caplog.at_level(logging.WARNING, "informix_cdc.emulator.sqli"):
        caller.send("0004 0001 00c8", EOT)
        with pytest.raises((EOFError, ConnectionError)):
            caller.answer()
    assert [record.getMessage() for record in caplog.records] == [
        "a client's connection is closed: message 200 is not known; up to it: 0004000100c8"
    ]


@pytest.mark.slow
@pytest.mark.fault(
    fault="a client's login that is cut at every byte, by a client that goes",
    outcome="its connection is closed, and others are served",
    seeds="each byte",
)
def test_a_login_that_is_cut_at_any_byte_harms_nobody(
    told: ServerSocket, call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    whole = login_packet()
    for size in range(len(whole)):
        with socket.create_connection(("127.0.0.1", told.port)) as client:
            client.sendall(whole[:size])
    assert call(told, server="ol").kind == ACCEPTED
    wait_until(lambda: len(told._clients) == 1)
    assert not caplog.records


@pytest.mark.parametrize("size", [0, 5, 6])
def test_a_login_of_a_lying_length_is_none(
    size: int, told: ServerSocket, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "informix_cdc.emulator.sqli"),
        socket.create_connection(("127.0.0.1", told.port), timeout=20) as client,
    ):
        client.sendall(struct.pack(">HBBH", size, 1, 60, 0) + login_packet()[6:])
        with pytest.raises(ConnectionError):  # noqa: PT012 - a reset may come as an end, too
            if not client.recv(1):
                raise ConnectionResetError
    wait_until(lambda: bool(caplog.records))
    assert "in4mix" not in caplog.text


def test_the_small_protocol_goes_on_beside(listening: ListeningServer, call: Call) -> None:
    caller = call(listening)
    assert caller.begin("stores").startswith("000f0015")
    client = RawClient(listening.port)
    assert client.open() > 0
    client.close()
