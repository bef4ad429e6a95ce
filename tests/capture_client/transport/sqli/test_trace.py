"""A trace of the wire: a line for each message, and the password in none of them."""

from __future__ import annotations

import datetime
import re

import pytest

from informix_capture_client.transport.sqli.trace import ConnectionTrace, WireTrace

AT = datetime.datetime(2026, 11, 22, 8, 41, 9, 123456, datetime.UTC)


def traced(password: str = "", codecs: tuple[str, ...] = ()) -> tuple[ConnectionTrace, list[str]]:
    lines: list[str] = []
    return WireTrace(lines.append, lambda: AT).connection(password, codecs), lines


def test_a_line_has_time_connection_direction_name_and_bytes() -> None:
    trace, lines = traced()
    trace.sent("SQ_EOT", b"\0\x0c")
    trace.received("SQ_EOT", b"\0\x0c")
    assert lines == [
        "2026-11-22T08:41:09.123456Z 1 > SQ_EOT 000c\n",
        "2026-11-22T08:41:09.123456Z 1 < SQ_EOT 000c\n",
    ]


def test_connections_are_numbered() -> None:
    lines: list[str] = []
    trace = WireTrace(lines.append, lambda: AT)
    for connection in (trace.connection(""), trace.connection("")):
        connection.sent("SQ_EOT", b"")
    assert [line.split()[1] for line in lines] == ["1", "2"]


@pytest.mark.parametrize("codec", ["utf-8", "iso8859-1", "cp1252", "utf-16-le", "utf-16-be", "big5"])
def test_the_password_is_cut_out_in_every_code_set(codec: str) -> None:
    password = "pässwörd" if codec != "big5" else "密碼word"
    trace, lines = traced(password, ("big5",))
    trace.received("SQ_ERR", b"\x01" + password.encode(codec) + b"\x02")
    assert password.encode(codec).hex() not in lines[0]
    assert re.search(rf" 01{b'***'.hex()}02$", lines[0].strip())


def test_nothing_is_cut_out_without_a_password() -> None:
    trace, lines = traced()
    trace.sent("SQ_PREPARE", b"\1\2")
    assert lines[0].endswith(" 0102\n")


def test_the_password_is_in_no_repr() -> None:
    assert "hunter2" not in repr(traced("hunter2")[0])
