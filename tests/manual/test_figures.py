"""The figures of the page on performance are one run's, put between two marks."""

from __future__ import annotations

import pytest

from lab.benchmarks.measuring import Report, busy_seconds, median_and_spread
from lab.benchmarks.page import BEGIN, END, PAGE, with_figures


def test_a_new_table_takes_the_place_of_the_old_one_and_of_nothing_else() -> None:
    page = f"before\n{BEGIN}\n| old |\n{END}\nafter\n"
    assert with_figures(page, "| new |\n") == f"before\n{BEGIN}\n| new |\n{END}\nafter\n"


@pytest.mark.parametrize("page", ["", BEGIN, END + BEGIN, BEGIN + END + BEGIN + END])
def test_a_page_without_its_marks_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="once each"):
        with_figures(page, "| new |")


def test_the_page_has_its_marks_around_a_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    kept = page.partition(BEGIN)[2].partition(END)[0]
    assert "| bytes -> spool " in kept
    assert with_figures(page, kept) == page


def test_a_report_says_when_and_on_what_it_was_measured_and_how_long_that_took() -> None:
    report = Report()
    report.add("decoding", "ten columns", "7 M/s", "Parquet 3 M/s: 2.3 x")
    text = report.text()
    assert text.startswith("| Stage")
    assert "cores" in text
    assert "minutes" in text


def test_chunks_that_are_stored_in_one_burst_were_not_read_in_it() -> None:
    """Eight chunks are read in 1.14 s, wait for one marker, and are stored within 0.1 s."""
    rows, reads, stores = 50_000, 0.142, 0.013
    read = [(reads * n, reads * (n + 1)) for n in range(8)]
    stored = [(2.0 + stores * n, 2.0 + stores * (n + 1)) for n in range(8)]

    between_first_and_last = 7 * rows / (stored[-1][1] - stored[0][1])
    assert between_first_and_last > 3_800_000  # ten times what a server and a connection have moved

    assert 8 * rows / busy_seconds(read + stored) == pytest.approx(8 * rows / (8 * (reads + stores)))


def test_work_at_the_same_time_counts_once_and_waits_do_not_count() -> None:
    assert busy_seconds([]) == 0
    assert busy_seconds([(1, 3), (0, 2), (1.5, 1.75), (10, 11)]) == 4


def test_a_rate_is_the_median_of_the_runs_and_not_the_best() -> None:
    assert median_and_spread([351e3, 3857e3, 340e3]) == "median 351 k/s (340 k to 3.86 M)"
