"""What a table that joins a stream asks of a server: full row logging meanwhile, who was open."""

from __future__ import annotations

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client.records.records import Begin
from informix_cdc.proving.reading import Reader
from informix_cdc.proving.sql_text import ContractTable


@pytest.fixture
def table(server: CaptureServer) -> ContractTable:
    return server.create_table({"id": "integer", "note": "varchar(30,0)"})


@pytest.mark.assumption(88)
def test_a_further_table_is_logged_in_full_while_a_session_captures_another(
    server: CaptureServer, table: ContractTable
) -> None:
    late = server.create_table(dict(table.columns))
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, id="1", note=None)
        with server.open_session() as other:
            other.log_full_rows(late.full_name)
        with server.catalog() as catalog:
            place = catalog.next_position()
        writer.begin()
        writer.insert(table, id="2", note=None)
        writer.insert(late, id="3", note="whole")
        writer.commit()
        reader = Reader(session)
        reader.until_ended(transactions=2)
        assert len(reader.rows) == 2  # the session is not disturbed, and has no row of the late table
        with server.session(table, late, position=place) as both:
            again = Reader(both)
            again.until_ended()
    assert {row.table_id for row in again.rows[-2:]} == {0, 1}


@pytest.mark.assumption(89)
def test_a_transaction_is_listed_as_open_by_the_id_of_its_records_until_it_has_ended(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer, server.catalog() as catalog:
        writer.begin()
        writer.insert(table, id="1", note=None)
        listed = catalog.open_transactions()
        writer.commit()
        after = catalog.open_transactions()
        reader = Reader(session)
        reader.until_ended()
    begun = {begin.transaction_id for begin in reader.of(Begin)}
    mine = begun & {row.transaction_id for row in reader.rows}
    assert mine
    assert mine <= listed
    assert not mine & after
