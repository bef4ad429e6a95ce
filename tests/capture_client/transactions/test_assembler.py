from __future__ import annotations

import pytest

from capture_client.transactions.assembling import (
    b,
    c,
    delivered,
    positions,
    resumed,
)
from harness.capture.streams import (
    blocks,
    discard,
    error,
    feed,
    feed_chunks,
    one_by_one,
    rollback,
    row,
    rows_of,
    table_schema,
    timeout,
    truncate,
)
from informix_capture_client.errors import DataLoss, Gap, ProtocolViolation
from informix_capture_client.positions import DeliveredCommit, LogEnd, Position
from informix_capture_client.records.records import RecordKind, ServerError, TableSchema
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.counters import AssemblyCounters
from informix_capture_client.transactions.events import CommittedTransactions, PositionPassed

# whole transactions, in commit order


def test_interleaved_transactions_come_whole_and_in_commit_order() -> None:
    events = feed(
        resumed(), b(1, 1), row(2, 1), b(3, 2), row(4, 2), row(5, 1), row(6, 2), c(7, 2), c(8, 1)
    )
    assert delivered(events) == [[4, 6], [2, 5]]


def test_a_transaction_without_its_commit_is_not_delivered() -> None:
    assert feed(resumed(), b(1), row(2)) == []


def test_a_rolled_back_transaction_is_not_delivered_and_is_counted() -> None:
    assembler = resumed()
    assert delivered(feed(assembler, b(1), row(2), rollback(3, 1), b(4), row(5), c(6))) == [[5]]
    assert assembler.counters.rolled_back_transactions == 1


def test_descriptions_and_errors_are_handed_on_in_their_place() -> None:
    events = feed(
        resumed(), table_schema(0, (4, 1, 0), b"a integer\0"), b(1), error(1, -5), row(2), c(3)
    )
    assert [type(event) for event in events] == [TableSchema, ServerError, CommittedTransactions]


def test_a_truncate_has_its_place_among_the_rows() -> None:
    (event,) = feed(resumed(), b(1), row(2), truncate(3, 1, 0), row(4), c(5))
    assert isinstance(event, CommittedTransactions)
    assert [r[:2] for r in rows_of(event)] == [
        (RecordKind.INSERT, 2),
        (RecordKind.TRUNCATE, 3),
        (RecordKind.INSERT, 4),
    ]


def test_a_begin_on_an_id_with_buffered_rows_drops_and_counts_them() -> None:
    assembler = resumed()
    assert delivered(feed(assembler, b(1), row(2), b(3), row(4), c(5))) == [[4]]
    assert assembler.counters.abandoned_transactions == 1


# DISCARD

SAVEPOINTS = [
    ("the last row", [2, 3, 4], 4, [5], [2, 3, 5]),
    ("the last two rows", [2, 3, 4], 3, [5], [2, 5]),
    ("all rows", [2, 3, 4], 2, [], []),
    ("all rows, by a number below the first", [2, 3, 4], 1, [5], [5]),
    ("nothing, by a number above the last", [2, 3, 4], 5, [6], [2, 3, 4, 6]),
    ("from between two rows", [2, 4, 8], 5, [9], [2, 4, 9]),
    ("rows that share a number", [2, 3, 3, 4], 3, [5], [2, 5]),
    ("never later rows, even with numbers used before", [2, 3, 4], 3, [3, 4], [2, 3, 4]),
]


@pytest.mark.parametrize("size", [1, 36, 100, 10_000], ids="chunks of {}".format)
@pytest.mark.parametrize(
    ("before", "number", "after", "left"), [s[1:] for s in SAVEPOINTS], ids=[s[0] for s in SAVEPOINTS]
)
def test_a_discard_undoes(
    before: list[int], number: int, after: list[int], left: list[int], size: int
) -> None:
    stream = b"".join(
        [b(1), *(row(n, 1) for n in before), discard(number, 1), *(row(n, 1) for n in after), c(99)]
    )
    assembler = resumed()
    events = feed_chunks(assembler, (stream[at : at + size] for at in range(0, len(stream), size)))
    assert delivered(events) == ([left] if left else [])
    assert assembler.counters.discarded_rows == len(before) + len(after) - len(left)


def test_a_discard_does_not_touch_another_transaction() -> None:
    events = feed(resumed(), b(1, 1), b(2, 2), row(3, 1), row(4, 2), discard(3, 1), c(5, 1), c(6, 2))
    assert delivered(events) == [[4]]


@pytest.mark.parametrize("chunked", [False, True], ids=["in one run", "across blocks"])
def test_a_discard_among_falling_numbers_is_refused(chunked: bool) -> None:
    records = [b(1), row(3, 1), row(2, 1), discard(3, 1)]
    with pytest.raises(ProtocolViolation, match=r"transaction 1 fall near 0:0x"):
        feed_chunks(resumed(), records if chunked else [b"".join(records)])


