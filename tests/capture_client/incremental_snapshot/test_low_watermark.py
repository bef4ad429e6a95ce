"""Which low watermark is settled, by what the stream has shown and what the server lists as open."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capture import streams
from harness.capture.streams import blocks, rollback, row
from harness.runs.examples import examples
from informix_capture_client.incremental_snapshot import AgedPlaces, Slots

LOW = 100


def begin(number: int, transaction: int) -> bytes:
    return streams.begin(number, transaction, 1_700_000_000, 501)


def commit(number: int, transaction: int) -> bytes:
    return streams.commit(number, transaction, 1_700_000_000)


def shown(*records: bytes, open_at_start: frozenset[int] = frozenset()) -> Slots:
    slots = Slots(open_at_start)
    for record in records:
        (block,) = blocks([record])
        slots.add(block)
    return slots


def test_with_nothing_open_what_was_chosen_is_settled() -> None:
    assert shown(begin(10, 1), commit(20, 1)).settled(LOW, []) == LOW


def test_a_transaction_that_has_ended_in_the_stream_and_is_still_open_holds_its_locks() -> None:
    slots = shown(begin(10, 1), row(15, 1), commit(20, 1), begin(12, 2), commit(30, 2))
    assert slots.settled(LOW, [1]) == 19
    assert slots.settled(LOW, [2]) == 29
    assert slots.settled(LOW, [1, 2]) == 19


def test_a_commit_above_the_low_watermark_does_not_raise_it() -> None:
    assert shown(begin(10, 1), commit(120, 1)).settled(LOW, [1]) == LOW


def test_a_commit_at_the_low_watermark_lowers_it_below() -> None:
    assert shown(begin(10, 1), commit(LOW, 1)).settled(LOW, [1]) == LOW - 1


def test_a_slot_that_has_begun_again_holds_no_lock_of_the_transaction_before() -> None:
    slots = shown(begin(10, 1), commit(20, 1), begin(40, 1))
    assert slots.settled(LOW, [1]) == LOW


def test_a_slot_whose_next_beginning_has_not_come_yet_only_makes_it_lower() -> None:
    assert shown(begin(10, 1), commit(20, 1)).settled(LOW, [1]) == 19


def test_a_transaction_that_the_stream_has_shown_nothing_of_does_not_matter() -> None:
    assert shown(begin(10, 1), commit(20, 1)).settled(LOW, [7]) == LOW


def test_a_rollback_holds_nothing_that_a_select_could_miss() -> None:
    assert shown(begin(10, 1), rollback(20, 1)).settled(LOW, [1]) == LOW


def test_a_commit_without_its_beginning_counts() -> None:
    assert shown(commit(20, 1)).settled(LOW, [1]) == 19


def test_what_a_new_session_shows_again_takes_nothing_back() -> None:
    slots = shown(begin(10, 1), commit(20, 1), begin(30, 1), commit(40, 1))
    for record in (begin(10, 1), commit(20, 1), begin(30, 1)):
        (block,) = blocks([record])
        slots.add(block)
    assert slots.settled(LOW, [1]) == 39


@pytest.mark.parametrize("record", [begin(10, 5), commit(20, 5)])
def test_what_was_open_at_the_start_is_waited_for_until_it_shows_or_is_gone(record: bytes) -> None:
    """It may have committed before the stream began, and hold its locks still."""
    start = frozenset({5})
    assert shown(open_at_start=start).settled(LOW, [5, 6]) is None
    assert shown(record, open_at_start=start).settled(LOW, [5, 6]) is not None
    gone = shown(open_at_start=start)
    assert gone.settled(LOW, [6]) == LOW
    assert gone.settled(LOW, [5, 6]) == LOW  # the slot was free meanwhile


def test_ids_of_any_32_bits_are_told_apart() -> None:
    slots = shown(
        begin(10, 0xFFFFFFFF),
        commit(20, 0xFFFFFFFF),
        begin(10, 65_537),
        commit(30, 65_537),
        begin(40, 1),
    )
    assert slots.settled(LOW, [-1]) == 19
    assert slots.settled(LOW, [65_537]) == 29
    assert slots.settled(LOW, [1]) == LOW


events = st.lists(st.tuples(st.sampled_from("bc"), st.integers(0, 4)), max_size=30)


@given(events, st.sets(st.integers(0, 5)), st.integers(0, 40), st.integers(1, 30))
@examples(100)
def test_it_is_what_two_dictionaries_say(
    shown_events: list[tuple[str, int]], open_ids: set[int], low: int, cut: int
) -> None:
    begins, commits, records = dict[int, int](), dict[int, int](), []
    for number, (kind, slot) in enumerate(shown_events, 1):
        (begins if kind == "b" else commits)[slot] = number
        records.append((begin if kind == "b" else commit)(number, slot))
    slots = Slots()
    for chunk in (records[:cut], records[cut:]):
        for block in blocks([b"".join(chunk)]):
            slots.add(block)
    held = [commits[s] - 1 for s in open_ids if commits.get(s, -1) > begins.get(s, -1)]
    assert slots.settled(low, open_ids) == min([low, *held])


def test_a_place_is_known_once_it_is_old_enough() -> None:
    places = AgedPlaces(age_seconds=1.0)
    assert places.place(0.0) is None
    places.record(10, 0.0)
    assert places.place(0.9) is None
    assert places.place(1.0) == 10


def test_the_newest_place_that_is_old_enough_is_given() -> None:
    places = AgedPlaces(age_seconds=1.0)
    for step in range(50):
        places.record(100 + step, step * 0.1)
    assert places.place(4.95) == 139
    assert places.place(99.0) == 149


def test_a_place_may_have_been_reached_before_that_was_known() -> None:
    places = AgedPlaces(age_seconds=1.0)
    places.record(10, 5.0)
    places.record(10, 5.5)
    places.record(20, 6.0, since=5.25)
    assert places.place(6.0) == 10
    assert places.place(6.24) == 10
    assert places.place(6.25) == 20


def test_places_in_quick_succession_are_taken_for_older_and_few_are_kept() -> None:
    places = AgedPlaces(age_seconds=1.0)
    for step in range(10_000):
        places.record(step, step * 0.001)
    place = places.place(9.999)
    assert place is not None
    assert 8_900 <= place <= 8_999
    assert len(places._reached) < 40
