"""Where a position lies in the server's log, by arithmetic alone."""

from __future__ import annotations

from informix_capture_client.catalog.log_distance import LogDistance, place_in_log
from informix_capture_client.catalog.log_space import LogFile, LogSpace
from informix_capture_client.positions import log_page

PAGE = 2048
SPACE = LogSpace(  # five files of 100 pages: 7 and 8 are full, 9 is half full, two were never used
    files=(
        LogFile(7, 100 * PAGE, 100 * PAGE, filled_at=1000),
        LogFile(8, 100 * PAGE, 100 * PAGE, filled_at=1100),
        LogFile(9, 100 * PAGE, 50 * PAGE, is_current=True),
    ),
    free_bytes=200 * PAGE,
    page_bytes=PAGE,
)


def test_both_ends_are_told_in_logs_bytes_and_percent_of_all_files() -> None:
    place = place_in_log(log_page(8, 25), SPACE, now=1150)
    assert place.behind == LogDistance(1, 125 * PAGE, 25.0)
    assert place.headroom == LogDistance(1, 350 * PAGE, 70.0)  # 50 + 200 + the 100 of log 7
    assert not place.is_beyond_end


def test_the_time_of_the_headroom_is_at_the_average_rate() -> None:
    place = place_in_log(log_page(9, 0), SPACE, now=1150)
    assert place.headroom_seconds == 450 / (150 / 150)  # 150 pages since log 7 was full, 150 s ago


def test_a_position_in_a_log_that_is_gone_has_no_headroom() -> None:
    place = place_in_log(log_page(6, 99), SPACE, now=1150)
    assert place.headroom is None
    assert place.behind.logs == 3


def test_a_position_beyond_the_end_is_told_from_one_in_the_log_buffer() -> None:
    assert not place_in_log(log_page(9, 60), SPACE, now=1150).is_beyond_end
    assert place_in_log(log_page(10, 0), SPACE, now=1150).is_beyond_end
    assert place_in_log(log_page(9, 50 + 4097), SPACE, now=1150).is_beyond_end


def test_without_fill_times_no_time_is_guessed() -> None:
    new = LogSpace((LogFile(1, 10 * PAGE, PAGE, is_current=True),), 0, PAGE)
    place = place_in_log(log_page(1, 0), new, now=1150)
    assert place.headroom_seconds is None
    assert place.headroom == LogDistance(0, 9 * PAGE, 90.0)