def test_what_ended_before_a_discard_among_falling_numbers_is_delivered_first() -> None:
    whole = [b(12, 2), row(13, 2), c(14, 2)]
    records = [b(5), row(11), *whole, row(9), discard(8, 1), c(20)]
    (block,) = blocks([b"".join(records)])
    found = resumed().feed(block)
    assert delivered(list(one_by_one([next(found)]))) == [[13]]
    with pytest.raises(ProtocolViolation, match="fall"):
        next(found)


def test_falling_numbers_after_a_discard_are_refused_by_the_next() -> None:
    records = [b(1), row(5, 1), row(6, 1), discard(6, 1), row(4, 1), discard(4, 1)]
    with pytest.raises(ProtocolViolation, match="fall"):
        feed_chunks(resumed(), records)


def test_what_a_session_reads_that_one_before_it_has_read_is_counted_once() -> None:
    """A session begins at the restart position again, which an open transaction holds back."""
    undone = [row(3, 2), discard(3, 2), row(4, 2), rollback(5, 2)]
    read_again = [b(1, 1), b(2, 2), *undone, b(6, 3), c(7, 3), b(8, 4), b(9, 4)]
    counters = AssemblyCounters()
    for _ in range(3):
        assembler = resumed()
        counters.begin_session()
        assembler.counters = counters
        feed(assembler, *read_again)
    once = AssemblyCounters(
        empty_transactions=1, rolled_back_transactions=1, discarded_rows=1, abandoned_transactions=1
    )
    assert counters == once
    feed(assembler, discard(10, 1), row(11, 1), discard(11, 1), c(12, 1), b(13, 2), rollback(14, 2))
    assert (counters.discarded_rows, counters.rolled_back_transactions) == (2, 2)


def test_another_stream_is_counted_although_its_numbers_are_lower() -> None:
    counters = AssemblyCounters()
    for number in (100, 10):
        counters.begin_stream()
        counters.begin_session()
        assembler = resumed()
        assembler.counters = counters
        feed(assembler, b(number), rollback(number + 1, 1))
    assert counters.rolled_back_transactions == 2


@pytest.mark.slow
def test_many_savepoints_in_a_long_transaction_take_linear_time() -> None:
    body = b"".join(row(n, 1) + row(n, 2) + discard(n, 2) for n in range(10, 20_010))
    assembler = resumed()
    events = feed(assembler, b(1), b(2, 2), body, c(90_000), c(90_001, 2))
    assert [len(rows) for rows in delivered(events)] == [20_000]
    assert assembler.counters.discarded_rows == 20_000


# positions


def test_a_commit_with_nothing_open_restarts_at_itself() -> None:
    assert positions(feed(resumed(), b(1), row(2), c(3))) == [Position(3, 3)]


def test_a_commit_restarts_at_the_lowest_begin_then_open() -> None:
    events = feed(resumed(), b(1, 1), b(2, 2), b(3, 3), row(4, 3), c(5, 3), rollback(6, 1), timeout(6))
    assert positions(events) == [Position(5, 1), Position(5, 2), Position(5, 2)]


def test_the_commit_moves_with_every_commit_passed_also_one_without_rows() -> None:
    assert positions(feed(resumed(), b(1), c(2))) == [Position(2, 2)]


def test_a_rollback_and_a_timeout_move_only_the_restart() -> None:
    events = feed(resumed(5, 5), b(6), rollback(7, 1), timeout(9))
    assert positions(events) == [Position(5, 7), Position(5, 9)]
    assert [e.is_timeout for e in events if isinstance(e, PositionPassed)] == [False, True]


def test_a_restart_never_moves_back() -> None:
    events = feed(resumed(10, 10), timeout(0), timeout(11), b(12), rollback(13, 1), timeout(4))
    assert [p.restart for p in positions(events)] == [10, 11, 13, 13]


def test_an_abandoned_transaction_does_not_hold_the_restart_back() -> None:
    assert positions(feed(resumed(), b(1), row(2), b(3), timeout(4))) == [Position(0, 3)]


# after a resume

RESUMED = [
    ("a row", row(11, 7)),
    ("a DISCARD", discard(9, 7)),
    ("a TRUNCATE", truncate(11, 7, 0)),
    ("its COMMTX", b""),
]


@pytest.mark.parametrize("sign", [r[1] for r in RESUMED], ids=[r[0] for r in RESUMED])
def test_a_headless_commit_at_or_below_the_last_delivered_is_silent(sign: bytes) -> None:
    assert delivered(feed(resumed(20, 10), sign, c(19, 7), b(21), row(22), c(23))) == [[22]]
    assert delivered(feed(resumed(20, 10), sign, c(20, 7))) == []


