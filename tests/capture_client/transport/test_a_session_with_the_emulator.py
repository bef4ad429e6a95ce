"""A whole capture session against the emulator: the same bytes by every transport."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from capture_client.transport.conftest import Connect
from informix_capture_client import statements
from informix_capture_client.emulator import EmulatedServer, ListeningServer
from informix_capture_client.errors import (
    AccessRefused,
    ConnectionLost,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.transport.base import ConnectionSettings, Transport
from informix_capture_client.transport.emulator import EmulatorTransport

TABLE = "stores:informix.orders"
ROWS = 300
READ_TIMEOUT_SECONDS = 1


@pytest.fixture
def informix() -> EmulatedServer:
    server = EmulatedServer(name="informix", users={"informix": "in4mix", "guest": "in4mix"})
    server.create_database("stores", logged=True, locale="en_US.utf8")
    server.create_table(TABLE, "order_num serial, note varchar(60,0)")
    return server


@pytest.fixture
def listening(informix: EmulatedServer) -> Iterator[ListeningServer]:
    with ListeningServer(informix, host="127.0.0.1", port=0) as listening:
        yield listening


@pytest.fixture
def settings(listening: ListeningServer, driver: str) -> ConnectionSettings:
    return ConnectionSettings(
        host="127.0.0.1",
        port=listening.port,
        server="informix",
        database="syscdcv1",
        user="informix",
        password="in4mix",
        driver=driver,
        db_locale="en_US.utf8",
        connect_timeout_seconds=3,
    )


def _open(transport: Transport) -> int:
    session = transport.call(statements.OPEN_SESSION, "informix", 0, READ_TIMEOUT_SECONDS, 64, 1, 1)
    assert session > 0
    assert transport.call(statements.SET_FULL_ROW_LOGGING, TABLE, 1) == 0
    assert transport.call(statements.START_CAPTURE, session, 0, TABLE, "order_num, note", 1) == 0
    return session


def _activate(transport: Transport, session: int) -> None:
    assert transport.call(statements.ACTIVATE_SESSION, session, 0) == 0


def _change(informix: EmulatedServer) -> None:
    with informix.transaction() as transaction:
        for number in range(1, ROWS + 1):
            transaction.insert(TABLE, {"order_num": number, "note": f"größer {number}"})


def _read_to_the_commit(transport: Transport, session: int, size: int) -> bytes:
    """Read until the last record is a COMMTX: number 2, and 36 bytes long (guide, chapter 3)."""
    read = b""
    while read[-36:][12:16] != (2).to_bytes(4, "big"):
        read += transport.lo_read(session, size)
    return read


@pytest.mark.parametrize("size", [128, 4_096, 1_048_576])
def test_every_transport_reads_the_same_bytes(
    connect: Connect, informix: EmulatedServer, settings: ConnectionSettings, size: int
) -> None:
    transport = connect()
    with closing(EmulatorTransport(replace(settings, driver=""))) as reference:
        sessions = [(each, _open(each)) for each in (transport, reference)]
        for each, session in sessions:
            _activate(each, session)
        _change(informix)
        ours, expected = (_read_to_the_commit(each, session, size) for each, session in sessions)
    assert ours == expected
    assert expected.count("größer".encode()) == ROWS


def test_the_server_answers_catalog_queries(transport: Transport) -> None:
    assert transport.rows(statements.SERVER_NAME) == [("informix",)]
    names = {row[1] for row in transport.rows(statements.RECORD_TYPES)}
    assert any(name and name.startswith("CDC_REC_INSERT") for name in names)
    assert transport.rows(statements.DATABASE_LOGGING, "nowhere") == []


def test_an_error_code_of_a_function_is_a_value_and_no_exception(transport: Transport) -> None:
    assert transport.call(statements.ACTIVATE_SESSION, 4_711, 0) < 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"password": "wrong"}, "refused user informix"),
        ({"user": "guest"}, "Database syscdcv1 on informix cannot be opened by user guest"),
        ({"server": "other"}, "is not called other"),
        ({"database": "nowhere"}, "Database nowhere on informix cannot be opened"),
    ],
    ids=["password", "privilege", "server", "database"],
)
def test_a_wrong_setting_is_named(connect: Connect, changes: dict[str, str], words: str) -> None:
    with pytest.raises(AccessRefused, match=words):
        connect(**changes)


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELEC 1", ServerRefused),
        ("SELECT a FROM informix.nowhere", ServerRefused),
    ],
)
def test_bad_sql_is_refused(
    transport: Transport, statement: str, error: type[InformixCdcError]
) -> None:
    with pytest.raises(error):
        transport.rows(statement)


def test_functions_are_out_of_reach_from_another_database(connect: Connect) -> None:
    with pytest.raises(AccessRefused, match=r"syscdcv1\.sql"):
        connect(database="stores").call(statements.CLOSE_SESSION, 1)


def test_an_unknown_session_descriptor_is_refused(transport: Transport) -> None:
    with pytest.raises(ServerRefused):
        transport.lo_read(4_711, 128)


def test_a_disconnect_during_a_read_is_a_lost_connection(
    transport: Transport, listening: ListeningServer
) -> None:
    session = _open(transport)
    _activate(transport, session)
    killer = threading.Timer(0.3, listening.disconnect_all)
    killer.start()
    with pytest.raises(ConnectionLost):
        _read_to_the_commit(transport, session, 4_096)
    killer.join()
