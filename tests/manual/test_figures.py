"""The figures of the page on performance are one run's, put between two marks."""

from __future__ import annotations

import pytest

from lab.benchmarks.measuring import Report
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
