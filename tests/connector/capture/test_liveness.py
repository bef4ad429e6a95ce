"""Dead, stalled or late: judged from values, so that minutes pass at once."""

from __future__ import annotations

import itertools

import pytest

from informix_capture_client.errors import ConnectionLost, Gap, ServerRefused
from informix_capture_client.positions import log_page
from informix_cdc.capture.liveness import Liveness, LogFacts, Response, Stall

AT = log_page(7, 100)


def facts(now: float, page: int, oldest: int = 1) -> LogFacts:
    return LogFacts(now, log_page(7, page), log_page(oldest, 0))


def stalled_after(watch: Liveness, begin: float, page: int = 100) -> Stall | None:
    """Let 130 seconds pass with TIMEOUT records at the same place while the log moves on."""
    verdict = None
    for second in range(0, 131, 10):
        now = begin + second
        watch.on_read(now, AT)
        verdict = verdict or watch.verdict(now, facts(now, page + second))
    return verdict


def watching(**changes: str) -> Liveness:
    watch = Liveness(8.0, 120.0, **changes)  # type: ignore[arg-type]
    watch.connect(0.0)
    watch.on_read(0.0, AT)
    return watch


def test_a_server_that_sends_nothing_at_all_is_dead() -> None:
    watch = watching()
    watch.require_contact(8.0)
    with pytest.raises(ConnectionLost, match=r"nothing for 9 s.* a read does not return") as caught:
        watch.require_contact(9.0)
    assert caught.value.is_silence


def test_reads_without_a_byte_are_told_from_reads_that_do_not_return() -> None:
    watch = watching()
    watch.require_contact(4.0, empty_reads=900)
    with pytest.raises(
        ConnectionLost, match="returned 1,000 times in 9 s, but without any bytes"
    ) as caught:
        watch.require_contact(9.0, empty_reads=100)
    assert "run informix-cdc record and send us the file" in str(caught.value).lower()
    assert not caught.value.is_silence
    watch.on_read(10.0, AT)
    with pytest.raises(ConnectionLost, match="does not return"):
        watch.require_contact(19.0)


def test_a_pause_of_ours_is_not_held_against_the_server() -> None:
    watch = watching()
    watch.reset_deadlines(100.0)
    watch.require_contact(107.0)
    assert watch.verdict(100.0, facts(100.0, 5000)) is None


def test_timeouts_only_while_the_log_moves_on_open_the_session_once_more() -> None:
    verdict = stalled_after(watching(), 0.0)
    assert verdict is not None
    assert verdict.response is Response.REOPEN
    assert str(verdict.error()) == (
        "IFXCDC-0001: only TIMEOUT records arrived for 120 s: the stream is at 7:0x64000, while the"
        " server's log has advanced from 7:0x64000 to 7:0xdc000. The session is opened once more."
    )
    assert isinstance(verdict.error(), ConnectionLost)


def test_a_stall_that_a_new_session_does_not_mend_warns_once() -> None:
    watch = watching()
    stalled_after(watch, 0.0)
    watch.connect(200.0)
    verdict = stalled_after(watch, 200.0)
    assert verdict is not None
    assert verdict.response is Response.WARN
    assert isinstance(verdict.error(), ServerRefused)
    assert "onmode -l" in str(verdict.error())
    assert watch.is_news(verdict)
    watch.connect(400.0)
    again = stalled_after(watch, 400.0)
    assert again is not None
    assert not watch.is_news(again)


def test_a_stream_is_stalled_since_it_moved_last_until_it_moves_again() -> None:
    watch = watching()
    watch.on_read(5.0, AT + 1)
    assert watch.stalled_since is None
    watch.on_read(300.0, AT + 1)
    watch.verdict(300.0, facts(300.0, 200))
    watch.verdict(301.0, facts(301.0, 300))
    assert watch.stalled_since == 5.0
    watch.connect(310.0)
    watch.on_read(310.0, AT - 5000)  # the new session reads again what was read before
    assert watch.stalled_since == 5.0
    watch.on_read(311.0, AT + 2)
    assert watch.stalled_since is None


def test_another_stream_moves_although_its_positions_are_lower() -> None:
    watch = watching()
    stalled_after(watch, 0.0)
    assert watch.stalled_since == 0.0
    watch.begin_stream()
    watch.connect(200.0)
    watch.on_read(205.0, AT - 5000)
    assert watch.stalled_since is None
    watch.on_read(400.0, AT - 5000)
    watch.verdict(400.0, facts(400.0, 200))
    stall = watch.verdict(401.0, facts(401.0, 300))
    assert stall is not None
    assert (stall.response, watch.stalled_since) == (Response.REOPEN, 205.0)


