"""How transport sqli gets to a server: TLS, PAM, redirection, several hosts; what it never tells."""

from __future__ import annotations

import datetime
import logging
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from harness.servers.certificates import Certificates, certificates_for
from harness.servers.scripted_wire import welcome
from harness.servers.tls import make_certificate, server_context
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
    InformixCdcError,
    ProtocolViolation,
    ServerRefused,
)
from informix_capture_client.transport.base import (
    SLOWEST_BYTES_PER_SECOND,
    TLS,
    TRUSTED,
    ConnectionSettings,
    addresses,
)
from informix_capture_client.transport.errors import OdbcFailure
from informix_capture_client.transport.sqli import transport as transport_sqli
from informix_capture_client.transport.sqli import wire as sqli_wire
from informix_capture_client.transport.sqli.trace import WireTrace
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_capture_client.transport.sqli.wire import Wire
from informix_emulator import EmulatedServer, ListeningServer
from informix_emulator.sqli.pam import Prompt, PromptStyle

PASSWORD = "pässwörd-s3cret"
QUERY = "SELECT name FROM sysmaster:informix.sysdatabases"


@pytest.fixture
def informix() -> EmulatedServer:
    server = EmulatedServer("informix", {"informix": PASSWORD})
    server.create_database("stores", locale="en_US.utf8")
    return server


def settings_for(listening: ListeningServer, **changes: object) -> ConnectionSettings:
    settings = ConnectionSettings(
        host="127.0.0.1",
        port=listening.port,
        server="informix",
        database="stores",
        user="informix",
        password=PASSWORD,
        db_locale="en_US.utf8",
        connect_timeout_seconds=3,
    )
    return replace(settings, **changes)  # type: ignore[arg-type]


def answers(settings: ConnectionSettings, trace: WireTrace | None = None) -> bool:
    with closing(SqliTransport(settings, 5, trace)) as transport:
        return ("stores",) in transport.rows(QUERY)


# ---- TLS ----


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Certificates, Certificates]:
    return certificates_for(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def encrypted(
    informix: EmulatedServer, certificates: tuple[Certificates, Certificates]
) -> Iterator[ListeningServer]:
    with ListeningServer(informix, tls=certificates[0].server_context()) as listening:
        yield listening


def test_a_server_whose_certificate_is_trusted_answers_over_tls(
    encrypted: ListeningServer, certificates: tuple[Certificates, Certificates]
) -> None:
    known = str(certificates[0].authority)
    assert answers(settings_for(encrypted, host="localhost", encryption=TLS, tls_ca_file=known))


def test_a_certificate_of_nobody_known_is_refused(encrypted: ListeningServer) -> None:
    with pytest.raises(AccessRefused, match="certificate of localhost is not trusted") as caught:
        answers(settings_for(encrypted, host="localhost", encryption=TLS))
    assert "tlsCaFile" in caught.value.remedy


def test_a_certificate_of_another_host_is_refused(
    encrypted: ListeningServer, certificates: tuple[Certificates, Certificates]
) -> None:
    known = str(certificates[0].authority)
    with pytest.raises(AccessRefused, match=r"not valid for '127\.0\.0\.1'"):
        answers(settings_for(encrypted, encryption=TLS, tls_ca_file=known))


def test_a_certificate_that_names_the_host_as_its_common_name_only_is_refused(
    informix: EmulatedServer, tmp_path: Path
) -> None:
    """RFC 9525, section 2; decision 0033."""
    own, key = make_certificate(tmp_path, names_hosts=False)
    with ListeningServer(informix, tls=server_context(own, key)) as listening:
        settings = settings_for(listening, host="localhost", encryption=TLS, tls_ca_file=str(own))
        with pytest.raises(AccessRefused, match="certificate of localhost is not trusted") as caught:
            answers(settings)
    assert "subjectAltName" in caught.value.remedy


@pytest.mark.parametrize(
    ("peer", "is_here"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:192.0.2.1", False),
        ("fe80::1%lo", False),
        ("192.0.2.1", False),
    ],
)
def test_loopback_is_recognised_in_every_spelling(peer: str, is_here: bool) -> None:
    opened = cast("socket.socket", SimpleNamespace(getpeername=lambda: (peer, 9088)))
    assert sqli_wire._is_loopback(opened) is is_here


def test_a_server_that_asks_for_a_certificate_is_shown_one(
    informix: EmulatedServer, certificates: tuple[Certificates, Certificates]
) -> None:
    server, client = certificates
    with ListeningServer(informix, tls=server.server_context(asks_clients=True)) as listening:
        there = settings_for(
            listening, host="localhost", encryption=TLS, tls_ca_file=str(server.authority)
        )
        own = client.own.with_name("own and key.pem")
        own.write_bytes(client.own.read_bytes() + client.key.read_bytes())
        assert answers(replace(there, tls_certificate_file=str(own)))
        with pytest.raises(InformixCdcError):
            answers(there)


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"tls_ca_file": "/nowhere.pem"}, "tlsCaFile"),
        ({"tls_ca_file": __file__}, "tlsCaFile"),
        ({"tls_certificate_file": __file__}, "tlsCertificateFile"),
        ({"tls_certificate_file": "/nowhere.pem"}, "tlsCertificateFile"),
    ],
)
def test_a_file_that_is_none_is_named_by_its_option(
    encrypted: ListeningServer, changes: dict[str, str], option: str
) -> None:
    with pytest.raises(BadOption, match=f"option '{option}'"):
        answers(settings_for(encrypted, host="localhost", encryption=TLS, **changes))