@pytest.mark.parametrize("sign", [r[1] for r in RESUMED], ids=[r[0] for r in RESUMED])
def test_a_headless_commit_above_the_last_delivered_is_loss(sign: bytes) -> None:
    with pytest.raises(DataLoss, match=r"transaction 7 committed at 0:0x15.* before 0:0xa") as loss:
        feed(resumed(20, 10), sign, c(21, 7))
    assert loss.value.facts == {"transaction_id": 7, "sequence_number": 21}
    assert "start a new stream" in loss.value.remedy


@pytest.mark.parametrize("sign", [r[1] for r in RESUMED], ids=[r[0] for r in RESUMED])
def test_a_headless_transaction_that_rolls_back_is_silent(sign: bytes) -> None:
    assert delivered(feed(resumed(20, 10), sign, rollback(25, 7))) == []


@pytest.mark.parametrize("sign", [r[1] for r in RESUMED], ids=[r[0] for r in RESUMED])
def test_a_begin_on_the_id_of_a_headless_transaction_begins_anew(sign: bytes) -> None:
    assert delivered(feed(resumed(20, 10), sign, b(22, 7), row(23, 7), c(24, 7))) == [[23]]


def test_transactions_delivered_before_are_dropped() -> None:
    assembler = resumed(20, 10)
    events = feed(assembler, b(10), row(11), c(20), b(21, 2), row(22, 2), c(23, 2))
    assert delivered(events) == [[22]]
    assert positions(events) == [Position(23, 23)]
    assert assembler.counters.transactions == 1
    assert assembler.counters.empty_transactions == 0


def test_a_start_in_the_past_leaves_out_what_was_open_there() -> None:
    assembler = TransactionAssembler(Position(10, 10, unseen=(7, 8)))
    events = feed(assembler, row(11, 7), timeout(11), c(12, 7), c(13, 8), b(14), row(15), c(16))
    assert delivered(events) == [[15]]
    assert positions(events)[0].unseen == (7, 8)
    assert positions(events)[-1].unseen == ()
    assert assembler.counters.unseen_transactions == 2


def witnessed(restart: int = 8) -> TransactionAssembler:
    return TransactionAssembler(Position(10, restart, (), DeliveredCommit(8, 10, 5)))


def test_nothing_moves_before_the_last_delivered_transaction_has_come_by() -> None:
    assembler = witnessed()
    assert positions(feed(assembler, timeout(50))) == [Position(10, 8)]
    assert assembler.awaited_commit == DeliveredCommit(8, 10, 5)
    events = feed(assembler, b(8), row(9), c(10, time=5), timeout(50))
    assert positions(events)[-1] == Position(10, 50)
    assert assembler.awaited_commit is None


@pytest.mark.parametrize(("number", "time"), [(10, 6), (11, 5)])
def test_another_transaction_in_its_place_is_another_log(number: int, time: int) -> None:
    with pytest.raises(DataLoss, match="was restored, or lost the end of its log") as caught:
        feed(witnessed(), b(8), row(9), c(number, time=time))
    assert caught.value.gap is Gap.OTHER_LOG


def test_a_session_that_begins_behind_its_last_transaction_does_not_ask_for_it() -> None:
    position = Position(10, 9, (), DeliveredCommit(8, 10, 5))
    assert TransactionAssembler(position).awaited_commit is None
    assert TransactionAssembler(position, begins_at=8).awaited_commit == DeliveredCommit(8, 10, 5)


def test_no_end_moves_a_position_before_the_last_delivered_transaction_has_come_by() -> None:
    events = feed(witnessed(), b(5, 3), c(6, 3), b(7, 3), rollback(7, 3))
    assert events == []


# a first start


def first_start(*unseen: int, clock: int = 0) -> TransactionAssembler:
    return TransactionAssembler(None, unseen=frozenset(unseen), log_end=LogEnd(0, clock))


def test_no_pair_lies_below_the_floor_whatever_a_timeout_says() -> None:
    assembler = TransactionAssembler(None, floor=4096)
    assert feed(assembler, timeout(0)) == [PositionPassed(Position(4096, 4096), is_timeout=False)]


def test_a_timeout_before_anything_was_read_of_the_page_before_the_end_is_no_anchor() -> None:
    """The server stands still for a moment: what that page holds would pass for new."""
    assembler = TransactionAssembler(None, floor=4096, log_end=LogEnd(12288, 1 << 31))
    assert feed(assembler, timeout(4096), timeout(0)) == []
    assert positions(feed(assembler, b(4100), c(4110), timeout(4110))) == [Position(4110, 4110)]
    patient = TransactionAssembler(None, floor=4096, log_end=LogEnd(12288, 0))
    patient.stop_waiting_for_unseen()
    assert positions(feed(patient, timeout(4096))) == [Position(4096, 4096)]


