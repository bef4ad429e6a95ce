"""How text meets the edge of a terminal: hanging lines, sentences, and lines that are to be copied."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from harness.runs.places import at
from informix_cdc.terminal import counted, hanging, unbroken
from informix_cdc.terminal import screen as screen_module
from informix_cdc.terminal.screen import say

COMMAND = "As user informix: cd $INFORMIXDIR/etc && dbaccess - syscdcv1.sql"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_module, "width_of", lambda _stream: 30)


def test_a_number_and_its_noun_agree() -> None:
    assert [counted(number, "row") for number in (0, 1, 2, 1200)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "1,200 rows",
    ]


@pytest.mark.parametrize("width", [8, 20, 30, 63, 64, 65, 200])
def test_a_line_to_copy_is_one_line_with_the_same_words_that_breaks_between_them(width: int) -> None:
    line = unbroken(COMMAND, width, indent=2)
    assert line.split() == COMMAND.split()
    assert "\n" not in line
    pieces = " ".join(line[at : at + width] for at in range(0, len(line), width)).split()
    assert [word for word in COMMAND.split() if len(word) <= width - 2 and word not in pieces] == []


@pytest.mark.parametrize("text", ["chmod 12 /x/y", "chmod /abcdef go-w /abcdefghijkl now", COMMAND])
def test_a_piece_as_long_as_the_terminal_keeps_its_blank(text: str) -> None:
    for width in range(4, 40):
        with at(f"{width} columns"):
            line = unbroken(text, width)
            assert line.split() == text.split()
            rows = " ".join(line[n : n + width] for n in range(0, len(line), width)).split()
            assert [word for word in text.split() if len(word) < width and word not in rows] == []


def test_a_sentence_is_continued_below_its_own_beginning(
    narrow: None, capsys: pytest.CaptureFixture[str]
) -> None:
    say("What comes next:\n  1. ALTER, while no writer changes the table.")
    assert capsys.readouterr().err.splitlines() == [
        "What comes next:",
        "  1. ALTER, while no writer",
        "    changes the table.",
    ]


def test_a_pipe_gets_every_line_whole(capsys: pytest.CaptureFixture[str]) -> None:
    say(COMMAND * 5)
    assert capsys.readouterr().err == COMMAND * 5 + "\n"


@pytest.mark.parametrize(
    ("head", "lines"),
    [
        ("12:00:00 ", ["12:00:00 number=1 note=two", "         words more=three"]),
        (
            "12:00:00 a_long_table ",
            ["12:00:00 a_long_table", "         number=1 note=two", "         words more=three"],
        ),
    ],
)
def test_values_hang_below_their_column_also_where_the_head_is_too_long(
    head: str, lines: list[str]
) -> None:
    console = Console(file=io.StringIO(), width=30, force_terminal=True)
    body = Text("number=1 note=two words more=three")
    found = [line.plain.rstrip() for line in hanging(Text(head), body, console, 9)]
    assert found == lines


def test_a_terminal_that_is_too_narrow_for_indents_gets_none() -> None:
    console = Console(file=io.StringIO(), width=25, force_terminal=True)
    assert [line.plain for line in hanging(Text("h "), Text("b c"), console, 9)] == ["h b c"]
