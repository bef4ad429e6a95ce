"""The login packet as IBM's driver sends it, and the three answers to one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from capture_client.transport.sqli.wire_bytes import arriving
from harness import GOLDEN
from informix_capture_client.errors import AccessRefused, BadOption, ProtocolViolation
from informix_capture_client.transport.sqli.incoming import EndOfBytes
from informix_capture_client.transport.sqli.login import (
    Accepted,
    Login,
    LoginRefused,
    Redirect,
    read_login_answer,
)
from informix_capture_client.transport.sqli.messages import ended, u16, u32

_CAPTURED = json.loads((GOLDEN / "sqli_requests.json").read_text())
# the first packet that IBM's JDBC driver 4.50.11 sent to a listener of ours, as it came
IBM_PACKET = bytes.fromhex(_CAPTURED["requests"][0]["messages"][0])
IBM_LOGIN = Login(
    user=b"informix",
    password=b"in4mix",
    server=b"ol_informix1410",
    environment=(
        (b"DBPATH", b"."),
        (b"CLIENT_LOCALE", b"en_US.8859-1"),
        (b"CLNT_PAM_CAPABLE", b"1"),
        (b"DBDATE", b"Y4MD-"),
        (b"IFX_UPDDESC", b"1"),
        (b"NODEFDAC", b"no"),
    ),
    process_id=0x6DDA,
    thread_id=1,
    host=b"vm",
    folder=b"/tmp/sqli",
    program=b"Thread[id:1, name:main, path:/tmp/sqli/deb/lib/jdbc-4.50.11.jar]",
)


def test_the_packet_is_that_of_ibm_s_driver_byte_for_byte() -> None:
    assert IBM_LOGIN.packet() == IBM_PACKET


def test_without_a_password_its_field_is_empty() -> None:
    packet = replace(IBM_LOGIN, password=b"").packet()
    assert packet == u16(len(IBM_PACKET) - 7) + IBM_PACKET[2:].replace(b"\0\7in4mix\0", b"\0\0")


def test_a_login_that_its_length_cannot_state_is_refused() -> None:
    with pytest.raises(BadOption, match="a login of 8"):
        replace(IBM_LOGIN, user=b"u" * 40_000, password=b"p" * 40_000).packet()


def test_the_password_is_in_no_repr() -> None:
    assert "in4mix" not in repr(IBM_LOGIN)


def answer(kind: int, blocks: bytes) -> bytes:
    body = u16(100, 101) + u32(61) + ended(b"IEEEI") + u16(108) + b"srvinfx".ljust(12, b"\0")
    body += ended(b"IBM Informix Dynamic Server Version 14.10.FC10") + ended(b"RDS#N000000")
    body += ended(b"ol_informix1410") + u32(0x13C, 0, 0) + u16(0, 0, 0)
    body += b"on".ljust(8, b"\0") + u32(61) + b"soctcp\0\0" + u32(1) + blocks
    return u16(len(body) + 6, kind << 8 | 60, 0) + body


def errors(service: int, system: int) -> bytes:
    return u16(102, 0) + u32(0) + u16(service & 0xFFFF, system & 0xFFFF, 0, 127)


def test_an_accepted_login_tells_version_and_server() -> None:
    accepted = read_login_answer(arriving(answer(2, errors(0, 0))))
    assert accepted == Accepted("IBM Informix Dynamic Server Version 14.10.FC10", "ol_informix1410")


def test_blocks_that_a_server_adds_are_passed_over_by_the_packet_s_length() -> None:
    incoming = arriving(answer(2, errors(0, 0)[:-2] + u16(900, 4) + b"more" + u16(127)) + b"next")
    assert isinstance(read_login_answer(incoming), Accepted)
    assert incoming.take(4) == b"next"


@pytest.mark.parametrize(("service", "system"), [(-951, 0), (-956, 0), (-761, 0), (-951, 13)])
def test_a_refusal_tells_both_errors(service: int, system: int) -> None:
    refused = read_login_answer(arriving(answer(3, errors(service, system))))
    assert refused == LoginRefused(service, system)


def test_a_refusal_without_its_errors_is_one_without_a_reason() -> None:
    assert read_login_answer(arriving(answer(3, u16(127)))) == LoginRefused(0, 0)


def test_a_redirection_names_server_host_and_port() -> None:
    """The form that IBM's driver and gbase8sdb 1.1.1 take: server=host|port."""
    block = u16(103, 0) + ended(b"ol_second=db2.example|9089") + u16(127)
    assert read_login_answer(arriving(answer(13, block))) == Redirect("db2.example", 9089, "ol_second")


@pytest.mark.parametrize("target", [b"", b"s=h", b"s=h:9088", b"s=h|0", b"s=h|65536", b"s=|9088"])
def test_a_redirection_to_nowhere_is_refused(target: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="a redirection"):
        read_login_answer(arriving(answer(13, u16(103, 0) + ended(target) + u16(127))))


@pytest.mark.parametrize(
    ("head", "remedy"),
    [
        ("150301000202", "encryption=tls"),  # a TLS alert
        ("0015d0020001", "onsoctcp"),  # a DDM header of DRDA
        ("485454502f31", "SQLI listener"),  # HTTP/1
        ("00050200003c", "host and port"),  # shorter than its own header
        ("004a00000000", "host and port"),  # a greeting of MySQL
    ],
)
def test_who_speaks_something_else_is_told_apart(head: str, remedy: str) -> None:
    with pytest.raises(AccessRefused, match="no SQLI listener") as caught:
        read_login_answer(arriving(bytes.fromhex(head) + bytes(100)))
    assert remedy in caught.value.remedy
    assert head in caught.value.message


@pytest.mark.parametrize("kind", [2, 3, 13])
def test_an_answer_that_ends_too_early_by_its_own_length_is_refused(kind: int) -> None:
    whole = answer(kind, u16(103, 0) + ended(b"s=h|1") if kind == 13 else errors(-951, 0))
    for size in range(6, len(whole)):
        cut = u16(size) + whole[2:size]
        try:
            found = read_login_answer(arriving(cut + bytes(4)))
        except ProtocolViolation:
            continue
        assert size > 100, found  # what is behind the fields that are read may be missing


def test_an_answer_that_breaks_off_is_no_answer() -> None:
    whole = answer(2, errors(0, 0))
    for size in range(len(whole)):
        with pytest.raises(EndOfBytes):
            read_login_answer(arriving(whole[:size]))