@pytest.mark.slow
def test_a_port_without_tls_and_one_with_it_are_told_apart(
    informix: EmulatedServer, encrypted: ListeningServer
) -> None:
    with (
        ListeningServer(informix) as plain,
        pytest.raises(AccessRefused, match=r"but does not start TLS: .* set encryption=none"),
    ):
        answers(settings_for(plain, encryption=TLS))
    with pytest.raises(InformixCdcError, match=f"127.0.0.1:{encrypted.port}"):
        answers(settings_for(encrypted))


# ---- PAM ----


def test_pam_is_answered_with_the_password(informix: EmulatedServer) -> None:
    informix.prompts = (Prompt(PromptStyle.INFO, "Welcome"), Prompt(PromptStyle.HIDDEN, "Password: "))
    with ListeningServer(informix) as listening:
        assert answers(settings_for(listening))
        with pytest.raises(AccessRefused, match="refused user informix") as caught:
            answers(settings_for(listening, password="wrong-one"))
    assert "wrong-one" not in str(caught.value)


def test_pam_that_asks_for_more_is_refused_with_its_words(informix: EmulatedServer) -> None:
    informix.prompts = (
        Prompt(PromptStyle.HIDDEN, "Password: "),
        Prompt(PromptStyle.HIDDEN, "One-time code: ", wanted="123456"),
    )
    with ListeningServer(informix) as listening, pytest.raises(AccessRefused, match="One-time code"):
        answers(settings_for(listening))


# ---- redirection ----


def test_a_redirection_is_followed(informix: EmulatedServer) -> None:
    first = EmulatedServer("informix", {"informix": PASSWORD})
    with ListeningServer(informix) as second, ListeningServer(first) as listening:
        first.redirect_to = f"informix=127.0.0.1|{second.port}"
        assert answers(settings_for(listening))


def test_a_redirection_without_end_is_given_up(informix: EmulatedServer) -> None:
    with ListeningServer(informix) as listening:
        informix.redirect_to = f"informix=127.0.0.1|{listening.port}"
        with pytest.raises(AccessRefused, match="redirects the login again and again"):
            answers(settings_for(listening))


