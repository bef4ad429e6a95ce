"""Dead, stalled or late: judged from values, so that minutes pass at once."""

from __future__ import annotations

import pytest

from informix_capture_client.errors import ConnectionLost, ServerRefused
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
        watch.hear(now, AT)
        verdict = verdict or watch.verdict(now, facts(now, page + second))
    return verdict


def watching(**changes: str) -> Liveness:
    watch = Liveness(8.0, 120.0, **changes)  # type: ignore[arg-type]
    watch.connect(0.0)
    watch.hear(0.0, AT)
    return watch


def test_a_server_that_sends_nothing_at_all_is_dead() -> None:
    watch = watching()
    watch.require_contact(8.0)
    with pytest.raises(ConnectionLost, match="nothing for 9 s"):
        watch.require_contact(9.0)


def test_a_pause_of_ours_is_not_held_against_the_server() -> None:
    watch = watching()
    watch.excuse(100.0)
    watch.require_contact(107.0)
    assert watch.verdict(100.0, facts(100.0, 5000)) is None


def test_timeouts_only_while_the_log_moves_on_open_the_session_once_more() -> None:
    verdict = stalled_after(watching(), 0.0)
    assert verdict is not None
    assert verdict.response is Response.REOPEN
    assert str(verdict.error()) == (
        "IFXCDC-0001: only TIMEOUT records came for 120 s: the stream stands at 7:0x64000, the server's"
        " log has moved from 7:0x64000 to 7:0xdc000. The session is opened once more."
    )
    assert isinstance(verdict.error(), ConnectionLost)


@pytest.mark.parametrize(("stalled", "response"), [("warn", Response.WARN), ("fail", Response.FAIL)])
def test_a_stall_that_a_new_session_does_not_mend_warns_or_fails_once(
    stalled: str, response: Response
) -> None:
    watch = watching(stalled=stalled)
    stalled_after(watch, 0.0)
    watch.connect(200.0)
    verdict = stalled_after(watch, 200.0)
    assert verdict is not None
    assert verdict.response is response
    assert isinstance(verdict.error(), ServerRefused)
    watch.connect(400.0)
    assert stalled_after(watch, 400.0) is None


def test_a_stream_is_stalled_since_it_moved_last_until_it_moves_again() -> None:
    watch = watching()
    watch.hear(5.0, AT + 1)
    assert watch.stalled_since is None
    watch.hear(300.0, AT + 1)
    watch.verdict(300.0, facts(300.0, 200))
    watch.verdict(301.0, facts(301.0, 300))
    assert watch.stalled_since == 5.0
    watch.connect(310.0)
    watch.hear(310.0, AT - 5000)  # the new session reads again what was read before
    assert watch.stalled_since == 5.0
    watch.hear(311.0, AT + 2)
    assert watch.stalled_since is None


def test_another_stream_moves_although_its_positions_are_lower() -> None:
    watch = watching()
    stalled_after(watch, 0.0)
    assert watch.stalled_since == 0.0
    watch.begin_stream()
    watch.connect(200.0)
    watch.hear(205.0, AT - 5000)
    assert watch.stalled_since is None
    watch.hear(400.0, AT - 5000)
    watch.verdict(400.0, facts(400.0, 200))
    stall = watch.verdict(401.0, facts(401.0, 300))
    assert stall is not None
    assert (stall.response, watch.stalled_since) == (Response.REOPEN, 205.0)


def test_a_stall_at_another_place_is_another_stall() -> None:
    watch = watching()
    stalled_after(watch, 0.0)
    watch.connect(200.0)
    watch.hear(200.0, AT + 1)  # it has moved on before it stands still again
    stall = stalled_after(watch, 201.0)
    assert stall is not None
    assert stall.response is Response.REOPEN


def test_a_new_session_that_begins_further_back_is_not_another_stall() -> None:
    watch = watching()
    stalled_after(watch, 0.0)
    watch.connect(200.0)
    watch.hear(200.0, AT - 5000)
    stall = stalled_after(watch, 201.0)
    assert stall is not None
    assert stall.response is Response.WARN


def test_a_log_that_stands_still_is_a_quiet_server_not_a_stall() -> None:
    watch = watching()
    for second in range(0, 1000, 10):
        watch.hear(second, AT)
        assert watch.verdict(second, facts(second, 100)) is None


def test_a_stream_that_moves_is_no_stall_however_far_the_log_is_ahead() -> None:
    watch = watching()
    for second in range(0, 1000, 10):
        watch.hear(second, AT + second)
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
