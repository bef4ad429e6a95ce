"""What a session shows of transactions: ends, savepoints, interleaving, TRUNCATE."""

from __future__ import annotations

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client.records.records import (
    Begin,
    Commit,
    Discard,
    RecordKind,
    Rollback,
)
from informix_cdc.proving.reading import Reader, SessionRow
from informix_cdc.proving.sql_text import ContractTable


@pytest.fixture
def table(server: CaptureServer) -> ContractTable:
    return server.create_table({"id": "integer", "note": "varchar(60,0)"})


def test_a_transaction_that_is_rolled_back_ends_with_rbtx(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer:
        writer.begin()
        writer.insert(table, id="1", note="never")
        writer.rollback()
        writer.insert(table, id="2", note="for ever")
        reader = Reader(session)
        reader.until_ended(transactions=2)
        kept = server.printed(table)
    void, real = reader.rows
    assert void.transaction_id in [end.transaction_id for end in reader.of(Rollback)]
    assert real.sequence_number > void.sequence_number
    assert reader.decoded(table)[1:] == kept


@pytest.mark.assumption(41)
def test_rows_after_a_savepoint_that_is_rolled_back_are_discarded_and_no_others(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer:
        writer.begin()
        writer.insert(table, id="1", note="before")
        writer.savepoint("here")
        writer.insert(table, id="2", note="void")
        writer.insert(table, id="3", note="void")
        writer.rollback_to("here")
        writer.insert(table, id="4", note="after")
        writer.commit()
        reader = Reader(session)
        reader.until_ended()
        assert _kept(reader, table) == server.printed(table)
    assert reader.of(Discard)


def test_an_outer_savepoint_takes_the_rows_of_an_inner_one_with_it(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer:
        writer.begin()
        writer.insert(table, id="1", note="kept")
        writer.savepoint("outer_one")
        writer.update(table, 1, note="void")
        writer.savepoint("inner_one")
        writer.delete(table, 1)
        writer.rollback_to("inner_one")
        writer.insert(table, id="5", note="void")
        writer.rollback_to("outer_one")
        writer.commit()
        reader = Reader(session)
        reader.until_ended()
        assert _kept(reader, table) == server.printed(table)


def _kept(reader: Reader, table: ContractTable) -> list[tuple[object, ...]]:
    """Return the rows that DISCARD records leave: those with a lower number, and later ones."""
    kept: list[SessionRow] = []
    for item in reader.items:
        if isinstance(item, SessionRow):
            kept.append(item)
        elif isinstance(item, Discard):
            first, number = item.sequence_number, item.transaction_id
            kept = [r for r in kept if r.transaction_id != number or r.sequence_number < first]
    return [row for record, row in reader.decoded_records(table) if record in kept]


def test_transactions_interleave_and_each_row_knows_its_own(
    server: CaptureServer, table: ContractTable
) -> None:
    with (
        server.session(table) as session,
        server.writer() as one,
        server.writer() as two,
    ):
        one.begin()
        two.begin()
        for number in range(1, 7):
            (one if number % 2 else two).insert(table, id=str(number), note=None)
        two.commit()
        one.commit()
        reader = Reader(session)
        reader.until_ended(transactions=2)
    by_transaction: dict[int, list[object]] = {}
    for row, values in zip(reader.rows, reader.decoded(table), strict=True):
        by_transaction.setdefault(row.transaction_id, []).append(values[0])
    assert sorted(by_transaction.values()) == [[1, 3, 5], [2, 4, 6]]
    ours = [end for end in reader.of(Commit) if end.transaction_id in by_transaction]
    assert [by_transaction[end.transaction_id] for end in ours] == [[2, 4, 6], [1, 3, 5]]
    assert ours[0].sequence_number < ours[1].sequence_number


def test_begintx_numbers_rise_and_so_do_commtx_numbers(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, server.writer() as writer:
        for number in range(5):
            writer.insert(table, id=str(number), note=None)
        reader = Reader(session)
        reader.until_ended(transactions=5)
    begins = [begin.sequence_number for begin in reader.of(Begin)]
    assert begins == sorted(set(begins))
    commits = [commit.sequence_number for commit in reader.of(Commit)]
    assert commits == sorted(set(commits))


def test_a_truncate_stands_in_a_transaction(server: CaptureServer, table: ContractTable) -> None:
    with server.session(table) as session, server.writer() as writer:
        writer.insert(table, id="1", note=None)
        writer.truncate(table)
        reader = Reader(session)
        reader.until_ended(transactions=2)
        assert server.printed(table) == []
    assert reader.kinds == [RecordKind.INSERT, RecordKind.TRUNCATE]
    truncate = reader.rows[1]
    assert any(c.transaction_id == truncate.transaction_id for c in reader.of(Commit))
