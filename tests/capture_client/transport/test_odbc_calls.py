"""Which ODBC calls OdbcTransport makes: what only the driver can notice."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from capture_client.transport.conftest import Connect
from harness.runs.patience import wait_until
from harness.servers.scripted_server import STREAM, ScriptedServer
from informix_capture_client.errors import BadOption, ServerRefused
from informix_capture_client.transport.base import Transport
from informix_capture_client.transport.odbc.api import OdbcApi


@pytest.fixture(params=["narrow", "wide"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Every call that reaches the library, in order."""
    made: list[tuple[Any, ...]] = []
    real = OdbcApi.call

    def recorded(api: OdbcApi, name: str, *arguments: object) -> int:
        made.append((name, *arguments))
        return real(api, name, *arguments)

    monkeypatch.setattr(OdbcApi, "call", recorded)
    return made


def _names(calls: list[tuple[Any, ...]]) -> list[str]:
    return [call[0] for call in calls]


def test_a_session_is_bound_once_for_all_its_reads(
    transport: Transport, calls: list[tuple[Any, ...]]
) -> None:
    for _ in range(10):
        transport.lo_read(1, 128)
    assert _names(calls).count("SQLBindParameter") == 4
    assert _names(calls).count("SQLExecDirect") == 10


def test_the_length_is_zero_before_each_read(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a driver that stores 4 bytes of it leaves the other four as they were
    real, indicators, before = OdbcApi.call, {}, []

    def watched(api: OdbcApi, name: str, *arguments: Any) -> int:
        if name == "SQLBindParameter" and arguments[1] == 2:
            indicators[arguments[0].value] = ctypes.c_ssize_t.from_address(arguments[-1])
        if name == "SQLExecDirect":
            before.append(indicators[arguments[0].value].value)
        return real(api, name, *arguments)

    monkeypatch.setattr(OdbcApi, "call", watched)
    lengths = [len(transport.lo_read(1, 128)) for _ in range(4)]
    assert (lengths, before) == ([128] * 4, [0] * 4)


def test_another_size_is_bound_anew_and_frees_the_old_statements(
    transport: Transport, calls: list[tuple[Any, ...]]
) -> None:
    transport.lo_read(1, 128)
    transport.lo_read(1, 256)
    assert _names(calls).count("SQLBindParameter") == 8
    assert [call[1] for call in calls if call[0] == "SQLFreeHandle"] == [3, 3]


def test_closing_frees_statements_then_the_connection_then_the_environment(
    transport: Transport, calls: list[tuple[Any, ...]]
) -> None:
    transport.lo_read(1, 128)
    calls.clear()
    transport.close()
    kinds = [call[1] if call[0] == "SQLFreeHandle" else call[0] for call in calls]
    assert kinds == [3, 3, "SQLDisconnect", 2, 1]


def test_closing_says_goodbye_to_the_server(transport: Transport, server: ScriptedServer) -> None:
    transport.close()
    wait_until(lambda: server.goodbyes == 1)


def test_every_statement_is_freed_even_when_it_fails(
    transport: Transport, calls: list[tuple[Any, ...]]
) -> None:
    transport.rows("SELECT nulls")
    with pytest.raises(ServerRefused):
        transport.rows("SELEC")
    assert _names(calls).count("SQLAllocHandle") == _names(calls).count("SQLFreeHandle") == 2


def test_a_refused_connection_leaves_no_handle(connect: Connect, calls: list[tuple[Any, ...]]) -> None:
    with pytest.raises(Exception, match="refused user"):
        connect(password="wrong")
    assert _names(calls).count("SQLAllocHandle") == _names(calls).count("SQLFreeHandle") == 2


def test_the_switch_that_forbids_reading_is_turned_off(connect: Connect) -> None:
    # the test driver honours ODTYP as the manual describes: it turns LO_AUTOMATIC on
    assert connect(extra="ODTYP=1").lo_read(1, 128) == STREAM[:128]


def test_the_isam_code_of_a_reason_is_a_diagnostic_of_its_own(transport: Transport) -> None:
    with pytest.raises(ServerRefused) as caught:
        transport.rows("SELECT two reasons")
    texts = [text for _, _, text in caught.value.answer.diagnostics]  # type: ignore[attr-defined]
    assert [text.rpartition("]")[2] for text in texts] == [
        "Could not insert new row into the table.",
        "ISAM error: no free disk space.",
    ]


def test_the_driver_talks_in_the_client_locale_s_code_set(connect: Connect) -> None:
    # the scripted server stores UTF-8, so a Latin-1 client sees each of its bytes as a character
    transport = connect(client_locale="en_us.8859-1")
    assert transport.rows("SELECT nulls") == [(None, "", "x"), ("", None, "y")]
    with pytest.raises(BadOption, match=r"U\+6F22"):
        transport.rows("EXECUTE FUNCTION echo(?)", "漢")


def test_a_client_locale_that_cannot_be_decoded_is_refused(connect: Connect) -> None:
    with pytest.raises(BadOption, match=r"en_us\.ebcdic"):
        connect(client_locale="en_us.ebcdic")
