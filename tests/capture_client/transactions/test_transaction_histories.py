from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from capture_client.transactions.histories import (
    HISTORIES,
    STEPS,
    History,
    Model,
    Word,
    history,
    observed_events,
)
from harness.capture.streams import cut_at, feed_chunks
from harness.runs.examples import examples
from informix_capture_client.positions import LogEnd, Position
from informix_capture_client.transactions import short_transactions
from informix_capture_client.transactions.assembler import TransactionAssembler

CUTS = st.lists(st.integers(0, 10_000), max_size=6)


def observe(assembler: TransactionAssembler, entries: History, cuts: list[int]) -> list[object]:
    stream = b"".join(entry.record() for entry in entries)
    return observed_events(feed_chunks(assembler, cut_at(stream, cuts)))


def from_place(entries: History, place: int) -> History:
    """Return what a session activated at a place would be sent."""
    return [entry for entry in entries if entry.place >= place]


def positions_in(events: list[object]) -> list[Position]:
    return [part for event in events for part in event if isinstance(part, Position)]  # type: ignore[attr-defined]


def transactions_after(events: list[object], position: Position) -> list[object]:
    return [e for e in events if e[0] == "transaction" and e[3] > position.commit]  # type: ignore[index]


def assert_agree(found: list[object], expected: list[object]) -> None:
    """Demand what the model says; of ends without rows that follow each other the last is enough.

    They say no more than how far the stream has come; what they say must still be true there.
    """
    assert [e for e in found if not is_quiet(e)] == [e for e in expected if not is_quiet(e)]
    rest = iter(expected)
    assert all(event in rest for event in found)  # in the same order
    assert positions_in(found[-1:]) == positions_in(expected[-1:])


def is_quiet(event: object) -> bool:
    return event[0] == "passed" and not event[2]  # type: ignore[index, no-any-return]


@examples(300, *HealthCheck)
@given(HISTORIES)
def test_record_for_record_everything_observable_is_what_the_model_says(entries: History) -> None:
    assembler, model = TransactionAssembler(Position(0, 0)), Model(entries)
    found = observed_events(feed_chunks(assembler, [entry.record() for entry in entries]))
    assert found == model.observed()
    assert assembler.counters == model.counters


@examples(300, *HealthCheck)
@given(HISTORIES, CUTS)
def test_however_the_bytes_come_the_model_agrees(entries: History, cuts: list[int]) -> None:
    assembler, model = TransactionAssembler(Position(0, 0)), Model(entries)
    assert_agree(observe(assembler, entries, cuts), model.observed())
    assert assembler.counters == model.counters
    begins = {e.transaction: model.begin_of(len(entries), e.transaction) for e in entries}
    assert assembler.open_transactions == {
        key: entries[first].sequence for key, first in begins.items() if first is not None
    }


LIMITS = st.fixed_dictionaries(
    {
        "MOST_RECORDS": st.sampled_from([0, 1, 3, 64]),
        "MOST_BYTES": st.sampled_from([0, 1000, 16 << 20]),
        "LEAST_SWEPT_BYTES": st.sampled_from([0, 256 << 10]),
        "LAST_BITS": st.sampled_from([0, 1, 0xFFFF]),  # all share a slot, many do, none does
    }
)