def test_a_password_does_not_leave_a_tunnel_in_the_clear(
    informix: EmulatedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first server is reached over loopback, as through a tunnel; the second is beyond it."""
    with ListeningServer(informix) as second, ListeningServer(EmulatedServer("informix")) as first:
        first.server.redirect_to = f"informix=127.0.0.1|{second.port}"
        reached: list[int] = []

        def is_loopback(wire: Wire) -> bool:
            reached.append(len(reached))
            return reached[-1] == 0

        monkeypatch.setattr(
            "informix_capture_client.transport.sqli.wire._is_loopback", lambda _: is_loopback
        )
        monkeypatch.setattr(Wire, "is_loopback", property(is_loopback, lambda *_: None), raising=False)
        with pytest.raises(AccessRefused, match="would be sent in clear text") as caught:
            answers(settings_for(first, user="informix", password="in4mix"))
    assert "encryption=tls" in caught.value.remedy


@pytest.mark.slow
def test_a_redirection_keeps_the_encryption(
    informix: EmulatedServer, certificates: tuple[Certificates, Certificates]
) -> None:
    """The second server has no TLS: it gets nothing."""
    first = EmulatedServer("informix", {"informix": PASSWORD})
    context = certificates[0].server_context()
    with ListeningServer(informix) as second, ListeningServer(first, tls=context) as listening:
        first.redirect_to = f"informix=localhost|{second.port}"
        known = str(certificates[0].authority)
        with pytest.raises(AccessRefused, match=r"but does not start TLS: .* set encryption=none"):
            answers(settings_for(listening, host="localhost", encryption=TLS, tls_ca_file=known))


# ---- several hosts ----


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_hosts_are_tried_in_their_order(informix: EmulatedServer) -> None:
    with ListeningServer(informix) as listening:
        hosts = f"127.0.0.1:{unused_port()},127.0.0.1:{listening.port}"
        assert answers(settings_for(listening, host=hosts))


def test_where_no_host_answers_all_are_named(informix: EmulatedServer) -> None:
    first, second = unused_port(), unused_port()
    with ListeningServer(informix) as listening, pytest.raises(AccessRefused) as caught:
        answers(settings_for(listening, host=f"127.0.0.1:{first},127.0.0.1:{second}"))
    assert f"127.0.0.1:{first},127.0.0.1:{second}" in caught.value.message
    assert caught.value.answer is not None
    assert [text for *_, text in caught.value.answer.diagnostics if "refused" in text] == [
        f"Attempt to connect to 127.0.0.1:{port} failed: Connection refused" for port in (first, second)
    ]


def test_a_refusal_without_an_error_names_the_likely_causes(informix: EmulatedServer) -> None:
    """As a live 14.10.13.10 refused a wrong password (docs/assumptions.md, 66)."""
    informix.names_refusals = False
    with ListeningServer(informix) as listening, pytest.raises(AccessRefused) as caught:
        answers(replace(settings_for(listening), password="wrong"))
    place = f"127.0.0.1:{listening.port}"
    assert caught.value.message == (
        f"informix at {place} refused user informix without an error number."
    )
    assert not caught.value.is_temporary
    for cause in ("password", "DBSERVERNAME", "too many connections (-25571)", "online.log"):
        assert cause in caught.value.remedy


def test_a_host_that_refuses_the_password_is_the_last_that_is_tried(informix: EmulatedServer) -> None:
    """Else a wrong password would lock the user out everywhere."""
    other = EmulatedServer("informix", {"informix": "other"})
    with ListeningServer(informix) as second, ListeningServer(other) as first:
        there = settings_for(second, host=f"127.0.0.1:{first.port},127.0.0.1:{second.port}")
        with pytest.raises(AccessRefused, match="refused user"):
            answers(there)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("db", [("db", 9088)]),
        ("db:1, [::1]:2", [("db", 1), ("::1", 2)]),
        ("::1", [("::1", 9088)]),
    ],
)
def test_a_list_of_hosts_is_read(host: str, expected: list[tuple[str, int]]) -> None:
    assert addresses(host, 9088) == expected


@pytest.mark.parametrize("host", ["a,", "a:0,b", "a:65536,b", "a b,c", "a:x,b"])
def test_a_list_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(BadOption, match="option 'host'"):
        addresses(host, 9088)


# ---- what is told, and what never is ----


def trace_of(settings: ConnectionSettings) -> str:
    lines: list[str] = []
    trace = WireTrace(lines.append, lambda: datetime.datetime.now(datetime.UTC))
    with suppress(InformixCdcError):
        answers(settings, trace)
    return "".join(lines)


CODECS = ("utf-8", "iso8859-1", "cp1252", "utf-16-le", "utf-16-be")


@pytest.mark.parametrize("asked", [False, True], ids=["login", "PAM"])
@pytest.mark.parametrize("locale", ["en_US.utf8", "en_US.819"])
def test_the_password_is_in_no_line_of_a_trace(
    informix: EmulatedServer, asked: bool, locale: str
) -> None:
    informix.prompts = (Prompt(PromptStyle.HIDDEN, "Password: "),) if asked else ()
    with ListeningServer(informix) as listening:
        text = trace_of(settings_for(listening, db_locale=locale))
    sent = re.findall(r" > (\S+)", text)
    assert sent[0] == "login"
    if locale == "en_US.utf8":
        assert ("SQ_RESPONSE" in sent) is asked
    for codec in CODECS:
        assert PASSWORD.encode(codec).hex() not in text
        assert PASSWORD[4:].encode(codec).hex() not in text
    assert PASSWORD not in text


def test_a_trace_has_every_message_of_both_directions(informix: EmulatedServer) -> None:
    with ListeningServer(informix) as listening:
        text = trace_of(settings_for(listening))
    names = re.findall(r"^\S+ 1 ([<>]) (.+) [0-9a-f]*$", text, re.MULTILINE)
    assert len(names) == text.count("\n")
    assert [name for way, name in names if way == ">"][-2:] == ["SQ_EOT", "SQ_EXIT"]
    assert {"login answer", "SQ_DESCRIBE", "SQ_TUPLE", "SQ_DONE", "SQ_EOT"} <= {
        name for way, name in names if way == "<"
    }


def test_a_trace_has_what_was_not_understood(informix: EmulatedServer) -> None:
    """It is asked for when a message is not known, so that message must be in it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = welcome() + struct.pack(">HH", 0xABC, 7) + b"strange"

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)
                while connection.recv(65_536):
                    pass

        threading.Thread(target=serve, daemon=True).start()
        there = ConnectionSettings(
            host="127.0.0.1",
            port=listener.getsockname()[1],
            server="informix",
            database="stores",
            user="informix",
            password=PASSWORD,
        )
        last = trace_of(there).splitlines()[-1]
    assert last.endswith(" 1 < not understood 0abc0007" + b"strange".hex())


