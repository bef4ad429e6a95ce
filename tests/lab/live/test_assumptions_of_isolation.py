"""What docs/assumptions.md assumes of reading tables while others write them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client.errors import InformixCdcError, ServerRefused
from informix_capture_client.transport.base import Transport
from informix_cdc.proving.sql_text import ContractTable
from informix_cdc.server import is_locked

LAST_COMMITTED = "SET ISOLATION TO COMMITTED READ LAST COMMITTED"
COLUMNS = {"id": "integer", "v": "integer"}


@pytest.fixture
def reader(server: CaptureServer) -> Iterator[Transport]:
    with closing(server.connect(server.database)) as transport:
        transport.rows(LAST_COMMITTED)
        transport.rows("SET LOCK MODE TO WAIT 1")
        yield transport


@pytest.fixture
def writer(server: CaptureServer) -> Iterator[Transport]:
    with closing(server.connect(server.database)) as transport:
        yield transport


def filled(server: CaptureServer, writer: Transport, lock_mode: str) -> ContractTable:
    """Make a table of the rows 1 to 4 with a unique index."""
    table = server.create_table(COLUMNS, f"LOCK MODE {lock_mode}")
    writer.rows(f"CREATE UNIQUE INDEX i_{table.name} ON {table.name} (id)")
    for number in range(1, 5):
        writer.rows(f"INSERT INTO {table.name} VALUES ({number}, 0)")
    return table


def by_key(table: ContractTable) -> str:
    return f"SELECT {{+ AVOID_FULL({table.name})}} id, v FROM {table.name} WHERE id > 0 ORDER BY id"


@pytest.mark.assumption(82)
def test_last_committed_shows_rows_through_an_index_as_they_were_committed(
    server: CaptureServer, reader: Transport, writer: Transport
) -> None:
    table = filled(server, writer, "ROW")
    writer.rows("BEGIN WORK")
    writer.rows(f"UPDATE {table.name} SET v = 1 WHERE id = 1")
    writer.rows(f"DELETE FROM {table.name} WHERE id = 2")
    writer.rows(f"UPDATE {table.name} SET id = 9 WHERE id = 3")
    writer.rows(f"INSERT INTO {table.name} VALUES (5, 0)")
    assert reader.rows(by_key(table)) == [("1", "0"), ("2", "0"), ("3", "0"), ("4", "0")]
    writer.rows("COMMIT WORK")
    assert reader.rows(by_key(table)) == [("1", "1"), ("4", "0"), ("5", "0"), ("9", "0")]


@pytest.mark.assumption(82)
def test_who_reads_last_committed_locks_no_row(
    server: CaptureServer, reader: Transport, writer: Transport
) -> None:
    table = filled(server, writer, "ROW")
    reader.rows("BEGIN WORK")
    assert len(reader.rows(by_key(table))) == 4
    writer.rows(f"UPDATE {table.name} SET v = 1")  # NOT WAIT: a lock would refuse it
    reader.rows("COMMIT WORK")


@pytest.mark.assumption(83)
def test_where_pages_are_locked_last_committed_waits_and_is_refused(
    server: CaptureServer, reader: Transport, writer: Transport
) -> None:
    table = filled(server, writer, "PAGE")
    writer.rows("BEGIN WORK")
    writer.rows(f"UPDATE {table.name} SET v = 1 WHERE id = 1")
    with pytest.raises(InformixCdcError, match=r"-24[345]\b"):
        reader.rows(by_key(table))
    writer.rows("COMMIT WORK")
    assert len(reader.rows(by_key(table))) == 4


@pytest.mark.assumption(84)
def test_the_session_that_holds_a_lock_is_found(
    server: CaptureServer, reader: Transport, writer: Transport
) -> None:
    table = filled(server, writer, "ROW")
    ((number,),) = writer.rows("SELECT DBINFO('sessionid') FROM systables WHERE tabid = 1")
    writer.rows("BEGIN WORK")
    writer.rows(f"UPDATE {table.name} SET v = 1 WHERE id = 1")
    locks = f"SELECT owner FROM sysmaster:syslocks WHERE tabname = '{table.name}' AND type = 'X'"
    assert set(reader.rows(locks)) == {(number,)}
    holders = (
        "SELECT s.sid FROM sysmaster:systrans t, sysmaster:sysrstcb s"
        " WHERE t.tx_owner = s.address AND t.tx_logbeg > 0"
    )
    assert (number,) in reader.rows(holders)
    writer.rows("COMMIT WORK")
    assert (number,) not in reader.rows(holders)
    assert reader.rows(locks) == []


@pytest.mark.slow
@pytest.mark.assumption(108)
@pytest.mark.parametrize("change", ["UPDATE {} SET v = 1 WHERE id = 1", "INSERT INTO {} VALUES (7, 0)"])
def test_who_reads_committed_rows_alone_is_refused_a_row_that_is_being_changed(
    server: CaptureServer, reader: Transport, writer: Transport, change: str
) -> None:
    table = filled(server, writer, "ROW")
    reader.rows("SET ENVIRONMENT USELASTCOMMITTED 'NONE'")
    reader.rows("SET ISOLATION TO COMMITTED READ")
    writer.rows("BEGIN WORK")
    writer.rows(change.format(table.name))
    changed, other = (
        f"SELECT v FROM {table.name} WHERE id = {n}" for n in (1 if "SET" in change else 7, 2)
    )
    with pytest.raises(ServerRefused) as met:
        reader.rows(changed)
    assert is_locked(met.value)
    assert reader.rows(other) == [("0",)]
    reader.rows(LAST_COMMITTED)
    assert reader.rows(changed) == ([("0",)] if "SET" in change else [])
    writer.rows("ROLLBACK WORK")


@pytest.mark.slow
@pytest.mark.assumption(98)
def test_a_locked_table_is_refused_by_a_number_of_locks_and_can_be_read_later(
    server: CaptureServer, reader: Transport, writer: Transport
) -> None:
    table = filled(server, writer, "ROW")
    writer.rows("BEGIN WORK")
    writer.rows(f"LOCK TABLE {table.name} IN EXCLUSIVE MODE")
    with pytest.raises(ServerRefused) as met:
        reader.rows(by_key(table))
    assert is_locked(met.value)
    writer.rows("COMMIT WORK")
    assert len(reader.rows(by_key(table))) == 4
    writer.rows("BEGIN WORK")
    writer.rows(f"UPDATE {table.name} SET v = 1 WHERE id = 1")
    reader.rows("BEGIN WORK")
    with pytest.raises(ServerRefused) as met:
        reader.rows(f"LOCK TABLE {table.name} IN SHARE MODE")
    assert is_locked(met.value)
    writer.rows("COMMIT WORK")
    reader.rows(f"LOCK TABLE {table.name} IN SHARE MODE")
    reader.rows("COMMIT WORK")


@pytest.mark.assumption(99)
def test_a_select_of_no_rows_reads_and_locks_nothing(
    server: CaptureServer, reader: Transport, writer: Transport
) -> None:
    """Whoever waits for no row of the table has met none: all of them are locked, page by page."""
    table = filled(server, writer, "PAGE")
    writer.rows("BEGIN WORK")
    writer.rows(f"UPDATE {table.name} SET v = 1")
    assert reader.rows(f"SELECT id, v FROM {table.name} WHERE 1 = 0") == []
    locks = f"SELECT owner FROM sysmaster:syslocks WHERE tabname = '{table.name}'"
    ((own,),) = reader.rows("SELECT DBINFO('sessionid') FROM systables WHERE tabid = 1")
    assert (own,) not in reader.rows(locks)
    writer.rows("COMMIT WORK")