@examples(300, *HealthCheck)
@given(HISTORIES, st.lists(st.integers(0, 10_000), max_size=20), LIMITS)
def test_whether_open_transactions_are_carried_or_kept_alone_makes_no_difference(
    entries: History, cuts: list[int], limits: dict[str, int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(short_transactions, name, limit)
        assembler, model = TransactionAssembler(Position(0, 0)), Model(entries)
        assert_agree(observe(assembler, entries, cuts), model.observed())
        assert assembler.counters == model.counters
        assert assembler.open_count == len(assembler.open_transactions)


@examples(300, *HealthCheck)
@given(HISTORIES, CUTS)
def test_whoever_resumes_from_a_delivered_position_gets_exactly_the_rest(
    entries: History, cuts: list[int]
) -> None:
    whole = observe(TransactionAssembler(Position(0, 0)), entries, [])
    for position in positions_in(whole):
        rest = observe(TransactionAssembler(position), from_place(entries, position.restart), cuts)
        assert transactions_after(rest, Position(0, 0)) == transactions_after(whole, position)
        assert all(later.commit >= position.commit for later in positions_in(rest))
        assert all(later.restart >= position.restart for later in positions_in(rest))


@examples(300, *HealthCheck)
@given(HISTORIES)
def test_a_restart_position_never_moves_back_and_never_hides_a_transaction(entries: History) -> None:
    model = Model(entries)
    positions = positions_in(observe(TransactionAssembler(Position(0, 0)), entries, []))
    assert positions == sorted(positions, key=lambda p: (p.restart, p.commit))
    for n, entry in enumerate(entries):
        first = model.begin_of(n, entry.transaction)
        if entry.word == "commit" and first is not None:
            begun = entries[first].sequence
            assert not [p for p in positions if p.commit < entry.sequence and p.restart > begun]


@examples(300, *HealthCheck)
@given(HISTORIES, CUTS)
def test_a_resume_from_a_resume_gets_exactly_the_rest(entries: History, cuts: list[int]) -> None:
    whole = observe(TransactionAssembler(Position(0, 0)), entries, [])
    for position in positions_in(whole)[::3]:
        again = observe(TransactionAssembler(position), from_place(entries, position.restart), cuts)
        for second in positions_in(again)[::2]:
            left = from_place(entries, second.restart)
            rest = observe(TransactionAssembler(second), left, cuts)
            assert transactions_after(rest, Position(0, 0)) == transactions_after(whole, second)


@examples(300, *HealthCheck)
@given(HISTORIES, CUTS)
def test_a_replay_up_to_any_later_commit_gives_the_rows_up_to_it(
    entries: History, cuts: list[int]
) -> None:
    whole = observe(TransactionAssembler(Position(0, 0)), entries, [])
    positions = positions_in(whole)
    logged = [entry for entry in entries if entry.word != "timeout"]  # those are not in the log
    for number, start in enumerate(positions):
        for end in positions[number + 1 :: 3]:
            if start.commit < end.commit:
                replay = TransactionAssembler(start, expected_commit=end.commit)
                found = observe(replay, from_place(logged, start.restart), cuts)
                assert transactions_after(found, Position(0, 0)) == transactions_after(whole, start)


@examples(300, *HealthCheck)
@given(
    before=STEPS,
    after=STEPS,
    clock=st.integers(0, 60),
    cuts=CUTS,
)
def test_a_first_start_among_open_transactions_finds_its_anchor_and_can_be_resumed(
    before: list[tuple[Word, int, int]],
    after: list[tuple[Word, int, int]],
    clock: int,
    cuts: list[int],
) -> None:
    past = len(history(before))
    entries = history([*before, *after])
    seen = entries[past:]
    open_then = {e.transaction: Model(entries).begin_of(past, e.transaction) for e in entries[:past]}
    unseen = frozenset(key for key, first in open_then.items() if first is not None)
    now = (seen[0].time if seen else 0) + clock
    model = Model(seen, is_started=False, unseen=unseen, clock=now)
    assembler = TransactionAssembler(None, unseen=unseen, log_end=LogEnd(0, now))
    whole = observe(assembler, seen, cuts)
    assert_agree(whole, model.observed())
    assert (assembler.start_offset is not None) == model.is_started
    assert assembler.counters == model.counters
    for position in positions_in(whole):
        rest = observe(TransactionAssembler(position), from_place(seen, position.restart), cuts)
        assert transactions_after(rest, Position(0, 0)) == transactions_after(whole, position)


@examples(300, *HealthCheck)
@given(before=STEPS, after=STEPS, cuts=CUTS)
def test_positions_that_carry_unseen_transactions_can_be_resumed_from(
    before: list[tuple[Word, int, int]], after: list[tuple[Word, int, int]], cuts: list[int]
) -> None:
    past = len(history(before))
    entries = history([*before, *after])
    seen = entries[past:]
    open_then = {e.transaction: Model(entries).begin_of(past, e.transaction) for e in entries[:past]}
    unseen = frozenset(key for key, first in open_then.items() if first is not None)
    assembler = TransactionAssembler(None, unseen=unseen)
    assembler.stop_waiting_for_unseen()
    model = Model(seen, is_started=False, unseen=unseen, waits_for_unseen=False)
    whole = observe(assembler, seen, cuts)
    assert_agree(whole, model.observed())
    assert assembler.counters == model.counters
    for position in positions_in(whole):
        rest = observe(TransactionAssembler(position), from_place(seen, position.restart), cuts)
        assert transactions_after(rest, Position(0, 0)) == transactions_after(whole, position)