def test_a_stall_at_another_place_is_another_stall() -> None:
    watch = watching()
    stalled_after(watch, 0.0)
    watch.connect(200.0)
    watch.on_read(200.0, AT + 1)  # it has moved on before it stands still again
    stall = stalled_after(watch, 201.0)
    assert stall is not None
    assert stall.response is Response.REOPEN


def test_a_new_session_that_begins_further_back_is_not_another_stall() -> None:
    watch = watching()
    stalled_after(watch, 0.0)
    watch.connect(200.0)
    watch.on_read(200.0, AT - 5000)
    stall = stalled_after(watch, 201.0)
    assert stall is not None
    assert stall.response is Response.WARN


def test_a_log_that_stands_still_is_a_quiet_server_not_a_stall() -> None:
    watch = watching()
    for second in range(0, 1000, 10):
        watch.on_read(second, AT)
        assert watch.verdict(second, facts(second, 100)) is None


def test_a_stream_that_moves_is_no_stall_however_far_the_log_is_ahead() -> None:
    watch = watching()
    for second in range(0, 1000, 10):
        watch.on_read(second, AT + second)
        assert watch.verdict(second, facts(second, 100 + 50 * second)) is None


@pytest.mark.parametrize(
    ("restart_log", "oldest_log", "warns"),
    [
        (1, 1, True),
        (2, 1, True),
        (3, 1, False),
        (7, 1, False),
        (6, 5, False),
        (5, 5, True),
        (0, 3, True),
    ],
)
def test_a_restart_position_in_the_oldest_fifth_of_the_log_is_told_once(
    restart_log: int, oldest_log: int, warns: bool
) -> None:
    watch = watching()
    assert bool(watch.lateness(log_page(restart_log, 5), facts(0, 0, oldest_log))) is warns
    assert not watch.lateness(log_page(restart_log, 5), facts(1, 0, oldest_log))


# a log that cannot be read beyond a place


def next_facts(now: float, page: int = 50) -> LogFacts:
    return LogFacts(now, log_page(8, page), log_page(1, 0))


def stays_stalled(watch: Liveness, begin: float, seconds: int) -> list[tuple[float, Stall]]:
    """Let time pass with TIMEOUT records at the same place, while the next log fills."""
    found = []
    for second in range(0, seconds + 1, 10):
        now = begin + second
        watch.on_read(now, AT)
        if (verdict := watch.verdict(now, next_facts(now, 50 + second))) is not None:
            found.append((now, verdict))
    return found


