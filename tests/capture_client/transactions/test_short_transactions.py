"""Many transactions side by side: their records wait in one table, and none of them is an object."""

from __future__ import annotations

from collections import deque

import pytest

from capture_client.transactions.assembling import b, c, delivered, resumed
from capture_client.transactions.stores import FakeStore
from harness.capture.streams import begin, blocks, discard, feed, feed_chunks, rollback, row
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.shapes.change_columns import lined_up
from informix_capture_client.transactions import short_transactions
from informix_capture_client.transactions.events import CommittedTransactions, StreamEvent
from informix_capture_client.transactions.short_transactions import MOST_RECORDS
from informix_capture_client.transactions.spilling import MemoryLimit

OTHER_WITH_ITS_SLOT = 1 + (1 << 16)


def sequence_numbers(events: list[StreamEvent]) -> list[list[int]]:
    return [rows for rows in delivered(events) if rows]


def test_a_thousand_open_transactions_become_no_objects_and_are_delivered_whole() -> None:
    assembler, count = resumed(), 1000
    feed(assembler, *(b(n, n) for n in range(1, count + 1)))
    for turn in range(1, 11):
        feed(assembler, *(row(turn * 10_000 + n, n) for n in range(1, count + 1)))
    assert (len(assembler._long), assembler.open_count) == (0, count)
    assert assembler.lowest_open() == 1
    events = feed(assembler, *(c(200_000 + n, n) for n in range(1, count + 1)))
    rows = [[turn * 10_000 + n for turn in range(1, 11)] for n in range(1, count + 1)]
    assert sequence_numbers(events) == rows
    assert (assembler.open_count, assembler.open_bytes) == (0, (0, 0))


@pytest.mark.slow
def test_a_long_transaction_is_an_object_with_pieces_of_many_rows() -> None:
    assembler = resumed()
    feed(assembler, b(1))
    for n in range(2, 1002):
        feed(assembler, row(n))
    pieces = [len(piece) for piece in assembler._long[1].rows]
    assert len(pieces) <= 1000 // MOST_RECORDS + 1
    assert sequence_numbers(feed(assembler, c(2000))) == [list(range(2, 1002))]


def test_a_savepoint_undoes_rows_of_object_and_tail_alike() -> None:
    assembler = resumed()
    feed(assembler, b(1), *(row(n) for n in range(2, 80)))
    assert 1 in assembler._long
    feed(assembler, row(80))
    feed(assembler, row(81))
    feed(assembler, discard(70, 1))
    assert sequence_numbers(feed(assembler, row(90), c(99))) == [[*range(2, 70), 90]]
    assert assembler.counters.discarded_rows == 12


def test_a_tail_that_is_rolled_back_leaves_nothing() -> None:
    assembler = resumed()
    feed(assembler, b(1), *(row(n) for n in range(2, 80)))
    feed(assembler, row(80))
    feed(assembler, rollback(90, 1))
    assert (assembler.open_count, assembler.open_bytes) == (0, (0, 0))


def test_two_transactions_whose_ids_share_a_slot_are_told_apart() -> None:
    assembler = resumed()
    feed_chunks(assembler, [b(1, 1), b(2, OTHER_WITH_ITS_SLOT), row(3, 1), row(4, OTHER_WITH_ITS_SLOT)])
    assert assembler.open_transactions == {1: 1, OTHER_WITH_ITS_SLOT: 2}
    events = feed(assembler, c(5, OTHER_WITH_ITS_SLOT), c(6, 1))
    assert sequence_numbers(events) == [[4], [3]]


def test_of_two_that_share_a_slot_in_one_read_none_is_lost() -> None:
    assembler = resumed()
    feed(assembler, b(1, 1), b(2, OTHER_WITH_ITS_SLOT), row(3, 1), row(4, OTHER_WITH_ITS_SLOT))
    assert assembler.open_transactions == {1: 1, OTHER_WITH_ITS_SLOT: 2}
    assert sequence_numbers(feed(assembler, c(5, 1), c(6, OTHER_WITH_ITS_SLOT))) == [[3], [4]]


def test_a_low_record_is_refused_when_it_comes_though_another_has_the_slot_of_its_id() -> None:
    assembler = resumed()
    feed(assembler, b(2, OTHER_WITH_ITS_SLOT), b(10, 1), *(row(n, 1) for n in range(11, 91)))
    assert assembler.open_transactions == {1: 10, OTHER_WITH_ITS_SLOT: 2}
    with pytest.raises(ProtocolViolation, match="BEGINTX"):
        feed(assembler, row(9, 1))


@pytest.mark.parametrize("rows", [1, 80], ids=["carried whole", "a tail"])
def test_a_record_below_its_begintx_is_refused_when_it_comes_and_what_ended_before_it_is_not(
    rows: int,
) -> None:
    assembler, got = resumed(), list[StreamEvent]()
    feed(assembler, b(10), *(row(n) for n in range(11, 11 + rows)))
    feed(assembler, row(200), b(201, 2), row(202, 2))
    (block,) = blocks([c(203, 2) + row(9)])
    with pytest.raises(ProtocolViolation, match="BEGINTX"):
        got.extend(assembler.feed(block))
    assert sequence_numbers(got) == [[202]]


