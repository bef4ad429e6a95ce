"""The life of a session, in the guide's order, and what each step leaves behind."""

from __future__ import annotations

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client import statements
from informix_capture_client.errors import ServerRefused
from informix_capture_client.records.records import (
    Begin,
    Commit,
    RecordKind,
    TableSchema,
    Timeout,
)
from informix_capture_client.session.session import CapturedTable, CaptureSession
from informix_capture_client.sql_names import TableName
from informix_capture_client.transport.odbc.library import is_driver_manager
from informix_cdc.proving.reading import Reader, SessionRow
from informix_cdc.proving.sql_text import ContractTable

COLUMNS = {"id": "integer", "note": "varchar(255,0)"}


@pytest.fixture
def table(server: CaptureServer) -> ContractTable:
    return server.create_table(COLUMNS)


def start(session: CaptureSession, table: ContractTable, columns: tuple[str, ...] = ()) -> None:
    session.log_full_rows(table.full_name)
    session.start_capture(CapturedTable(table.full_name, columns or table.column_names, 0))


def test_a_session_is_opened_captures_and_is_closed(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer:
        assert session.session_id > 0
        writer.insert(table, id="1", note="one")
        reader = Reader(session)
        reader.until_ended()
    (schema,) = reader.of(TableSchema)
    (row,) = reader.rows
    assert schema.table_id == 0
    assert reader.items.index(schema) < reader.items.index(row)
    begin = next(b for b in reader.of(Begin) if b.transaction_id == row.transaction_id)
    commit = next(c for c in reader.of(Commit) if c.transaction_id == row.transaction_id)
    assert begin.sequence_number < row.sequence_number < commit.sequence_number
    assert row.kind == RecordKind.INSERT


def test_only_the_columns_asked_for_come(server: CaptureServer, table: ContractTable) -> None:
    with server.open_session() as session, server.writer() as writer:
        start(session, table, ("note",))
        session.activate(0)
        writer.insert(table, id="1", note="one")
        reader = Reader(session)
        reader.until_ended()
    (schema,) = reader.of(TableSchema)
    assert (schema.fixed_columns, schema.variable_columns) == (0, 1)
    assert reader.rows[0].payload == b"\x03one"


def test_several_tables_carry_the_numbers_they_were_given(server: CaptureServer) -> None:
    tables = [server.create_table(COLUMNS) for _ in range(3)]
    with server.session(*tables) as session, server.writer() as writer:
        writer.begin()
        for number in (2, 0, 1):
            writer.insert(tables[number], id=str(number), note=None)
        writer.commit()
        reader = Reader(session)
        reader.until_ended()
    assert [row.table_id for row in reader.rows] == [2, 0, 1]
    assert [reader.decoded(tables[n], n)[0][0] for n in range(3)] == [0, 1, 2]


def test_a_table_that_is_not_captured_shows_no_rows(
    server: CaptureServer, table: ContractTable
) -> None:
    other = server.create_table(COLUMNS)
    with server.session(table) as session, server.writer() as writer:
        writer.insert(other, id="1", note="not asked for")
        writer.insert(table, id="2", note="asked for")
        reader = Reader(session)
        reader.until_ended()
        assert reader.decoded(table) == server.printed(table)


def test_a_deactivated_session_can_be_activated_again(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, id="1", note="seen")
        Reader(session).until_ended()
        session.deactivate()
        writer.insert(table, id="2", note="missed")
        session.activate(0)
        writer.insert(table, id="3", note="seen again")
        reader = Reader(session)
        reader.until_ended()
        assert reader.decoded(table) == server.printed(table)[2:]


def test_an_ended_capture_sends_no_more_rows(server: CaptureServer, table: ContractTable) -> None:
    other = server.create_table(COLUMNS)
    with server.session(table, other) as session, server.writer() as writer:
        with server.cdc_connection():  # a connection beside it disturbs nothing
            end = session._transport.call(
                statements.END_CAPTURE, session.session_id, 0, table.full_name
            )
        assert end == 0
        writer.insert(table, id="1", note="no more")
        writer.insert(other, id="2", note="still")
        reader = Reader(session)
        reader.until_ended()
    assert [row.table_id for row in reader.rows] == [1]


def test_a_closed_session_cannot_be_read(server: CaptureServer, table: ContractTable) -> None:
    with server.session(table) as session:
        assert session._transport.call(statements.CLOSE_SESSION, session.session_id) == 0
        with pytest.raises(ServerRefused):
            session.read()


def test_full_row_logging_stays_on_after_the_session(
    server: CaptureServer, table: ContractTable
) -> None:
    name = TableName(table.database, table.owner, table.name)
    with server.catalog() as catalog:
        assert not catalog.logs_full_rows(catalog.table(name))
        with server.session(table):
            pass
        assert catalog.logs_full_rows(catalog.table(name))


@pytest.mark.assumption(21)
def test_a_record_that_was_cut_can_be_read_from_its_beginning_again(
    server: CaptureServer, table: ContractTable
) -> None:
    """A read of 128 bytes cuts a row of 300: then its first bytes come a second time."""
    with (
        server.session(table, max_records=1, buffer_bytes=128) as session,
        server.writer() as writer,
    ):
        writer.insert(table, id="1", note="x" * 255)
        piece = b""
        while piece[12:16] != RecordKind.INSERT.to_bytes(4, "big"):
            piece = bytes(session.read())
        assert session.skip_to_record_boundary() == 1
        assert bytes(session.read()) == piece


def test_a_session_waits_for_nothing_and_says_so(server: CaptureServer, table: ContractTable) -> None:
    with server.session(table) as session:
        reader = Reader(session)
        reader.until_quiet(timeouts=2)
    assert not [item for item in reader.items if isinstance(item, SessionRow)]
    assert len(reader.of(Timeout)) == 2


def test_the_driver_is_loaded_without_a_driver_manager(server: CaptureServer) -> None:
    server.needs("driver")
    assert not is_driver_manager(server.driver)
    with server.cdc_connection() as transport:
        assert transport.rows(statements.SERVER_NAME)[0][0].strip() == server.name