def test_a_stall_that_stays_names_the_next_log_and_is_looked_at_ever_more_rarely() -> None:
    watch = watching()
    (_, first), *later = stays_stalled(watch, 0.0, 20_000)
    assert first.response is Response.REOPEN
    assert {stall.next_log for _, stall in later} == {log_page(8, 0)}
    pauses = [next_at - at for (at, _), (next_at, _) in itertools.pairwise(later)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 3600


def test_within_its_own_log_there_is_nowhere_to_go_on() -> None:
    watch = watching()
    stalled_after(watch, 0.0)
    watch.connect(200.0)
    stall = stalled_after(watch, 200.0)
    assert stall is not None
    assert stall.next_log is None


def test_a_heartbeat_that_has_not_come_by_leaves_no_doubt() -> None:
    watch = Liveness(8.0, 120.0, has_heartbeat=True)
    watch.connect(0.0)
    _, (_, stall) = stays_stalled(watch, 0.0, 300)[:2]
    assert "no change of the heartbeat table has arrived: the log cannot be read" in str(stall.error())
    assert "hides" not in str(stall.error())


def test_records_in_the_next_log_are_proof_when_the_stream_stands_there_a_minute_later_too() -> None:
    watch = watching()
    stays_stalled(watch, 0.0, 130)
    watch.connect(200.0)
    ((at, _),) = stays_stalled(watch, 200.0, 130)
    assert not watch.record_passed_by(at)
    ((later, _),) = stays_stalled(watch, at + 1, 61)
    assert later - at == 61
    assert watch.record_passed_by(later)


def test_a_stream_that_has_moved_on_makes_them_no_proof() -> None:
    watch = watching()
    assert not watch.record_passed_by(100.0)
    watch.on_read(101.0, AT + 1)
    assert not watch.record_passed_by(200.0)


def test_what_is_proven_says_position_cause_and_remedies_in_their_order() -> None:
    watch = watching()
    stays_stalled(watch, 0.0, 130)
    watch.connect(200.0)
    ((_, stall),) = stays_stalled(watch, 200.0, 130)
    proven = stall.proven()
    assert isinstance(proven.error(), ServerRefused)
    text = str(proven.error())
    assert "cannot be read past 7:0x64000: only TIMEOUT records came there, in two sessions" in text
    assert "can be read from 8:0x0" in text
    words = ["onmode -l", "onDataLoss=continue", "restart the server", "Nothing is lost until the log"]
    assert [text.index(word) for word in words] == sorted(text.index(word) for word in words)
    loss = proven.loss()
    assert (loss.gap, loss.goes_on_at) == (Gap.LOG_UNREADABLE, log_page(8, 0))
    assert "The log from 7:0x64000 to 8:0x0 is lost" in str(loss)


def silent(watch: Liveness, begin: float, facts: LogFacts | None) -> Stall | None:
    """Let a session announce its tables and then say nothing."""
    watch.connect(begin, AT)
    watch.on_read(begin + 1, 0)
    return watch.silence(facts)


def test_two_sessions_that_fall_silent_at_one_place_while_the_log_moves_on_are_a_stall() -> None:
    watch = Liveness(8.0, 120.0)
    assert silent(watch, 0.0, next_facts(5.0)) is None
    stall = silent(watch, 20.0, next_facts(25.0))
    assert stall is not None
    assert (stall.place, stall.next_log, stall.is_silent) == (AT, log_page(8, 0), True)
    assert isinstance(stall.error(), ConnectionLost)
    assert not stall.error().one_more_session
    assert stall.once_more().error().one_more_session
    assert "reads did not return there" in str(stall.proven().error())


@pytest.mark.parametrize(
    "said", [None, facts(25.0, 101)], ids=["the server says nothing", "the log stands still too"]
)
def test_silence_alone_is_a_dead_connection(said: LogFacts | None) -> None:
    watch = Liveness(8.0, 120.0)
    silent(watch, 0.0, next_facts(5.0))
    assert silent(watch, 20.0, said) is None


def test_a_session_that_sent_timeouts_for_a_while_is_no_second_silence() -> None:
    watch = Liveness(8.0, 120.0)
    silent(watch, 0.0, next_facts(5.0))
    watch.connect(20.0, AT)
    for second in range(20, 60):
        watch.on_read(float(second), AT)
    assert watch.silence(next_facts(65.0)) is None


# a planned batch that is captured again

EXPECTED = log_page(7, 110)
REPLAYS = [
    ("the log ends beyond it", 120, "Nothing is lost: start the query again"),
    ("the log ends at it", 110, "Nothing is lost: start the query again"),
    ("the log ends just before it", 109, "may still be in the server's log buffer"),
    ("the end of the server's log is unknown", None, "Nothing is lost: start the query again"),
]


@pytest.mark.parametrize(("page", "says"), [c[1:] for c in REPLAYS], ids=[c[0] for c in REPLAYS])
def test_a_planned_batch_that_stands_still_for_a_minute_is_no_loss(page: int | None, says: str) -> None:
    watch = watching()
    said = None if page is None else facts(50.0, page)
    watch.on_read(59.0, AT)
    assert watch.replay_stall(59.0, EXPECTED, said) is None
    first = watch.replay_stall(60.0, EXPECTED, said)
    assert first is not None
    assert first.response is Response.REOPEN
    watch.connect(61.0, AT)
    assert watch.replay_stall(120.0, EXPECTED, said) is None
    second = watch.replay_stall(121.0, EXPECTED, said)
    assert second is not None
    assert second.response is Response.FAIL
    for error in (first.error(), second.error()):
        assert isinstance(error, ConnectionLost)
        assert error.one_more_session
        assert says in str(error)
        assert "at 7:0x64000" in str(error)


def test_a_planned_batch_that_moves_on_is_waited_for() -> None:
    watch = watching()
    for second in range(0, 1000, 10):
        watch.on_read(float(second), AT + second)
        assert watch.replay_stall(float(second), EXPECTED, facts(second, 200)) is None
