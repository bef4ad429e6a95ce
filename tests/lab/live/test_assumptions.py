"""What docs/assumptions.md assumes of a live server where `informix-cdc prove` tries less, or nothing.

Rule: on the emulator these are rehearsed, which proves that they run; only a live run is evidence. A
failure there names the assumption that it speaks against. More of them stand in tests/session_contract.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from queue import SimpleQueue

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client import statements
from informix_capture_client.catalog import Catalog
from informix_capture_client.catalog.log_space import read_log_space
from informix_capture_client.dialects import DIALECTS
from informix_capture_client.errors import (
    AccessRefused,
    ConnectionLost,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.locales import codec_of
from informix_capture_client.object_readers import READ, object_reader, read_whole, try_open
from informix_capture_client.records.records import RecordKind, ServerError
from informix_capture_client.session.open_sessions import read_open_sessions
from informix_capture_client.session.session import CapturedTable
from informix_capture_client.sql_names import TableName
from informix_capture_client.statements import SYSTEM_DATABASE
from informix_capture_client.transport.base import Transport
from informix_cdc.proving.reading import Reader
from informix_cdc.proving.sql_text import ContractTable
from informix_cdc.server.server_facts import read_cdc_facts

COLUMNS = {"id": "integer", "b": "varchar(20,0)"}
SLOW_READ_SECONDS = 1.0
CLOCKS_APART_SECONDS = 5
ROUNDS, PATIENCE_SECONDS = 20, 10.0
MOST_BYTES = 1 << 24


@pytest.fixture
def table(server: CaptureServer) -> ContractTable:
    return server.create_table(COLUMNS)


@pytest.fixture
def other(server: CaptureServer) -> Iterator[Transport]:
    with closing(server.connect(server.database)) as transport:
        yield transport


@pytest.mark.assumption(8)
def test_the_row_logging_flag_is_seen_on_every_fragment(server: CaptureServer) -> None:
    server.needs("fragments")
    places = "PARTITION p1 IN rootdbs, PARTITION p2 IN rootdbs"
    table = server.create_table(COLUMNS, fragments=f"FRAGMENT BY ROUND ROBIN {places}")
    name = TableName(table.database, table.owner, table.name)
    with server.catalog() as catalog:
        assert not catalog.logs_full_rows(catalog.table(name))
        with server.session(table):
            assert catalog.logs_full_rows(catalog.table(name))


@pytest.mark.assumption(115)
def test_a_serial_counter_is_at_the_last_number_or_the_next(server: CaptureServer) -> None:
    table = server.create_table({"id": "serial", "b": "varchar(20)"})
    name = TableName(table.database, table.owner, table.name)
    with server.writer() as writer:
        writer.insert(table, id="41", b="a")
        writer.insert(table, id="7", b="b")
    with server.catalog() as catalog:
        (found,) = catalog.serials([catalog.table(name)])
    assert found.serial in (41, 42)


@pytest.mark.slow
@pytest.mark.assumption(13)
def test_the_receive_timeout_counts_seconds(server: CaptureServer, table: ContractTable) -> None:
    """A session that waits for ever is given up after the driver's timeout, not at once."""
    with server.cdc_connection(receive_timeout_seconds=SLOW_READ_SECONDS) as transport:
        session = transport.call(statements.OPEN_SESSION, server.name, 0, -1, 64, 1, 1)
        assert transport.call(statements.SET_FULL_ROW_LOGGING, table.full_name, 1) == 0
        arguments = (session, 0, table.full_name, "id", 1)
        assert transport.call(statements.START_CAPTURE, *arguments) == 0
        assert transport.call(statements.ACTIVATE_SESSION, session, 0) == 0
        assert _silence_before_giving_up(transport, session) >= 0.9 * SLOW_READ_SECONDS


def _silence_before_giving_up(transport: Transport, session: int) -> float:
    """Read what there is, TABSCHEMA and foreign transactions; return how long the last read took."""
    while True:
        begun = time.monotonic()
        try:
            transport.lo_read(session, 65_536)
        except ConnectionLost:
            return time.monotonic() - begun


