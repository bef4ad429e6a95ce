"""The manual's tables are what the code declares, and every option has its place in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from informix_cdc.options.source import option_rows
from manual.made_parts import PARTS, REMEDY, ROOT, pages, parts_used, with_made_parts

OLD = "before\n<!-- make docs: {} -->\n| OLD |\n<!-- end -->\nafter\n"


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_a_page_says_what_the_code_says(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert with_made_parts(page) == page, REMEDY


def test_each_part_that_can_be_made_stands_on_some_page() -> None:
    assert {part for path in pages() for part in parts_used(path.read_text("utf-8"))} == set(PARTS)


def test_a_part_that_is_out_of_date_is_replaced_and_nothing_else() -> None:
    rows = {name: (default, meaning) for name, default, meaning in option_rows()}
    made = with_made_parts(OLD.format("options port lobs"))
    assert made.splitlines() == [
        "before",
        "<!-- make docs: options port lobs -->",
        "| option | default | meaning |",
        "|---|---|---|",
        f"| `port` | 9088 | {rows['port'][1]} |",
        f"| `lobs` | handle | {rows['lobs'][1]} |",
        "<!-- end -->",
        "after",
    ]
    assert with_made_parts(made) == made


def test_two_parts_without_words_on_one_page_are_two() -> None:
    made = with_made_parts(OLD.format("events") + OLD.format("metrics"))
    assert parts_used(made) == {"events", "metrics"}
    assert made.count("| event |") == made.count("| metric |") == 1
    assert [line for line in made.splitlines() if line in ("before", "after")] == [
        "before",
        "after",
    ] * 2


@pytest.mark.parametrize(
    ("mark", "says"), [("options hots", "hots"), ("news", "types, codesets, events")]
)
def test_a_mark_that_names_nothing_is_refused(mark: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        with_made_parts(OLD.format(mark))


def test_a_link_to_code_leads_to_its_line() -> None:
    link = "see [`{}`](../connector/informix_cdc/capture/loop.py#L{}) first"
    line = int(re.findall(r"#L(\d+)", with_made_parts(link.format("capture", 1)))[0])
    code = (ROOT / "connector/informix_cdc/capture/loop.py").read_text(encoding="utf-8")
    assert code.splitlines()[line - 1] == "def capture("
    with pytest.raises(ValueError, match=r"loop\.py does not define captured"):
        with_made_parts(link.format("captured", line))
