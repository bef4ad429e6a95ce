"""The pictures are those that the code draws now, are well-formed, and stand in the manual."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from manual.made_parts import ROOT
from manual.pictures.files import FIGURES, FOLDER, drawn
from manual.pictures.plots import THROUGHPUT, Figures

NAMES = sorted(path.name for path in FOLDER.glob("*.svg"))


def test_every_drawn_picture_is_the_one_that_is_drawn_now() -> None:
    stale = [name for name, text in drawn().items() if (FOLDER / name).read_text() != text]
    assert not stale, f"{stale}: run `make docs`"


def test_no_other_picture_lies_there_but_the_demo_s() -> None:
    assert set(NAMES) == {*drawn(), "demo.svg"}


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_well_formed_and_says_what_it_shows(name: str) -> None:
    root = ElementTree.fromstring((FOLDER / name).read_text(encoding="utf-8"))
    assert root.tag.endswith("svg")
    assert any("".join(text.itertext()).strip() for text in root.iter() if text.tag.endswith("text"))


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_stands_in_a_page_with_words_for_those_who_cannot_see_it(name: str) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = [
        found[1]
        for page in pages
        for found in re.finditer(r"!\[([^\]]+)\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
        if Path(found[2]).name == name
    ]
    assert shown
    assert all(len(words.split()) > 3 for words in shown)


def test_words_of_a_drawn_picture_stay_within_it() -> None:
    """A letter of a sans-serif font is some 0.62 of its size wide on average, at most."""
    for name, text in drawn().items():
        root = ElementTree.fromstring(text)
        width = float(root.attrib["width"])
        for each in root.iter("{http://www.w3.org/2000/svg}text"):
            length = 0.62 * float(each.attrib["font-size"]) * len(each.text or "")
            begin = {"start": 0.0, "middle": length / 2, "end": length}[each.attrib["text-anchor"]]
            left = float(each.attrib["x"]) - begin
            assert left > -5, (name, each.text)
            assert left + length < width + 5, (name, each.text)


def test_no_text_of_the_demo_s_picture_needs_blanks_at_its_ends() -> None:
    """librsvg, which many viewers use, leaves them out, and words run into each other."""
    root = ElementTree.fromstring((FOLDER / "demo.svg").read_text(encoding="utf-8"))
    texts = ["".join(each.itertext()) for each in root.iter() if each.tag.endswith("text")]
    assert [text for text in texts if text.strip("\xa0") != text] == []


def test_the_demo_s_picture_is_of_a_run_that_was_verified() -> None:
    text = (FOLDER / "demo.svg").read_text(encoding="utf-8").replace("&#160;", " ")
    assert re.search(r"verified|every value|as committed", text)
    assert "make demo" in text


def test_plots_take_their_figures_from_the_page_of_figures() -> None:
    figures = Figures.read(FIGURES)
    assert all(figures.rate(stage, what) > 0 for stage, what, _ in THROUGHPUT)
    assert len(figures.latencies()) == 4
    with pytest.raises(KeyError):
        figures.rate("decoding", "what nobody measured")