def test_the_anchor_is_the_first_timeout() -> None:
    assembler = first_start(clock=5000)
    assert feed(assembler, b(1), row(2), c(3), rollback(4, 9)) == []
    assert assembler.start_offset is None
    assert feed(assembler, timeout(4)) == [PositionPassed(Position(4, 4), is_timeout=False)]
    assert assembler.start_offset == Position(4, 4)


def test_the_anchor_is_the_first_commit_after_the_servers_clock() -> None:
    assembler = first_start(clock=2000)
    assert feed(assembler, b(1), row(2), c(3, time=2000)) == []
    assert feed(assembler, b(4), row(5), c(6, time=2001)) == [PositionPassed(Position(6, 6), False)]


def test_the_anchor_is_the_first_commit_beyond_the_logs_end_whatever_its_time() -> None:
    assembler = TransactionAssembler(None, log_end=LogEnd(8, 2000))
    assert feed(assembler, b(1), row(2), c(3, time=1)) == []
    assert feed(assembler, b(6), row(7), c(8, time=1)) == [PositionPassed(Position(8, 8), False)]


def test_a_begin_that_is_shown_late_is_of_the_older_transaction_although_others_have_begun() -> None:
    assembler = TransactionAssembler(None, unseen=frozenset({7}), log_end=LogEnd(10, 1 << 31))
    assert feed(assembler, b(20, 3), row(21, 3), c(22, 3)) == []
    assert feed(assembler, b(23, 4), c(24, 4), b(5, 7), row(25, 7), b(26, 4), c(27, 4)) == []
    assert assembler.unseen_ids == {7}
    events = feed(assembler, row(28, 7), c(29, 7), b(30, 7), row(31, 7), c(32, 7))
    assert positions(events) == [Position(29, 29), Position(32, 32)]
    assert delivered(events) == [[31]]


@pytest.mark.parametrize("is_resumed", [False, True], ids=["first session", "resumed"])
def test_a_headless_commit_where_the_stream_begins_is_older_and_one_behind_is_loss(
    is_resumed: bool,
) -> None:
    start = Position(2, 2) if is_resumed else None
    assembler = TransactionAssembler(start, log_end=LogEnd(6, 0))
    feed(assembler, timeout(2))
    assert delivered(feed(assembler, row(3, 7), c(4, 7), b(7), row(8), c(9))) == [[8]]
    assert assembler.counters.unseen_transactions == 1
    with pytest.raises(DataLoss, match="it began before"):
        feed(assembler, row(10, 7), c(11, 7))


def test_a_transaction_open_over_the_anchor_is_delivered_if_it_began_after_the_start() -> None:
    events = feed(first_start(), b(1), row(2), timeout(2), row(3), c(4))
    assert positions(events) == [Position(2, 1), Position(4, 4)]
    assert delivered(events) == [[2, 3]]


ENDINGS = [("its COMMTX", c(5, 7)), ("its RBTX", rollback(5, 7)), ("a BEGINTX on its id", b(5, 7))]


@pytest.mark.parametrize("ending", [e[1] for e in ENDINGS], ids=[e[0] for e in ENDINGS])
def test_the_anchor_waits_for_an_unseen_transaction_until(ending: bytes) -> None:
    assembler = first_start(7, clock=3000)
    assert feed(assembler, row(2, 7), timeout(2)) == []
    found = feed(assembler, ending, timeout(6))
    assert found == [PositionPassed(Position(6, 5 if ending == b(5, 7) else 6), False)]


@pytest.mark.parametrize("ending", [e[1] for e in ENDINGS], ids=[e[0] for e in ENDINGS])
def test_an_unseen_transaction_is_carried_in_positions_until(ending: bytes) -> None:
    assembler = first_start(7)
    assembler.stop_waiting_for_unseen()
    events = feed(assembler, timeout(2), row(3, 7), timeout(3), ending, timeout(6))
    assert [p.unseen for p in positions(events)][:2] == [(7,), (7,)]
    assert positions(events)[-1].unseen == ()
    assert delivered(events) == []


def test_an_unseen_commit_is_left_out_and_counted() -> None:
    assembler = resumed(10, 10, 7)
    assert delivered(feed(assembler, row(11, 7), discard(11, 7), c(12, 7))) == []
    assert assembler.counters.unseen_transactions == 1


def test_the_next_owner_of_an_unseen_id_is_delivered() -> None:
    assert delivered(feed(resumed(10, 10, 7), row(11, 7), b(12, 7), row(13, 7), c(14, 7))) == [[13]]


def test_an_id_that_shows_rows_before_the_anchor_is_unseen_too() -> None:
    assembler = first_start(clock=5000)
    assert feed(assembler, row(2, 7), timeout(2)) == []
    assert feed(assembler, c(3, 7), timeout(3)) == [PositionPassed(Position(3, 3), False)]
    assert assembler.counters.unseen_transactions == 1
