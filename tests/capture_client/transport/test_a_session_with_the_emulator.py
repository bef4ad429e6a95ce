"""A whole capture session against the emulator: the same bytes by every transport."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from capture_client.transport.conftest import Connect
from informix_capture_client import statements
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.transport.base import ConnectionSettings, Transport
from informix_capture_client.transport.odbc.transport import OdbcTransport
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_emulator import EmulatedServer, ListeningServer

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
        database="stores",
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
    with closing(SqliTransport(replace(settings, driver=""))) as reference:
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
        (
            {"user": "guest", "database": "syscdcv1"},
            "syscdcv1 on informix cannot be opened by user guest",
        ),
        ({"server": "other"}, "is not named other"),
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


def test_functions_that_do_not_name_their_database_are_out_of_reach_from_another(
    transport: Transport,
) -> None:
    with pytest.raises(AccessRefused, match=r"syscdcv1\.sql"):
        transport.call("EXECUTE FUNCTION informix.cdc_closesess(?)", 1)


def test_a_user_without_a_right_on_the_cdc_database_is_told_so_wherever_it_is_connected(
    connect: Connect,
) -> None:
    guest = connect(user="guest")
    with pytest.raises(
        AccessRefused, match="may not access a database that a statement names"
    ) as refused:
        guest.rows(statements.ERROR_CODES)
    assert "GRANT DBA TO guest" in refused.value.remedy
    with pytest.raises(AccessRefused, match="cdc_closesess"):
        guest.call(statements.CLOSE_SESSION, 1)


@pytest.mark.parametrize(
    ("changes", "is_admitted"),
    [
        ({"db_locale": "en_US.utf8"}, True),
        ({"db_locale": "de_DE.57372"}, True),
        ({"db_locale": "en_US.819"}, False),
        ({"db_locale": ""}, False),
        ({"database": "sysmaster", "db_locale": "en_US.819"}, True),
        ({"database": "sysmaster", "db_locale": "en_US.utf8"}, False),
    ],
)
def test_a_connection_of_another_code_set_is_refused_with_what_can_be_done(
    connect: Connect, changes: dict[str, str], is_admitted: bool
) -> None:
    if is_admitted:
        connect(**changes)
        return
    with pytest.raises(BadOption, match=f"DB_LOCALE={changes['db_locale']}") as refused:
        connect(**changes)
    assert refused.value.answer is not None
    assert refused.value.answer.native == -23197
    assert f"dbs_dbsname = '{changes.get('database', 'stores')}'" in refused.value.remedy
    assert "dbLocale" in refused.value.remedy


@pytest.mark.parametrize(("extra", "answer"), [("", 0), ("DELIMIDENT=n", -83707)])
def test_quoted_names_are_captured_unless_the_users_own_keywords_forbid_it(
    connect: Connect, informix: EmulatedServer, kind: str, extra: str, answer: int
) -> None:
    if kind == "sqli":  # keywords are a driver's
        answer = 0
    informix.create_table("stores:informix.t", '"Ship Date" date', full_row_logging=True)
    transport = connect(extra=extra)
    session = transport.call(statements.OPEN_SESSION, "informix", 0, 1, 64, 1, 1)
    asked = (session, 0, "stores:informix.t", '"Ship Date"', 1)
    assert transport.call(statements.START_CAPTURE, *asked) == answer


def test_the_text_of_an_error_is_asked_for_by_executing_the_function(transport: Transport) -> None:
    asked = ("CDC_E_TABCAPTURED", "en_us.819")
    assert "captures this table" in str(transport.rows(statements.ERROR_TEXT, *asked))
    with pytest.raises(ServerRefused, match="-201"):
        transport.rows("SELECT syscdcv1:informix.cdc_errortext(?, ?) FROM informix.systables", *asked)


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


def test_text_is_converted_between_the_database_s_code_set_and_ours(
    connect: Connect, informix: EmulatedServer
) -> None:
    informix.create_database("latin", logged=True, locale="en_US.819")
    transport = connect(database="latin", db_locale="en_US.819")
    transport.rows("CREATE TABLE words (word varchar(20))")
    transport.rows("INSERT INTO words VALUES (?)", "größer")
    transport.rows("INSERT INTO words VALUES ('naïve')")
    assert transport.rows("SELECT word FROM words") == [("größer",), ("naïve",)]
    with pytest.raises((BadOption, ServerRefused), match=r"U\+6F22|-23103"):
        transport.rows("INSERT INTO words VALUES (?)", "漢")
    assert transport.rows("SELECT COUNT(*) FROM words") == [("2",)]


def test_a_database_locale_that_nobody_knows_is_refused(connect: Connect) -> None:
    with pytest.raises(BadOption, match=r"en_us\.ebcdic"):
        connect(db_locale="en_us.ebcdic")


@pytest.mark.parametrize("kind", ["narrow"], indirect=True)
def test_a_read_that_is_cancelled_ends_and_the_connection_goes_on(
    transport: Transport, driver: str
) -> None:
    assert isinstance(transport, OdbcTransport)
    session = _open(transport)
    _activate(transport, session)
    reads = transport._bind_reads(session, 4_096)
    waiting = [each._statement.pointer for each in reads._reads]
    cancel = ctypes.CDLL(driver).SQLCancel
    cancel.argtypes = [ctypes.c_void_p]
    timer = threading.Timer(0.3, cancel, waiting[:1])
    timer.start()
    with pytest.raises(ServerRefused) as cancelled:
        [transport.lo_read(session, 4_096) for _ in range(5)]  # the first ones may find something
    timer.join()
    assert cancelled.value.answer is not None
    assert (cancelled.value.answer.sqlstate, cancelled.value.answer.native) == ("HY008", -213)
    assert transport.rows(statements.SERVER_NAME) == [("informix",)]
