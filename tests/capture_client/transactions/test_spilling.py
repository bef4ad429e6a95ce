"""Open transactions whose rows have no room in memory: the same events, and bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from capture_client.transactions.histories import HISTORIES, History, Model
from capture_client.transactions.stores import FakeStore
from capture_client.transactions.test_transaction_histories import (
    CUTS,
    assert_agree,
    from_place,
    observe,
    positions_in,
    transactions_after,
)
from harness.capture.streams import (
    begin,
    blocks,
    commit,
    cut_at,
    discard,
    feed,
    feed_chunks,
    rollback,
    row,
    rows_of,
)
from harness.runs.examples import examples
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.positions import Position
from informix_capture_client.records.records import RecordKind
from informix_capture_client.shapes import change_columns as changes
from informix_capture_client.shapes.change_columns import lined_up
from informix_capture_client.transactions import pieces as rows
from informix_capture_client.transactions import short_transactions
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions
from informix_capture_client.transactions.pieces import SpilledRecords
from informix_capture_client.transactions.spilling import MemoryLimit

START = Position(0, 0)
LIMITS = st.sampled_from([0, 600, 2000])  # bytes: all of it spills, or some
PORTIONS = st.sampled_from([1, 100, 4 << 20])  # a row each, a few, all of them


def spilling(store: FakeStore, limit_bytes: int = 0, start: Position = START) -> TransactionAssembler:
    assembler = TransactionAssembler(start)
    assembler.limit_memory(MemoryLimit(limit_bytes, store))
    return assembler


@pytest.fixture(autouse=True)
def nothing_is_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every open transaction is looked at alone, as long ones are."""
    monkeypatch.setattr(short_transactions, "MOST_RECORDS", 0)


@examples(300, *HealthCheck)
@given(HISTORIES, st.lists(st.integers(0, 10_000), max_size=20), LIMITS, PORTIONS)
def test_what_is_put_aside_comes_back_as_the_model_says_however_the_bytes_come(
    entries: History, cuts: list[int], limit_bytes: int, portion_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "PORTION_BYTES", portion_bytes)
        assembler, model = spilling(FakeStore(), limit_bytes), Model(entries)
        assert_agree(observe(assembler, entries, cuts), model.observed())
        left_out = replace(assembler.counters, spilled_transactions=0, spilled_bytes=0)
        assert left_out == model.counters


@examples(300, *HealthCheck)
@given(HISTORIES, st.lists(st.integers(0, 10_000), max_size=20), LIMITS)
def test_after_every_chunk_memory_and_store_hold_what_the_account_says(
    entries: History, cuts: list[int], limit_bytes: int
) -> None:
    store = FakeStore()
    assembler = spilling(store, limit_bytes)
    stream = b"".join(entry.record() for entry in entries)
    for block in blocks(cut_at(stream, cuts)):
        deque(assembler.feed(block), maxlen=0)  # keeps no event, so no rows that have been handed on
        opened = list(assembler._long.values())
        pieces = [piece for open_ in opened for piece in open_.rows]
        in_memory = sum(piece.size_bytes for piece in pieces if not isinstance(piece, SpilledRecords))
        assert assembler.open_bytes[0] == in_memory <= limit_bytes
        assert assembler.open_bytes[1] == store.size_bytes


@examples(300, *HealthCheck)
@given(HISTORIES, CUTS)
def test_a_resume_that_spills_gets_exactly_the_rest(entries: History, cuts: list[int]) -> None:
    whole = observe(TransactionAssembler(START), entries, [])
    for position in positions_in(whole)[::2]:
        resumed = spilling(FakeStore(), start=position)
        rest = observe(resumed, from_place(entries, position.restart), cuts)
        assert transactions_after(rest, START) == transactions_after(whole, position)


def begun(sequence: int, transaction: int) -> bytes:
    return begin(sequence, transaction, 0, 0)


def ended(sequence: int, transaction: int) -> bytes:
    return commit(sequence, transaction, 0)


def test_a_savepoint_cuts_into_rows_that_are_on_the_disk() -> None:
    store = FakeStore()
    assembler = spilling(store)
    feed(assembler, begun(1, 1), *[row(number, payload=b"%d" % number) for number in range(2, 12)])
    assert store.keeps == 1
    assert not feed(assembler, discard(7, 1))
    (transaction,) = feed(assembler, row(20, payload=b"20"), ended(21, 1))
    assert isinstance(transaction, CommittedTransactions)
    assert [found[4] for found in rows_of(transaction)] == [b"2", b"3", b"4", b"5", b"6", b"20"]
    assert assembler.counters.discarded_rows == 5


def test_a_savepoint_reads_nothing_back_when_whole_portions_go() -> None:
    store = FakeStore()
    assembler = spilling(store)
    feed_chunks(assembler, [begun(1, 1), row(2), row(3), row(4), row(5)])
    assert store.keeps == 4
    feed_chunks(assembler, [discard(4, 1)])
    assert (len(store.held), store.loads) == (2, 0)
    feed_chunks(assembler, [ended(6, 1)])
    assert assembler.counters.discarded_rows == 2


def test_rows_on_the_disk_that_do_not_rise_cannot_be_undone() -> None:
    assembler = spilling(FakeStore())
    feed(assembler, begun(1, 1), row(5), row(4))
    with pytest.raises(ProtocolViolation, match="sequence numbers of transaction 1 fall"):
        feed(assembler, discard(4, 1))


@pytest.mark.parametrize("end", [rollback(9, 1), begun(9, 1), discard(2, 1)])
def test_what_never_happened_frees_its_room_at_once(end: bytes) -> None:
    store = FakeStore()
    assembler = spilling(store)
    feed(assembler, begun(1, 1), row(2), row(3))
    assert store.size_bytes == assembler.open_bytes[1] > 0
    feed(assembler, end)
    assert store.size_bytes == assembler.open_bytes[1] == assembler.open_bytes[0] == 0


