"""How far behind a stream is: facts in, figures out, no server."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from informix_capture_client.catalog.log_space import LogFile, LogSpace
from informix_capture_client.positions import Position, log_page
from informix_cdc.capture.counts import Appended
from informix_cdc.monitoring.lag import Progress, lag_of
from informix_checkpoints.spool.segments import Segment

PAGE = 2048
# Log 7 is written, and 40 of its 100 pages are; 5 and 6 are full; one file was never used.
SPACE = LogSpace(
    (
        LogFile(5, 100 * PAGE, 100 * PAGE),
        LogFile(6, 100 * PAGE, 100 * PAGE),
        LogFile(7, 100 * PAGE, 40 * PAGE, is_current=True),
    ),
    100 * PAGE,
    PAGE,
)


def shown(space: LogSpace | None = SPACE, **progress: Any) -> dict[str, Any]:
    return asdict(lag_of(Progress(now=1000.0, **progress), space))


def test_at_the_end_of_the_log_the_lag_is_what_has_passed_since_it_was_read() -> None:
    at_end = log_page(7, 40)
    found = shown(delivered=at_end, reached=at_end, read_up_to=999.5)
    assert (found["lag_seconds"], found["capture_lag_seconds"]) == (0.5, 0.5)
    assert (found["lag_bytes"], found["capture_lag_bytes"]) == (0, 0)


def test_rows_that_wait_for_spark_make_the_lag_older_than_reading_is() -> None:
    found = shown(
        delivered=log_page(6, 90),
        reached=log_page(7, 38),
        read_up_to=998.0,
        waits=True,
        waiting_since=940,
    )
    assert (found["lag_seconds"], found["capture_lag_seconds"]) == (60.0, 2.0)
    assert (found["lag_bytes"], found["capture_lag_bytes"]) == ((10 + 40) * PAGE, 2 * PAGE)


def test_rows_of_unknown_age_make_the_lag_unknown() -> None:
    assert shown(read_up_to=999.0, waits=True)["lag_seconds"] is None


def test_a_clock_that_is_behind_makes_no_negative_lag() -> None:
    assert shown(read_up_to=1003.0)["lag_seconds"] == 0.0


READ = [("all of it", 40, 9.0), ("but for two pages", 38, 9.0), ("but for three", 37, 600.0)]


@pytest.mark.parametrize(("page", "lag_seconds"), [r[1:] for r in READ], ids=[r[0] for r in READ])
def test_where_the_log_is_read_to_its_end_an_old_time_in_it_is_no_lag(
    page: int, lag_seconds: float
) -> None:
    """An open transaction, and no record since: the latest time is that of its beginning."""
    found = shown(reached=log_page(7, page), read_up_to=400.0, asked_at=991.0)
    assert (found["lag_seconds"], found["capture_lag_seconds"]) == (lag_seconds, lag_seconds)


def test_what_was_read_after_the_question_counts_as_well() -> None:
    found = shown(reached=log_page(7, 40), read_up_to=999.0, asked_at=991.0)
    assert found["capture_lag_seconds"] == 1.0


def test_where_nothing_is_known_of_the_log_the_time_in_it_counts() -> None:
    assert shown(None, reached=log_page(7, 40), read_up_to=400.0)["capture_lag_seconds"] == 600.0


HEADROOM = [
    ("in the log that is written", log_page(7, 10), (60 + 100 + 200) * PAGE),
    ("in the one before", log_page(6, 10), (60 + 100 + 100) * PAGE),
    ("in the oldest", log_page(5, 0), (60 + 100) * PAGE),
    ("in one that is gone", log_page(4, 99), 0),
    ("not known yet", None, None),
]


@pytest.mark.parametrize(("restart", "left"), [r[1:] for r in HEADROOM], ids=[r[0] for r in HEADROOM])
def test_headroom_is_what_may_be_written_until_the_restart_position_is_gone(
    restart: int | None, left: int | None
) -> None:
    found = shown(restart=restart)
    assert found["headroom_bytes"] == left
    assert found["log_bytes"] == 400 * PAGE


def test_without_facts_of_the_log_nothing_is_said_of_it() -> None:
    found = shown(None, restart=log_page(7, 1), delivered=log_page(7, 1), reached=log_page(7, 1))
    names = ("lag_bytes", "capture_lag_bytes", "headroom_bytes", "log_bytes")
    assert {found[name] for name in names} == {None}


def test_the_oldest_open_transaction_has_an_age_and_none_has_0() -> None:
    assert shown(oldest_open=400)["oldest_open_seconds"] == 600.0
    assert shown()["oldest_open_seconds"] == 0.0


def segment(last_commit: int, rows: int, size_bytes: int) -> Segment:
    return Segment("s", rows, size_bytes, 0, 2, last_commit, Position(last_commit, last_commit))


def test_what_spark_has_taken_waits_no_longer() -> None:
    appended = Appended()
    assert appended.waiting_since() == (False, None)
    appended.record(segment(50, rows=10, size_bytes=1000), 900)
    appended.record(segment(60, rows=5, size_bytes=700), 910)
    assert appended.waiting_since() == (True, 900)
    appended.ack((49, 0))
    assert appended.waiting_since() == (True, 900)
    appended.ack((50, 0))
    assert appended.waiting_since() == (True, 910)
    appended.ack((60, 0))
    assert appended.waiting_since() == (False, None)
    assert (appended.rows, appended.transactions, appended.size_bytes) == (15, 4, 1700)


def test_the_age_of_what_another_process_left_in_the_spool_is_not_known() -> None:
    appended = Appended()
    appended.begin((50, 0))
    appended.record(segment(60, rows=5, size_bytes=700), 910)
    assert appended.waiting_since() == (True, None)
    appended.ack((50, 0))
    assert appended.waiting_since() == (True, 910)
    appended.begin(None)
    assert appended.waiting_since() == (False, None)


def test_a_segment_without_rows_makes_nothing_wait() -> None:
    appended = Appended()
    appended.record(segment(50, rows=0, size_bytes=700), 900)
    assert appended.waiting_since() == (False, None)