def test_the_first_record_of_a_tail_is_refused_if_it_lies_below_the_begintx_of_its_object() -> None:
    assembler = resumed()
    feed(assembler, b(10), *(row(n) for n in range(11, 91)))
    assert 1 in assembler._long
    with pytest.raises(ProtocolViolation, match="BEGINTX"):
        feed(assembler, row(9))


def test_an_object_with_a_tail_is_one_open_transaction_that_began_where_it_began() -> None:
    assembler = resumed()
    feed(assembler, begin(10, 1, 700, 501), *(row(n) for n in range(11, 91)))
    feed(assembler, begin(91, 2, 800, 502), row(92, 2))
    feed(assembler, row(93))
    assert assembler.open_count == 2
    assert assembler.open_transactions == {1: 10, 2: 91}
    assert (assembler.lowest_open(), assembler.lowest_open_time()) == (10, 700)
    feed(assembler, c(94, 1))
    assert (assembler.lowest_open(), assembler.lowest_open_time()) == (91, 800)


def test_open_bytes_are_those_of_objects_and_of_what_is_carried() -> None:
    assembler = resumed()
    feed(assembler, b(1), *(row(n, 1, bytes(100)) for n in range(2, 102)))
    of_object, _ = assembler.open_bytes
    assert of_object > 100 * 100
    feed(assembler, b(200, 2), row(201, 2, bytes(1000)))
    carried, _ = assembler.open_bytes
    assert of_object + 1000 < carried < of_object + 2000
    feed(assembler, c(300, 1))
    assert 1000 < assembler.open_bytes[0] < 2000


@pytest.mark.slow
def test_what_has_ended_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_transactions, "LEAST_SWEPT_BYTES", 10_000)
    assembler = resumed()
    feed(assembler, b(1, 1), row(2, 1))
    for n in range(10, 20_000, 10):
        feed_chunks(assembler, [b(n, 2) + row(n + 1, 2), row(n + 2, 2, bytes(100)), c(n + 3, 2)])
        assert assembler._short.size_bytes < 20_000
    assert sequence_numbers(feed(assembler, c(30_000, 1))) == [[2]]


@pytest.mark.slow
def test_what_is_carried_takes_an_eighth_of_the_limit_beside_it_and_the_largest_leave_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(short_transactions, "LEAST_SWEPT_BYTES", 0)
    assembler, block_bytes = resumed(), 0
    assembler.limit_memory(MemoryLimit(800_000, FakeStore()))
    large = 7
    feed(assembler, *(b(n, n) for n in range(1, 500)))
    for turn in range(1, 30):
        rows = [row(turn * 1000 + n, n, bytes(2000 if n == large else 10)) for n in range(1, 500)]
        for block in blocks([b"".join(rows[:250]), b"".join(rows[250:])]):
            deque(assembler.feed(block), maxlen=0)
            block_bytes = max(block_bytes, block.raw.size_bytes + 104 * len(block))
            assert assembler._short._open_bytes <= 100_000 // 2 + block_bytes
            assert assembler._short.size_bytes <= 2 * (100_000 + block_bytes)
        if turn == 2:
            assert large in assembler._long
    events = feed(assembler, *(c(90_000 + n, n) for n in range(1, 500)))
    wanted = [[turn * 1000 + n for turn in range(1, 30)] for n in range(1, 500)]
    assert sequence_numbers(events) == wanted
    assert all(isinstance(event, CommittedTransactions) for event in events)


def test_rows_of_blocks_that_others_fill_are_lined_up_without_the_others() -> None:
    assembler = resumed()
    several = [number for number in range(1, 40)]
    for turn in (100, 200):
        feed(assembler, *(b(turn + n - 100, n) for n in several if turn == 100))
        rows = [row(turn * 100 + 40 * k + n, n, b"%d" % n) for k in range(70) for n in several]
        feed(assembler, *rows)
    events = feed(assembler, c(90_000, 7), c(90_001, 9))
    found = [event for event in events if isinstance(event, CommittedTransactions)]
    (changes,) = lined_up(found)
    assert len(changes.data) < 2 * 280 * (len(row(1, 1, b"7")))
    wanted = [turn * 100 + 40 * k + n for n in (7, 9) for turn in (100, 200) for k in range(70)]
    assert changes.sequence_numbers.tolist() == wanted
    ends = changes.starts + changes.header_sizes + changes.payload_sizes
    assert [changes.data[end - 1 : end] for end in ends.tolist()] == [b"7"] * 140 + [b"9"] * 140


def test_who_loses_its_id_within_a_read_is_not_carried() -> None:
    assembler = resumed()
    feed(assembler, b(1), row(2), b(3), row(4))
    assert assembler.open_transactions == {1: 3}
    assert assembler.counters.abandoned_transactions == 1
    assert sequence_numbers(feed(assembler, c(5))) == [[4]]
