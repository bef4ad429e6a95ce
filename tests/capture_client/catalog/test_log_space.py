from __future__ import annotations

import pytest

from harness.servers.scripted_transport import ScriptedTransport
from informix_capture_client import statements
from informix_capture_client.catalog.log_space import LogFile, LogSpace, read_log_space
from informix_capture_client.errors import ServerRefused
from informix_capture_client.positions import log_page
from informix_capture_client.transport.base import Row

PAGE = 2048
DAY = 86_400

# Five files of 1000 pages: 7 and 8 are full, 9 is half full, two were never used.
SPACE = LogSpace(
    files=(
        LogFile(7, 1000 * PAGE, 1000 * PAGE, filled_at=DAY),
        LogFile(8, 1000 * PAGE, 900 * PAGE, filled_at=DAY + 100),
        LogFile(9, 1000 * PAGE, 500 * PAGE, is_current=True),
    ),
    free_bytes=2000 * PAGE,
    page_bytes=PAGE,
)


def test_oldest_current_and_total_are_told() -> None:
    assert (SPACE.oldest.number, SPACE.current.number) == (7, 9)
    assert SPACE.total_bytes == 5000 * PAGE


@pytest.mark.parametrize(
    ("position", "pages"),
    [(log_page(7, 0), 2500), (log_page(8, 3), 3500), (log_page(9, 500), 4500), (log_page(6, 999), 0)],
    ids=["in the oldest log", "in the one between", "in the current one", "in one that is gone"],
)
def test_a_place_is_overwritten_when_what_lies_before_it_is_used_again(
    position: int, pages: int
) -> None:
    assert SPACE.headroom(position) == pages * PAGE
    assert SPACE.is_overwritten(position) == (pages == 0)


def test_a_place_with_no_headroom_left_is_not_yet_overwritten() -> None:
    full = LogSpace((LogFile(7, PAGE, PAGE, is_current=True),), 0, PAGE)
    assert full.headroom(log_page(7, 0)) == 0
    assert not full.is_overwritten(log_page(7, 0))


@pytest.mark.parametrize(
    ("position", "pages"),
    [
        (log_page(7, 0), 2400),
        (log_page(8, 850), 550),
        (log_page(9, 500), 0),
        (log_page(9, 501), 0),
        (log_page(10, 0), 0),
    ],
)
def test_what_was_written_since_a_position_is_counted_in_pages(position: int, pages: int) -> None:
    assert SPACE.bytes_since(position) == pages * PAGE


def test_the_rate_is_what_was_written_since_the_oldest_fill_time() -> None:
    assert SPACE.bytes_per_second(DAY + 200) == 1400 * PAGE / 200
    assert SPACE.fastest_bytes_per_second() == 900 * PAGE / 100


def test_without_fill_times_no_rate_is_guessed() -> None:
    new = LogSpace((LogFile(1, PAGE, 0, is_current=True),), 0, PAGE)
    assert new.bytes_per_second(DAY) is None
    assert new.fastest_bytes_per_second() is None


class Sysmaster(ScriptedTransport):
    """Refuses to answer what its script does not have."""

    def rows(self, statement: str, *_: int | str) -> list[Row]:
        if statement not in self.tables:
            raise ServerRefused("no such table")
        return self.tables[statement]


LOGS: dict[str, list[Row]] = {
    statements.BASE_PAGE_BYTES: [("4096",)],
    statements.LOG_FILES: [("3", "10", "4", "1"), ("0", "10", "0", "0"), ("2", "10", "10", "0")],
    statements.LOG_FILL_TIMES: [("3", "50"), ("2", "70"), ("0", "0")],
}


def test_sysmaster_is_read_with_the_page_size_of_the_root_dbspace() -> None:
    assert read_log_space(Sysmaster(tables=LOGS)) == LogSpace(
        (LogFile(2, 40960, 40960, filled_at=70), LogFile(3, 40960, 16384, is_current=True)),
        free_bytes=40960,
        page_bytes=4096,
    )


def test_without_a_right_on_the_fill_times_the_rest_is_told() -> None:
    hidden = {name: rows for name, rows in LOGS.items() if name != statements.LOG_FILL_TIMES}
    space = read_log_space(Sysmaster(tables=hidden))
    assert [file.filled_at for file in space.files] == [None, None]


@pytest.mark.parametrize("missing", [statements.BASE_PAGE_BYTES, statements.LOG_FILES])
def test_a_server_that_names_no_page_size_or_no_current_log_is_refused(missing: str) -> None:
    with pytest.raises(ServerRefused, match="no page size"):
        read_log_space(Sysmaster(tables={**LOGS, missing: []}))