def test_a_committed_transaction_holds_its_room_until_it_is_let_go_of() -> None:
    store = FakeStore()
    assembler = spilling(store)
    feed(assembler, begun(1, 1), row(2))
    events = feed(assembler, ended(3, 1))
    assert isinstance(events[0], CommittedTransactions)
    assert events[0].is_spilled
    assert assembler.open_bytes[1] == 0 < store.size_bytes
    del events
    assert store.size_bytes == 0


def test_what_was_put_aside_is_counted_once_per_transaction_and_byte_for_byte() -> None:
    store = FakeStore()
    assembler = spilling(store)
    feed_chunks(assembler, [begun(1, 1), row(2), row(3), begun(4, 2), row(5, 2), row(6, 1)])
    assert assembler.counters.spilled_transactions == 2
    assert assembler.counters.spilled_bytes == store.size_bytes


def test_the_largest_go_first_until_half_of_the_limit_is_free() -> None:
    store = FakeStore()
    limit_bytes = 64 << 10
    assembler = spilling(store, limit_bytes)
    feed(assembler, begun(1, 1), begun(2, 2), row(3, 1, bytes(1000)), row(4, 2, bytes(20_000)))
    assert store.keeps == 0
    feed(assembler, row(5, 2, bytes(30_000)), row(6, 1, bytes(12_000)))
    assert [kept.size_bytes > 50_000 for kept in store.held] == [True]
    assert 13_000 < assembler.open_bytes[0] < limit_bytes // 2


def thousands(count: int, turns: int) -> Iterator[bytes]:
    """Yield chunks of as many transactions side by side, a row of each at a time."""
    yield b"".join(begun(number, number) for number in range(1, count + 1))
    sequence = count
    for _ in range(turns):
        chunk = []
        for transaction in range(1, count + 1):
            sequence += 1
            chunk.append(row(sequence, transaction, bytes(transaction % 200)))
        yield b"".join(chunk)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_thousands_of_open_transactions_stay_below_the_limit() -> None:
    store, limit_bytes, count, turns = FakeStore(), 2 << 20, 3000, 8
    assembler = spilling(store, limit_bytes)
    for block in blocks(thousands(count, turns)):
        assert not list(assembler.feed(block))
        assert assembler.open_bytes[0] <= limit_bytes
        assert assembler.open_bytes[1] == store.size_bytes
    assert assembler.open_count == count
    assert assembler.counters.spilled_transactions > count // 2
    ends = b"".join(ended(10**6 + number, number) for number in range(1, count + 1))
    delivered = feed(assembler, ends)
    assert [found.record_count for found in delivered] == [turns] * count  # type: ignore[union-attr]
    assert [found[1] for found in rows_of(delivered[6])] == [  # type: ignore[arg-type]
        count * (turn + 1) + 7 for turn in range(turns)
    ]
    assert assembler.open_bytes[0] == assembler.open_bytes[1] == 0


def test_records_keep_everything_when_they_come_back() -> None:
    store = FakeStore()
    records = [
        row(2, 1, b"abc", RecordKind.UPDBEF, 3, [1, 2]),
        row(3, 1, b"", RecordKind.UPDAFT, 3),
        row(4, 1, bytes(300), RecordKind.DELETE, 0),
    ]
    kept = feed(TransactionAssembler(START), begun(1, 1), *records, ended(5, 1))
    assembler = spilling(store)
    feed(assembler, begun(1, 1), *records)
    put_aside = feed(assembler, ended(5, 1))
    (there,), (back,) = lined_up(kept), lined_up(put_aside)  # type: ignore[arg-type]
    for name in changes._COLUMNS[1:]:  # where a record starts is its block's affair
        assert getattr(there, name).tolist() == getattr(back, name).tolist()
    assert rows_of(kept[0]) == rows_of(put_aside[0])  # type: ignore[arg-type]


def test_the_halves_of_an_update_stay_together_over_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "BATCH_ROWS", 4)
    monkeypatch.setattr(rows, "PORTION_BYTES", 1)
    pairs = [
        row(number, kind=kind)
        for number, kind in enumerate([RecordKind.UPDBEF, RecordKind.UPDAFT] * 9, start=3)
    ]
    assembler = spilling(FakeStore())
    feed(assembler, begun(1, 1), row(2), *pairs)
    batches = list(lined_up(feed(assembler, ended(99, 1))))  # type: ignore[arg-type]
    assert max(map(len, batches)) <= 4
    assert all(batch.kinds[-1] != RecordKind.UPDBEF for batch in batches)
    assert [n for batch in batches for n in batch.ordinals.tolist()] == list(range(19))
    assert [n for batch in batches for n in batch.sequence_numbers.tolist()] == list(range(2, 21))


def test_wide_rows_make_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "BATCH_BYTES", 1 << 20)
    wide = [row(number, payload=bytes(30_000)) for number in range(2, 202)]
    found = feed(TransactionAssembler(START), begun(1, 1), *wide, ended(999, 1))
    batches = list(lined_up(found))  # type: ignore[arg-type]
    assert sum(map(len, batches)) == 200
    assert max(map(len, batches)) <= (1 << 20) // 30_000


def test_portions_are_read_when_their_turn_comes_and_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "BATCH_ROWS", 2)
    store = FakeStore()
    assembler = spilling(store)
    feed_chunks(assembler, [begun(1, 1), *[row(number) for number in range(2, 22)]])
    batches = lined_up(feed(assembler, ended(99, 1)))  # type: ignore[arg-type]
    next(batches)
    assert store.loads <= 3
    assert sum(map(len, batches)) == 18
    assert store.loads == 20
