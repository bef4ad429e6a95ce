"""How a session is read: buffer sizes, `max_recs`, TIMEOUT, positions to start from, log switches."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client.errors import BadOption
from informix_capture_client.records.records import (
    Begin,
    Commit,
    TableSchema,
    Timeout,
)
from informix_cdc.proving.reading import Item, Reader, SessionRow
from informix_cdc.proving.sql_text import ContractTable

BUFFER_BYTES = (128, 4_096, 65_536, 1_048_576)
ROWS = 60


@pytest.fixture
def table(server: CaptureServer) -> ContractTable:
    return server.create_table({"id": "integer", "note": "varchar(255,0)"})


def filled(server: CaptureServer, table: ContractTable, rows: int = ROWS) -> Begin:
    """Fill a table in one transaction; return its BEGINTX."""
    with server.session(table) as session, server.writer() as writer:
        values = [{"id": str(n), "note": f"größer {n} " + "x" * (n * 3)} for n in range(1, rows + 1)]
        writer.insert_all(table, values)
        reader = Reader(session)
        reader.until_ended()
    number = reader.rows[0].transaction_id
    return next(begin for begin in reader.of(Begin) if begin.transaction_id == number)


def log_records(reader: Reader) -> list[bytes]:
    """Return the bytes of what stands in the log, up to the end of the transaction with rows.

    A session's own records may fall anywhere, and a large buffer may hold what comes later.
    """
    number, items = reader.rows[0].transaction_id, reader.items
    ends = [n for n, i in enumerate(items) if isinstance(i, Commit) and i.transaction_id == number]
    pairs = zip(items[: ends[0] + 1], reader.raw, strict=False)
    return [raw for item, raw in pairs if not isinstance(item, TableSchema | Timeout)]


def test_the_same_bytes_come_through_buffers_of_all_sizes(
    server: CaptureServer, table: ContractTable
) -> None:
    begin = filled(server, table)
    found = []
    for size in BUFFER_BYTES:
        opened = server.session(table, position=begin.sequence_number, buffer_bytes=size)
        with opened as session:
            reader = Reader(session)
            reader.until_ended()
            found.append(log_records(reader))
    assert all(records == found[0] for records in found)
    assert sum("größer".encode() in record for record in found[0]) == ROWS


@pytest.mark.parametrize("max_records", [1, 7, 256])
def test_a_read_returns_no_more_records_than_were_asked_for(
    server: CaptureServer, table: ContractTable, max_records: int
) -> None:
    begin = filled(server, table)
    opened = server.session(table, position=begin.sequence_number, max_records=max_records)
    with opened as session:
        reader = Reader(session)
        counts = []
        while not reader.ended:
            counts.append(len(reader.read()))
    assert max(counts) <= max_records
    assert len(reader.rows) == ROWS


@pytest.mark.assumption(9)
@pytest.mark.parametrize(("max_records", "is_taken"), [(1, True), (256, True), (257, False)])
def test_the_ceiling_of_max_recs(server: CaptureServer, max_records: int, is_taken: bool) -> None:
    if is_taken:
        with server.open_session(max_records=max_records):
            return
    with pytest.raises(BadOption), server.open_session(max_records=max_records):
        pass


@pytest.mark.assumption(3)
def test_activation_includes_the_position_itself(server: CaptureServer, table: ContractTable) -> None:
    begin = filled(server, table, rows=3)
    with server.session(table, position=begin.sequence_number) as session:
        reader = Reader(session)
        reader.until_ended()
    assert reader.of(Begin)[0] == begin
    assert reader.decoded(table) == server.printed(table)


def _from(items: Sequence[Item], number: int) -> list[Item]:
    """Return what a session that begins at a number must show: no TABSCHEMA and no TIMEOUT."""
    log = [item for item in items if isinstance(item, SessionRow | Begin | Commit)]
    return [item for item in log if item.sequence_number >= number]


def test_every_position_that_a_session_has_shown_can_be_begun_at(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer:
        for number in range(3):
            writer.insert(table, id=str(number), note="x")
        reader = Reader(session)
        reader.until_ended(transactions=3)
    shown = _from(reader.items, 0)
    for number in {item.sequence_number for item in shown if isinstance(item, Begin)}:
        with server.session(table, position=number) as session:
            again = Reader(session)
            again.until(lambda items: shown[-1] in items)
        found = _from(again.items, number)
        assert found[: len(_from(shown, number))] == _from(shown, number)


def test_a_stream_goes_on_over_a_log_switch(server: CaptureServer, table: ContractTable) -> None:
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, id="1", note="in one log")
        server.switch_log()
        writer.insert(table, id="2", note="in the next")
        reader = Reader(session)
        reader.until_ended(transactions=2)
        assert reader.decoded(table) == server.printed(table)
    logs = [row.sequence_number >> 32 for row in reader.rows]
    assert logs[1] > logs[0]


def test_a_transaction_may_span_a_log_switch(server: CaptureServer, table: ContractTable) -> None:
    with server.session(table) as session, server.writer() as writer:
        writer.begin()
        writer.insert(table, id="1", note="in one log")
        server.switch_log()
        writer.insert(table, id="2", note="in the next")
        writer.commit()
        reader = Reader(session)
        reader.until_ended()
        assert reader.decoded(table) == server.printed(table)
    begin = next(b for b in reader.of(Begin) if b.transaction_id == reader.rows[0].transaction_id)
    with server.session(table, position=begin.sequence_number) as session:
        again = Reader(session)
        again.until_ended()
    assert again.rows == reader.rows


def test_a_quiet_session_times_out_and_then_reads_on(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer:
        reader = Reader(session)
        reader.until_quiet(timeouts=3)
        writer.insert(table, id="1", note="late")
        reader.until_ended()
        assert reader.decoded(table) == server.printed(table)
    numbers = [timeout.sequence_number for timeout in reader.of(Timeout)]
    assert numbers == sorted(numbers)
