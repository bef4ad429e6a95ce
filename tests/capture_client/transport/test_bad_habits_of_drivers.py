"""A driver that breaks the rules of ODBC: what it means is understood, or refused by name."""

from __future__ import annotations

import pytest

from capture_client.transport.conftest import Connect
from harness.servers.scripted_server import LONG_TEXT
from informix_capture_client.errors import ConnectionLost, ProtocolViolation, ServerRefused
from informix_capture_client.transport.base import Transport
from informix_capture_client.transport.odbc.transport import OdbcTransport

LARGEST_PIECE = 65_535  # the buffer, but for the NUL at its end
MOST_SAID = 1_000


@pytest.fixture(params=["narrow", "wide"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def transport(connect: Connect, habit: str) -> Transport:
    return connect(extra=f"HABIT={habit}")


@pytest.mark.parametrize("habit", ["nts"])
def test_a_length_of_sql_nts_says_that_the_text_ends_with_its_nul(transport: Transport) -> None:
    assert transport.rows("SELECT nulls") == [(None, "", "x"), ("", None, "y")]
    assert transport.rows("SELECT long") == [("before", LONG_TEXT, "after")]
    assert transport.call("EXECUTE FUNCTION total(?, ?)", -83_700, -13) == -83_713


@pytest.mark.parametrize("habit", ["nts"])
@pytest.mark.parametrize("size", [LARGEST_PIECE - 1, LARGEST_PIECE, LARGEST_PIECE + 1])
def test_a_text_of_sql_nts_that_just_fills_a_piece_is_whole(transport: Transport, size: int) -> None:
    assert transport.rows("EXECUTE FUNCTION echo(?)", "x" * size) == [("x" * size,)]


@pytest.mark.parametrize("habit", ["negative"])
def test_any_other_negative_length_is_refused_and_no_byte_is_read(transport: Transport) -> None:
    with pytest.raises(ServerRefused, match="SQLGetData returned a negative length") as refused:
        transport.rows("SELECT long")
    assert refused.value.answer is not None
    assert refused.value.answer.native == -77


@pytest.mark.parametrize("habit", ["pad"])
def test_a_number_padded_with_blanks_is_the_number(transport: Transport) -> None:
    assert transport.rows("EXECUTE FUNCTION echo(?)", "17") == [("17".ljust(30),)]
    assert transport.call("EXECUTE FUNCTION total(?, ?)", -83_700, -13) == -83_713


@pytest.mark.parametrize("habit", ["nofinish"])
def test_a_driver_that_does_not_return_from_disconnecting_is_left_and_logged(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("informix_capture_client.transport.odbc.transport._CLOSE_SECONDS", 0.1)
    transport.close()
    assert [each.message for each in caplog.records] == [
        "event=connection_abandoned timeout_seconds=0.1"
    ]
    with pytest.raises(ConnectionLost, match="is closed"):
        transport.rows("SELECT nulls")


@pytest.mark.parametrize("habit", [""])
def test_a_connection_on_which_a_call_does_not_return_is_left_and_logged(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("informix_capture_client.transport.odbc.transport._CLOSE_SECONDS", 0.1)
    assert isinstance(transport, OdbcTransport)
    with transport.door:  # as a thread does whose read the driver does not end
        transport.close()
    (told,) = caplog.records
    assert told.message == "event=connection_abandoned timeout_seconds=0.1"
    transport.close()
    assert len(caplog.records) == 1


@pytest.mark.parametrize("habit", ["endless"])
def test_a_value_without_an_end_is_given_up(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("informix_capture_client.transport.odbc.api._MOST_VALUE_BYTES", 1 << 20)
    with pytest.raises(ProtocolViolation, match="17 pieces of a value"):
        transport.rows("SELECT nulls")


@pytest.mark.parametrize("habit", ["verbose"])
def test_a_diagnostic_of_32_kb_is_kept_in_full_and_shown_in_short(transport: Transport) -> None:
    with pytest.raises(ServerRefused, match="A syntax error has occurred") as refused:
        transport.rows("SELEC")
    assert len(str(refused.value)) < MOST_SAID
    assert "more characters) [42000] (-201)" in str(refused.value)
    ((sqlstate, native, text),) = refused.value.answer.diagnostics
    assert (sqlstate, native, len(text)) == ("42000", -201, 32_766)
