"""A server that answers something else than was asked: our own error, with statement and column."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from harness.servers.catalog_questions import QUESTIONS, ask, sound_answers
from informix_capture_client import statements
from informix_capture_client.errors import InformixCdcError, ProtocolViolation
from informix_capture_client.transport.base import Row
from informix_capture_client.transport.checked_rows import integer, real, selected_columns

Damage = Callable[[Row, int], Row]
DAMAGES: dict[str, Damage] = {
    "a text": lambda row, at: (*row[:at], "eleven", *row[at + 1 :]),
    "nothing": lambda row, at: (*row[:at], None, *row[at + 1 :]),
    "an empty text": lambda row, at: (*row[:at], "", *row[at + 1 :]),
    "a fraction": lambda row, at: (*row[:at], "1.5", *row[at + 1 :]),
    "no number": lambda row, at: (*row[:at], "nan", *row[at + 1 :]),
    "digits without end": lambda row, at: (*row[:at], "9" * 5_000, *row[at + 1 :]),
    "more than 64 bits": lambda row, at: (*row[:at], str(-(1 << 64)), *row[at + 1 :]),
    "a column too few": lambda row, at: row[:at],
    "a column too many": lambda row, at: (*row[:at], "1", *row[at:]),
}


def damaged(question: str, damage: Damage) -> Iterator[list[list[Row]]]:
    """Yield the answers to a question with the damage in one value of one of them."""
    sound = sound_answers(question)
    for number, rows in enumerate(sound):
        for at in range(len(rows[0]) if rows else 0):
            yield [*sound[:number], [damage(row, at) for row in rows], *sound[number + 1 :]]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_that_is_none_brings_out_nothing_but_our_own_errors(
    question: str, damage: str
) -> None:
    for answers in damaged(question, DAMAGES[damage]):
        with contextlib.suppress(InformixCdcError):
            ask(question, answers)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_sound_answers_are_sound(question: str) -> None:
    ask(question, sound_answers(question))


def test_a_text_in_place_of_a_number_is_named_with_statement_and_column() -> None:
    with pytest.raises(ProtocolViolation) as caught:
        ask("current position", [[("15", "eleven")]])
    assert statements.CURRENT_LOG in caught.value.message
    assert "'eleven' in column used" in caught.value.message


def test_a_row_of_another_width_is_named_with_statement_and_both_widths() -> None:
    with pytest.raises(
        ProtocolViolation, match=r"3 columns for .SELECT t.uniqid, t.used .* instead of 2"
    ):
        ask("current position", [[("15", "1", "2")]])


def test_numbers_are_read_with_blanks_and_null_as_0() -> None:
    assert [integer(value, "s", "c") for value in ("7", " 7  ", "-7", None, "")] == [7, 7, -7, 0, 0]
    assert [real(value, "s", "c") for value in ("1.5", "1e3", None)] == [1.5, 1000.0, 0.0]


def test_columns_are_those_that_a_statement_selects() -> None:
    assert selected_columns(statements.SERVER_VERSION) == ("dbinfo('version', 'full')",)
    assert selected_columns(statements.CURRENT_LOG) == ("uniqid", "used")
    assert len(selected_columns(statements.UNIQUE_INDEXES)) == 18
    assert selected_columns(statements.SESSION_TABLES) == ()
    assert selected_columns(statements.ERROR_TEXT) == ()