@pytest.mark.parametrize("locale", ["en_US.819", "en_US.1252", "en_US.utf8"])
@pytest.mark.parametrize("password", ["pässwörd", "10 €", "密码"])
def test_a_password_is_the_same_for_databases_of_every_code_set(password: str, locale: str) -> None:
    """The first contact is with sysmaster, whose code set need not have its characters."""
    server = EmulatedServer("informix", {"informix": password})
    server.create_database("stores", locale=locale)
    with ListeningServer(server) as listening:
        assert answers(settings_for(listening, password=password, db_locale=locale))


@pytest.mark.parametrize("attribute", ["user", "password"])
def test_bytes_of_an_environment_that_are_no_text_are_refused(
    informix: EmulatedServer, attribute: str
) -> None:
    """Python shows such a byte of a variable as half a character."""
    with (
        ListeningServer(informix) as listening,
        pytest.raises(BadOption, match="not valid UTF-8") as told,
    ):
        answers(settings_for(listening, **{attribute: "s3cret\udce4"}))
    assert "s3cret" not in str(told.value)


def test_a_name_that_the_code_set_lacks_is_refused_with_what_to_check(informix: EmulatedServer) -> None:
    informix.create_database("old", locale="en_US.819")
    with ListeningServer(informix) as listening:
        there = settings_for(listening, database="old", db_locale="en_US.819")
        with closing(SqliTransport(there, 5)) as transport:
            with pytest.raises(
                BadOption, match=r"code set \(iso8859-1\) has no character U\+20AC"
            ) as caught:
                transport.rows("SELECT 1 FROM systables WHERE tabname = ?", "€")
            assert "dbLocale" in caught.value.remedy
            assert "client" not in str(caught.value)
            assert transport.rows(QUERY)


