"""What the recorder tells of a connection."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from informix_capture_client import statements
from informix_capture_client.dialects import GBASE_8S
from informix_capture_client.errors import ConnectionLost, DriverAnswer, InformixCdcError, ServerRefused
from informix_capture_client.transport.base import Argument, ConnectionSettings, Row
from informix_capture_client.transport.recorder import RecordedEvent, RecordingTransport

SETTINGS = ConnectionSettings(
    host="db.example", port=9088, server="ol", database="stores", user="joe", password="s3cret"
)


class Inner:
    """Answers everything alike, or fails."""

    def __init__(self, failure: InformixCdcError | None = None) -> None:
        self.failure = failure
        self.closed = 0

    def _fail(self) -> None:
        if self.failure:
            raise self.failure

    def call(self, _statement: str, *_arguments: Argument) -> int:
        self._fail()
        return -83701

    def rows(self, _statement: str, *_arguments: Argument) -> list[Row]:
        self._fail()
        return [("größe", None, "")]

    def lo_read(self, _session_id: int, _max_bytes: int) -> memoryview:
        self._fail()
        return memoryview(b"\0\xff\1")

    def close(self) -> None:
        self.closed += 1


def recording(
    inner: Inner, settings: ConnectionSettings = SETTINGS
) -> tuple[RecordingTransport, list[RecordedEvent]]:
    events: list[RecordedEvent] = []
    return RecordingTransport(inner, settings, 7, events.append), events


def test_answers_are_passed_on_and_told() -> None:
    inner = Inner()
    transport, events = recording(inner)
    assert transport.call("EXECUTE FUNCTION f(?)", 39) == -83701
    assert transport.rows("SELECT x", "a") == [("größe", None, "")]
    assert bytes(transport.lo_read(39, 128)) == b"\0\xff\1"
    transport.close()
    transport.close()
    assert inner.closed == 2
    read = {"session": 39, "room": 128, "bytes": base64.b64encode(b"\0\xff\1").decode()}
    call = {"text": "EXECUTE FUNCTION f(?)", "arguments": ["39"], "rows": [["-83701"]]}
    query = {"text": "SELECT x", "arguments": ["a"], "rows": [["größe", None, ""]]}
    assert events == [
        {"connection": 7, "what": "open", "database": "stores"},
        {"connection": 7, "what": "statement", **call},
        {"connection": 7, "what": "statement", **query},
        {"connection": 7, "what": "read", **read},
        {"connection": 7, "what": "close"},
    ]


FAILURES = [
    (
        ServerRefused("no.", answer=DriverAnswer("42000", -201, (("42000", -201, "[x]Syntax"),))),
        {"code": "IFXCDC-0005", "sqlstate": "42000", "native": -201, "message": "[x]Syntax"},
    ),
    (
        ConnectionLost("The connection is closed."),
        {
            "code": "IFXCDC-0001",
            "sqlstate": "HY000",
            "native": 0,
            "message": "The connection is closed.",
        },
    ),
]


@pytest.mark.parametrize(("failure", "told"), FAILURES)
@pytest.mark.parametrize("way", ["call", "rows", "lo_read"])
def test_an_error_is_passed_on_and_told(
    failure: InformixCdcError, told: RecordedEvent, way: str
) -> None:
    transport, events = recording(Inner(failure))
    arguments = (39, 128) if way == "lo_read" else ("SELECT x",)
    with pytest.raises(type(failure)) as caught:
        getattr(transport, way)(*arguments)
    assert caught.value is failure
    assert events[-1]["error"] == told
    assert not {"rows", "bytes"} & set(events[-1])


def test_statements_are_told_in_the_words_that_the_server_was_sent() -> None:
    transport, events = recording(Inner(), replace(SETTINGS, dialect=GBASE_8S))
    transport.rows(statements.SERVER_NAME)
    assert events[-1]["text"] == "SELECT DBSERVERNAME FROM gbasedbt.systables t WHERE t.tabid = 1"


def test_who_connected_from_where_is_not_told() -> None:
    transport, events = recording(Inner())
    transport.rows("SELECT x")
    transport.close()
    assert not any(word in str(events) for word in ("s3cret", "joe", "db.example", "9088"))
