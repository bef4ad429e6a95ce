"""When a stream has shown what the server says has ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.capture.streams import begin, blocks, timeout
from informix_capture_client.catalog import UNFLUSHED_LOG
from informix_capture_client.positions import Position, log_page
from informix_capture_client.stream import Read, Silence
from informix_capture_client.transactions import TransactionAssembler
from informix_cdc.snapshots import AwaitedEnds, ServerSays, awaited_ends
from informix_cdc.snapshots.awaited_ends import silent_since

LOG_END = log_page(7, 100)
TIMEOUT, BEGIN = timeout(0), begin(0, 1, 1000, 501)


def answer(records: bytes, reached: int, latest_time: int = 0) -> Read:
    (block,) = blocks([records])
    return Read([], reached, latest_time, TransactionAssembler(Position(0, 0)), block)


CASES = {
    "it has passed the log's end": (answer(BEGIN, LOG_END), 0, False, True),
    "a record is later than all that has ended": (answer(BEGIN, 1, 1001), 0, False, True),
    "a record of the same second may be older": (answer(BEGIN, 1, 1000), 0, False, False),
    "a minute of silence near the log's end": (answer(TIMEOUT, log_page(7, 96)), 60, False, True),
    "a second of silence near the log's end": (answer(TIMEOUT, log_page(7, 99)), 1, False, False),
    "a stalled stream, far from the log's end": (answer(TIMEOUT, log_page(7, 95)), 600, False, False),
    "a commit may wait in a buffer": (answer(TIMEOUT, log_page(7, 99)), 600, True, False),
    "and lie behind what was written": (answer(BEGIN, LOG_END + 1), 0, True, False),
    "but not further than a buffer": (answer(BEGIN, LOG_END + UNFLUSHED_LOG), 0, True, True),
    "nor in a later second": (answer(BEGIN, LOG_END + 1, 1001), 0, True, True),
    "it is not silent": (answer(BEGIN, log_page(7, 99)), 600, False, False),
}


def read_at(records: bytes, began_at: float) -> Read:
    return replace(answer(records, 7), began_at=began_at)


def test_what_a_read_in_vain_has_passed_is_as_old_as_the_read() -> None:
    assert silent_since(read_at(TIMEOUT, 12.5)) == 12.5
    assert silent_since(read_at(BEGIN + TIMEOUT, 12.5)) is None
    assert silent_since(read_at(TIMEOUT, 0.0)) is None  # not known
    assert silent_since(Silence()) is None


@pytest.fixture(autouse=True)
def own_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaited_ends, "QUIET_SECONDS", 60.0)


@pytest.mark.parametrize(("answered", "seconds", "is_buffered", "is_passed"), CASES.values(), ids=CASES)
def test_only_the_log_or_a_long_silence_at_its_end_shows_what_has_ended(
    answered: Read,
    seconds: float,
    is_buffered: bool,
    is_passed: bool,
) -> None:
    now = [0.0]
    ends = AwaitedEnds(lambda: ServerSays(frozenset(), 1000, LOG_END), is_buffered, lambda: now[0])
    assert not ends.are_passed(answered, lambda _: False)  # it asks the server
    now[0] += seconds
    assert ends.are_passed(answered, lambda _: False) is is_passed


@pytest.mark.parametrize("records", [BEGIN, BEGIN + TIMEOUT], ids=["alone", "and a TIMEOUT behind it"])
def test_a_record_ends_the_silence_although_the_server_was_asked_long_ago(records: bytes) -> None:
    now = [0.0]
    ends = AwaitedEnds(lambda: ServerSays(frozenset(), 1000, LOG_END), False, lambda: now[0])
    near = log_page(7, 97)
    for now[0] in range(70):
        assert not ends.are_passed(answer(records, near), lambda _: False)
    for now[0] in range(70, 130):
        assert not ends.are_passed(answer(TIMEOUT, near), lambda _: False)
    now[0] = 130
    assert ends.are_passed(answer(TIMEOUT, near), lambda _: False)


def test_a_record_ends_the_silence_also_while_it_is_only_watched() -> None:
    now = [0.0]
    ends = AwaitedEnds(lambda: ServerSays(frozenset(), 1000, LOG_END), False, lambda: now[0])
    near = log_page(7, 97)
    assert not ends.are_passed(answer(TIMEOUT, near), lambda _: False)
    now[0] = 59
    ends.watch(answer(BEGIN, near))
    now[0] = 61
    assert not ends.are_passed(answer(TIMEOUT, near), lambda _: False)