@pytest.mark.assumption(19, 36)
@pytest.mark.parametrize("grant", ["CONNECT", "DBA"])
def test_a_user_with_a_grant_on_syscdcv1_captures(
    server: CaptureServer, table: ContractTable, grant: str
) -> None:
    server.needs("users")
    assert server.add_user
    login = (f"reader_{grant.lower()}", "reader-of-t1")
    server.add_user(*login)
    server.run(f"GRANT CONNECT TO {login[0]}", f"GRANT SELECT ON {table.name} TO {login[0]}")
    server.run(f"GRANT {grant} TO {login[0]}", database=statements.CDC_DATABASE)
    with (
        server.session(table),  # the owner has switched full row logging on
        server.cdc_connection(login=login) as asking,
        server.open_session(login=login) as session,
        server.writer() as writer,
    ):
        facts = read_cdc_facts(asking, login[0], DIALECTS[server.dialect])
        assert facts.runs_routines is True
        session.start_capture(CapturedTable(table.full_name, table.column_names, 0))
        session.activate(0)
        writer.insert(table, id="20", b="twenty")
        reader = Reader(session)
        reader.until_ended()
    assert len(reader.rows) == 1


@pytest.mark.assumption(43)
def test_another_user_sees_no_sessions_until_that_is_granted(
    server: CaptureServer, table: ContractTable
) -> None:
    server.needs("users")
    assert server.add_user
    login = ("reader_sessions", "reader-of-s1")
    server.add_user(*login)
    server.run(f"GRANT CONNECT TO {login[0]}")
    server.run(f"GRANT CONNECT TO {login[0]}", database=statements.CDC_DATABASE)
    dialect = DIALECTS[server.dialect]
    with server.session(table), server.cdc_connection(login=login) as asking:
        with pytest.raises(AccessRefused) as refused:
            read_open_sessions(asking, dialect)
        assert refused.value.answer is not None
        assert refused.value.answer.native == -272
        for name in ("syscdcsess", "syscdctabs"):  # as the remedy has it
            grant = f"GRANT SELECT ON {name} TO {login[0]}"
            server.run(grant, database=statements.CDC_DATABASE)
        assert len(read_open_sessions(asking, dialect)) == 1


@pytest.mark.assumption(20)
def test_a_procedure_with_its_own_transaction_runs_over_odbc(
    server: CaptureServer, table: ContractTable
) -> None:
    server.needs("procedures")
    rows = " ".join(f"INSERT INTO {table.name} (id) VALUES ({key});" for key in (1, 2))
    name = f"two_rows_{table.name}"
    server.run(f"CREATE PROCEDURE {name}() BEGIN WORK; {rows} COMMIT WORK; END PROCEDURE")
    with server.session(table) as session:
        server.run(f"EXECUTE PROCEDURE {name}()", f"EXECUTE PROCEDURE {name}()")
        reader = Reader(session)
        reader.until_ended(transactions=2)
    assert len(reader.rows) == 4


@pytest.mark.assumption(23)
@pytest.mark.only_in_all
def test_a_session_whose_log_is_overwritten_is_told(
    server: CaptureServer, table: ContractTable
) -> None:
    """It may not go on as if the rows it did not read had never been."""
    server.needs("overwritten logs")
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, id="1", b="overwritten")
        if not server.overwrite_logs():
            pytest.skip("the server keeps its logs: LTAPEDEV is not /dev/null")
        writer.insert(table, id="2", b="still there")
        reader = Reader(session)
        try:
            reader.until(lambda _: bool(reader.of(ServerError) or reader.rows))
        except ServerRefused:
            return
    assert reader.of(ServerError) or reader.rows[0].payload.endswith(b"overwritten")


@pytest.mark.assumption(34)
def test_a_log_that_was_filled_says_when(server: CaptureServer) -> None:
    with server.catalog() as catalog, closing(server.connect(SYSTEM_DATABASE)) as sysmaster:
        current = read_log_space(sysmaster).current
        before = catalog.clock()
        server.switch_log()
        after = catalog.clock()
        (full,) = [file for file in read_log_space(sysmaster).files if file.number == current.number]
    assert full.filled_at is not None
    assert before - CLOCKS_APART_SECONDS <= full.filled_at <= after + CLOCKS_APART_SECONDS
    assert 0 < full.used_bytes <= full.size_bytes


