"""How far a restart position may go, by what the server lists and what the stream has passed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from harness.capture.streams import begin, blocks, commit, rollback, row, timeout
from informix_capture_client.catalog import UNFLUSHED_LOG, OpenSample
from informix_capture_client.positions import Position, SettlingRestart
from informix_capture_client.records import RecordBlock
from informix_capture_client.stream import Read
from informix_capture_client.transactions import TransactionAssembler
from informix_cdc.capture.restart_bound import RestartBound

PAGE = 1 << 12


def b(number: int, transaction: int = 1) -> bytes:
    return begin(number, transaction, 1000, 501)


def c(number: int, transaction: int = 1) -> bytes:
    return commit(number, transaction, 2000)


class Stream:
    """A session whose records go through an assembler and a bound, as in the capture loop."""

    def __init__(self, bound: RestartBound, restart: int = 0, *, is_buffered: bool = False) -> None:
        self.bound = bound
        self.assembler = TransactionAssembler(Position(restart, restart), restart_bound=restart)
        self.reached = 0
        bound.begin_session(is_buffered)

    def read(self, *records: bytes, now: float = 0.0) -> int:
        """Read records; return the restart position that is valid behind them."""
        block: RecordBlock
        (block,) = blocks([b"".join(records)])
        self.reached = max(self.reached, int(block.sequence_numbers.max()))
        events = list(self.assembler.feed(block))
        answer = self.bound.on_read(Read(events, self.reached, 0, self.assembler, block), now)
        assert isinstance(answer, Read)
        return self.assembler._position.restart


def sample(place: int, begins: Mapping[int, int] | None = None, log_end: int = 0) -> OpenSample:
    return OpenSample(place, begins or {}, log_end or place + 2 * PAGE)


def test_no_position_moves_on_what_the_stream_shows_alone() -> None:
    stream = Stream(RestartBound(), 5)
    assert stream.read(b(10), row(11), c(12), timeout(12)) == 5
    assert stream.bound.is_wanted


def test_a_sample_counts_once_the_stream_has_passed_the_end_of_the_log_then() -> None:
    stream = Stream(RestartBound())
    stream.bound.offer(sample(100, log_end=200))
    assert stream.read(b(110), row(111), c(199)) == 0
    assert stream.bound.settling == SettlingRestart(100, 200)
    assert stream.read(b(210), row(211), c(212)) == 100


def test_whoever_is_listed_holds_it_where_its_log_file_begins() -> None:
    stream = Stream(RestartBound())
    stream.bound.offer(sample(100, {7: 40}, log_end=200))
    assert stream.read(b(110), row(111), c(210)) == 40


def test_whoever_was_not_listed_before_began_behind_that_list() -> None:
    stream = Stream(RestartBound())
    stream.bound.offer(sample(100, {7: 40}, log_end=150))
    assert stream.read(b(110), row(111), c(160)) == 40
    stream.bound.offer(sample(200, {8: 40}, log_end=250))
    assert stream.read(b(210), row(211), c(260)) == 100


def test_one_that_stays_listed_holds_it_where_it_was() -> None:
    stream = Stream(RestartBound())
    for place in (100, 200, 300):
        stream.bound.offer(sample(place, {7: 40}, log_end=place + 50))
        assert stream.read(b(place + 10), row(place + 11), c(place + 60)) == 40


@pytest.mark.parametrize("end", [c, rollback], ids=["commit", "rollback"])
def test_an_id_that_is_always_in_use_is_told_by_the_ends_that_the_stream_shows(end: object) -> None:
    stream = Stream(RestartBound())
    stream.bound.offer(sample(100, {7: 40}, log_end=200))
    shown = end(150, 7)  # type: ignore[operator]
    assert stream.read(b(110, 7), row(111, 7), shown, b(160, 1), row(161, 1), c(210, 1)) == 100


def test_what_the_stream_shows_as_open_holds_it_too() -> None:
    stream = Stream(RestartBound())
    stream.bound.offer(sample(100, log_end=200))
    assert stream.read(b(50, 3), row(51, 3), b(210), row(211), c(212)) == 50


def test_a_newer_sample_waits_until_the_former_one_is_passed() -> None:
    """A stream that catches up would never pass the newest."""
    stream = Stream(RestartBound())
    stream.bound.offer(sample(100, log_end=200))
    stream.read(b(110), row(111), c(112))
    stream.bound.offer(sample(900, log_end=990))
    assert stream.read(b(210), row(211), c(212)) == 100
    assert stream.read(b(950), row(951), c(991)) == 900


QUIET = {
    "a minute of silence, near to the log's end": ({}, 200 + 3 * PAGE, 61.0, 100),
    "a moment of silence": ({}, 200 + 3 * PAGE, 5.0, 0),
    "a commit may wait in a buffer": ({"is_buffered": True}, 200 + 3 * PAGE, 61.0, 0),
    "far from the log's end": ({}, 200 + 5 * PAGE, 61.0, 0),
}


@pytest.mark.parametrize(("how", "log_end", "seconds", "restart"), QUIET.values(), ids=QUIET.keys())
def test_a_quiet_server_is_taken_at_its_word_after_a_minute(
    how: Mapping[str, bool],
    log_end: int,
    seconds: float,
    restart: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("informix_cdc.snapshots.awaited_ends.QUIET_SECONDS", 60.0)
    stream = Stream(RestartBound(), **how)
    stream.bound.offer(sample(100, log_end=log_end))
    stream.read(b(150), row(151), c(200), timeout(200), now=900.0)
    stream.read(timeout(200), now=1000.0)
    assert stream.read(timeout(200), now=1000.0 + seconds) == restart


def test_a_commit_in_the_log_buffer_lies_behind_the_pages_that_were_written() -> None:
    """It has ended, and is not listed; the stream shows it later, above the end that syslogs names."""
    stream = Stream(RestartBound(), is_buffered=True)
    stream.read(b(110, 7), row(111, 7))
    stream.bound.offer(sample(190, log_end=200))
    assert stream.read(b(198), row(199), c(201), b(202)) == 0
    assert stream.read(c(203, 7), row(204), c(205)) == 0
    assert stream.read(b(200 + UNFLUSHED_LOG), c(201 + UNFLUSHED_LOG)) == 190


def test_silence_before_the_sample_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("informix_cdc.snapshots.awaited_ends.QUIET_SECONDS", 60.0)
    stream = Stream(RestartBound())
    stream.read(b(150), row(151), c(200), timeout(200), now=0.0)
    stream.bound.offer(sample(100))
    assert stream.read(timeout(200), now=100.0) == 0
    assert stream.read(timeout(200), now=150.0) == 0
    assert stream.read(timeout(200), now=161.0) == 100


def test_the_next_process_goes_on_with_the_bound_that_was_not_valid_yet() -> None:
    """A run of AvailableNow on a buffered log is over before the log has moved on."""
    stream = Stream(RestartBound(settling=SettlingRestart(100, 200)), 5, is_buffered=True)
    stream.bound.offer(sample(900, log_end=990))
    assert stream.read(b(110), row(111), c(150), timeout(150)) == 5
    behind = 200 + UNFLUSHED_LOG
    assert stream.read(b(behind), row(behind + 1), c(behind + 2)) == 100
    assert stream.bound.settling == SettlingRestart(900, 990)


def test_another_session_reads_again_and_settles_again() -> None:
    bound = RestartBound()
    first = Stream(bound)
    bound.offer(sample(100, log_end=200))
    assert first.read(b(210), row(211), c(212)) == 100
    second = Stream(bound)
    assert second.read(b(110), row(111), c(150)) == 0
    bound.offer(sample(100, log_end=200))
    assert second.read(b(210), row(211), c(212)) == 100
