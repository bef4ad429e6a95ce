"""The published fault matrix is what the markers of the tests say."""

from __future__ import annotations

import pytest

from faults.fault_matrix import BEGIN, END, PAGE, Line, lines_of, page_with, tables

MODULE = """
SEEDS = 500

@pytest.mark.fault(fault="a | b", outcome="works " "on", seeds=SEEDS)
@pytest.mark.parametrize("n", [1])
def test_it(n): ...

@pytest.mark.xfail(strict=True)
@pytest.mark.fault(fault="c", outcome="is told")
def test_not_yet(): ...

def test_other(): ...
"""


def test_the_page_is_what_the_markers_make() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page_with(tables(), page) == page, "run: python -m faults.fault_matrix (in tests/)"


def test_a_marker_makes_a_line() -> None:
    assert lines_of(MODULE, "x/test_x.py") == [
        Line("a | b", "works on", "x/test_x.py::test_it", "500"),
        Line("c", "**not yet**: is told", "x/test_x.py::test_not_yet", ""),
    ]
    assert str(lines_of(MODULE, "f.py")[0]) == "| a \\| b | works on | `f.py::test_it` | 500 |"


@pytest.mark.parametrize("arguments", ['fault="x"', '"x", outcome="y"', 'fault="x", outcome="y", z=1'])
def test_a_marker_that_says_too_little_or_too_much_is_refused(arguments: str) -> None:
    with pytest.raises(ValueError, match="test_x: the marker takes fault, outcome, seeds"):
        lines_of(f"@pytest.mark.fault({arguments})\ndef test_x(): ...", "f.py")


def test_a_marker_that_must_be_run_to_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="malformed"):
        lines_of('@pytest.mark.fault(fault=f"{x}", outcome="y")\ndef test_x(): ...', "f.py")


def test_only_what_is_between_the_marks_is_replaced() -> None:
    assert page_with("new", f"a\n{BEGIN}old{END}\nb") == f"a\n{BEGIN}\n\nnew\n\n{END}\nb"
    with pytest.raises(ValueError, match="lacks the line"):
        page_with("new", f"a {BEGIN}")