@pytest.mark.parametrize(
    ("changes", "told"),
    [({}, True), ({"authentication": TRUSTED}, False), ({"encryption": TLS}, False)],
)
def test_a_password_in_clear_text_is_told_once(
    changes: dict[str, str], told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    settings = ConnectionSettings(
        host="db.example", port=9, server="s", database="d", user="u", password="p", **changes
    )  # type: ignore[arg-type]
    transport_sqli._warned_addresses.clear()
    with caplog.at_level(logging.WARNING):
        transport_sqli._warn_of_clear_text(settings, is_loopback=True)
        assert not caplog.messages
        for _ in range(2):
            transport_sqli._warn_of_clear_text(settings, is_loopback=False)
    assert caplog.messages == ["event=password_in_clear_text address=db.example:9"] * told


# ---- waiting ----


def test_an_interrupt_ends_a_read_and_the_connection_goes_on(informix: EmulatedServer) -> None:
    informix.create_table("stores:informix.t", "id integer")
    with ListeningServer(informix) as listening:
        transport = SqliTransport(settings_for(listening), 20)
        session = _capture(transport)
        timer = threading.Timer(0.2, transport.interrupt)
        timer.start()
        with pytest.raises(ServerRefused) as caught:
            _read_without_end(transport, session)
        timer.join()
        assert caught.value.answer is not None
        assert caught.value.answer.native == -213
        assert transport.rows(QUERY)
        transport.close()


def test_an_interrupt_over_tls_ends_the_connection(
    informix: EmulatedServer, certificates: tuple[Certificates, Certificates]
) -> None:
    informix.create_table("stores:informix.t", "id integer")
    context, known = certificates[0].server_context(), str(certificates[0].authority)
    with ListeningServer(informix, tls=context) as listening:
        there = settings_for(listening, host="localhost", encryption=TLS, tls_ca_file=known)
        transport = SqliTransport(there, 20)
        session = _capture(transport)
        timer = threading.Timer(0.2, transport.interrupt)
        timer.start()
        with pytest.raises(ConnectionLost):
            _read_without_end(transport, session)
        timer.join()
        transport.close()


def _capture(transport: SqliTransport) -> int:
    """Open a session whose reads wait for a second each."""
    session = transport.call(
        "EXECUTE FUNCTION syscdcv1:informix.cdc_opensess(?, ?, ?, ?, ?, ?)", "informix", 0, 10, 1, 1, 1
    )
    assert session > 0
    assert transport.call("EXECUTE FUNCTION syscdcv1:informix.cdc_activatesess(?, ?)", session, 0) == 0
    return session


def _read_without_end(transport: SqliTransport, session: int) -> None:
    while True:
        transport.lo_read(session, 65_536)


def test_a_slow_drip_ends_by_the_deadline(informix: EmulatedServer) -> None:
    """One byte now and then is no answer: the wait is for the answer, not for a byte."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(65_536)
                for byte in struct.pack(">HBBH", 2_000, 2, 60, 0) + bytes(2_000):
                    connection.send(bytes([byte]))
                    if done.wait(0.05):
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(AccessRefused) as caught:
            SqliTransport(
                ConnectionSettings(
                    host="127.0.0.1",
                    port=listener.getsockname()[1],
                    server="informix",
                    database="stores",
                    user="informix",
                    password=PASSWORD,
                    connect_timeout_seconds=0.3,
                )
            )
        done.set()
        thread.join()
    assert caught.value.is_temporary


class _Line:
    """A socket over which so many bytes come in a second of its own clock."""

    def __init__(self, bytes_per_second: float) -> None:
        self._bytes_per_second = bytes_per_second
        self.now = 0.0
        self.timeouts: list[float | None] = []

    def monotonic(self) -> float:
        return self.now

    def recv_into(self, target: memoryview) -> int:
        count = min(len(target), SLOWEST_BYTES_PER_SECOND)
        self.now += count / self._bytes_per_second
        return count

    def getpeername(self) -> tuple[str, int]:
        return "192.0.2.1", 9088

    def settimeout(self, seconds: float | None) -> None:
        self.timeouts.append(seconds)

    def send(self, _content: bytes, _flags: int) -> None: ...

    def sendall(self, _content: bytes) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(("share", "is_waited_for"), [(2.0, True), (0.5, False)])
def test_a_large_answer_may_take_as_long_as_the_slowest_line_takes_for_it(
    share: float, is_waited_for: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = _Line(share * SLOWEST_BYTES_PER_SECOND)
    monkeypatch.setattr(sqli_wire, "_reach", lambda *_: line)
    monkeypatch.setattr(sqli_wire, "time", line)
    settings = ConnectionSettings(
        host="192.0.2.1", port=9088, server="informix", database="stores", user="u", password="p"
    )
    wire = Wire((settings.host, settings.port), settings, None, not_after=5)
    wire.end_login()
    wire.wait_at_most(5)
    with nullcontext() if is_waited_for else pytest.raises(OdbcFailure):
        wire.incoming.take(100 * SLOWEST_BYTES_PER_SECOND)
    assert wire.is_open == is_waited_for


def test_bytes_that_arrive_do_not_put_off_the_end_of_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by their number nor by answers in time: the login as a whole has one deadline."""
    line = _Line(100 * SLOWEST_BYTES_PER_SECOND)
    monkeypatch.setattr(sqli_wire, "_reach", lambda *_: line)
    monkeypatch.setattr(sqli_wire, "time", line)
    settings = ConnectionSettings(
        host="192.0.2.1", port=9088, server="informix", database="stores", user="u", password="p"
    )
    wire = Wire((settings.host, settings.port), settings, None, not_after=30)

    def talk_for_ever() -> None:
        while True:
            wire.send_alone(b"once more")
            wire.incoming.take(SLOWEST_BYTES_PER_SECOND)

    with pytest.raises(OdbcFailure):
        talk_for_ever()
    assert 30 <= line.now < 31
    assert line.timeouts[-1] < 1, "the last wait ends with the login"


class _Unanswered:
    """A socket that nobody answers; waiting takes no time but that of the line's clock."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    def settimeout(self, seconds: float) -> None:
        self._seconds = seconds

    def connect(self, _place: object) -> None:
        self._line.now += self._seconds
        raise TimeoutError("timed out")

    def close(self) -> None: ...


def test_a_name_with_many_addresses_that_do_not_answer_has_the_same_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = _Line(1)
    many = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 9088))] * 100
    monkeypatch.setattr(sqli_wire, "time", line)
    monkeypatch.setattr(sqli_wire.socket, "getaddrinfo", lambda *_, **__: many)
    monkeypatch.setattr(sqli_wire.socket, "socket", lambda *_: _Unanswered(line))
    settings = ConnectionSettings(
        host="many", port=9088, server="informix", database="stores", user="u", password="p"
    )
    with pytest.raises(OdbcFailure):
        Wire(("many", 9088), settings, None, not_after=30)
    assert line.now == 30


def test_a_password_that_a_server_says_back_is_in_no_error(informix: EmulatedServer) -> None:
    informix.prompts = (
        Prompt(PromptStyle.HIDDEN, "Password: "),
        Prompt(PromptStyle.ECHO, f"It is {PASSWORD}?"),
    )
    with ListeningServer(informix) as listening, pytest.raises(AccessRefused) as caught:
        answers(settings_for(listening))
    assert "It is ***?" in caught.value.message


def test_a_server_that_ends_turns_of_pam_without_end_is_left(informix: EmulatedServer) -> None:
    """SQ_EOT for ever, in place of a question: each is in time, and none is an answer."""
    informix.prompts = (Prompt(PromptStyle.INFO, "Welcome"),) * 100
    with ListeningServer(informix) as listening, pytest.raises(ProtocolViolation, match="PAM messages"):
        answers(settings_for(listening))