@pytest.mark.assumption(38)
@pytest.mark.parametrize("locale", ["en_US.8859-1", "en_US.utf8"])
def test_databases_of_two_code_sets_are_captured_whichever_syscdcv1_has(
    server: CaptureServer, locale: str
) -> None:
    """Over connections to the databases themselves; one is not of the code set of syscdcv1."""
    server.needs_captures_of_any_code_set()
    assert server.sibling
    captured = server if codec_of(locale) == server.codec else server.sibling(locale)
    table = captured.create_table({"id": "integer", "a": "char(9)", "b": "varchar(20,0)"})
    with captured.session(table) as session, captured.writer() as writer:
        writer.insert(table, id="1", a="zwölf", b="größer")
        reader = Reader(session, captured.codec)
        reader.until_ended()
        assert reader.decoded(table) == captured.printed(table)
    text = "größer".encode(captured.codec)
    assert reader.rows[0].payload.endswith(bytes([len(text)]) + text)
    captured.drop_tables()


@pytest.mark.assumption(48)
def test_a_password_with_a_semicolon_or_a_brace_reaches_the_server_in_braces(
    server: CaptureServer,
) -> None:
    if server.add_user is None:
        pytest.skip("users can be made in a container only")
    for number, password in enumerate(("a;b", "a}b;c", "{a", "a=b c", "plain}")):
        login = (f"ifxpw{number}", password)
        server.add_user(*login)
        with closing(server.connect(SYSTEM_DATABASE, login=login)) as transport:
            assert Catalog(transport, SYSTEM_DATABASE).server_name()


@pytest.mark.assumption(106)
def test_whoever_may_connect_opens_an_object_whose_table_he_may_not_read(server: CaptureServer) -> None:
    server.needs("users")
    table = server.create_table({"id": "integer", "content": "blob"})
    with server.session(table) as session:
        rows = Reader(session)
        server.run(f"INSERT INTO {table.name} VALUES (1, FILETOBLOB('/etc/passwd', 'server'))")
        rows.until_ended()
    (row,) = [each for each in rows.rows if each.kind == RecordKind.INSERT]
    locator = row.payload[8 : 8 + 72]  # behind an INTEGER and the indicator
    server.run(f"REVOKE ALL ON {table.name} FROM PUBLIC")
    login = ("ifxcdc_reader", "a-Passw0rd")
    server.add_user(*login)
    server.run(f"GRANT CONNECT TO {login[0]}")
    try:
        with closing(server.connect(server.database, login=login)) as stranger:
            reader = object_reader(stranger)
            opened = try_open(reader, locator, MOST_BYTES)
            assert read_whole(reader, opened, MOST_BYTES, lambda: False).status == READ
    finally:
        with suppress(InformixCdcError):
            server.run(f"REVOKE CONNECT FROM {login[0]}")


@pytest.mark.assumption(97)
@pytest.mark.only_in_all
def test_a_transaction_that_is_not_listed_any_more_holds_no_lock(
    server: CaptureServer, table: ContractTable, other: Transport
) -> None:
    other.rows(f"INSERT INTO {table.name} VALUES (1, 'x')")
    # No round begins before the end of the last was seen: locks seen twice are of one transaction.
    ended: SimpleQueue[int] = SimpleQueue()
    seen: SimpleQueue[int] = SimpleQueue()

    def write() -> None:
        with closing(server.connect(server.database)) as writer:
            for number in range(ROUNDS):
                writer.rows("BEGIN WORK")
                writer.rows(f"UPDATE {table.name} SET b = '{number}'")
                writer.rows("COMMIT WORK")
                ended.put(number)
                if seen.get() != number:
                    return

    locks = f"SELECT owner FROM sysmaster:syslocks WHERE tabname = '{table.name}' AND type = 'X'"
    worker = threading.Thread(target=write)
    worker.start()
    try:
        while worker.is_alive():
            held = other.rows(locks)
            listed = other.rows(statements.OPEN_TRANSACTIONS)
            has_ended = not ended.empty()
            still_held = other.rows(locks)
            assert listed or not (held and still_held)
            if has_ended and not still_held:
                seen.put(ended.get())
    finally:
        seen.put(ROUNDS)  # enough
        worker.join(PATIENCE_SECONDS)
    assert other.rows(locks) == []
