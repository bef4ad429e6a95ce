"""When everything has come that was in the log at the start: recorded by a read, and then only said."""

from __future__ import annotations

import time
from typing import Any

import pytest

from harness.capture.streams import begin, blocks, timeout
from informix_capture_client.positions import Position
from informix_capture_client.stream import Answer, Read, Silence
from informix_capture_client.transactions import PositionPassed, TransactionAssembler
from informix_cdc.capture.counts import Gauges
from informix_cdc.capture.end_of_log import JOIN_SECONDS, EndOfLogWatch

END = 1000


def watch(*, is_joining: bool = False) -> EndOfLogWatch:
    made = EndOfLogWatch(Gauges(), target_position=END)
    made.begin_session(0.0, is_joining=is_joining)
    return made


def reached(place: int) -> Answer:
    return Read([], place, 0, TransactionAssembler(Position(0, 0)))


def after(made: EndOfLogWatch, answer: Answer, now: float = 1.0) -> tuple[bool, bool]:
    assert made.on_read(answer, now) is answer
    said: Any = [(made.has_caught_up, made.is_at_end) for _ in range(2)]
    assert said[0] == said[1]  # to ask changes nothing
    return said[0]


def test_the_first_answer_beyond_the_start_is_urgent_and_no_later_one() -> None:
    made = watch()
    assert after(made, reached(END - 1)) == (False, False)
    assert after(made, reached(END)) == (True, True)
    assert made.is_urgent
    made.gauges.is_caught_up = True  # as the state records it, once it is in the spool
    assert after(made, reached(END + 1)) == (False, True)


def test_silence_says_nothing() -> None:
    made = watch()
    after(made, reached(END))
    assert after(made, Silence()) == (False, True)


def test_tables_that_join_are_waited_for_but_not_for_ever() -> None:
    made = watch(is_joining=True)
    assert after(made, reached(END)) == (False, True)
    assert after(made, reached(END), JOIN_SECONDS - 1) == (False, True)
    assert after(made, reached(END), JOIN_SECONDS) == (True, True)


def test_another_stream_has_another_end() -> None:
    made = watch()
    after(made, reached(END))
    made.begin_stream()
    assert after(made, reached(END)) == (False, False)


def test_a_timeout_of_a_read_from_before_the_question_proves_nothing() -> None:
    """Reads wait in a queue: what was committed in between is not in them."""
    made = watch()
    after(made, reached(END))
    made.gauges.is_caught_up = True
    made.watch_for(END + 500, None)
    asked_at = time.monotonic()
    assert made.gauges.is_caught_up
    assert after(made, _timeout(asked_at - 1)) == (False, False)
    assert made.questions == 1
    assert not made.gauges.is_caught_up
    assert after(made, _timeout(asked_at + 1)) == (True, True)


@pytest.mark.parametrize(
    ("records", "shows_end"), [(timeout(END), True), (begin(END, 1, 1000, 501), False)]
)
def test_a_timeout_that_begins_a_stream_shows_the_end_too(records: bytes, shows_end: bool) -> None:
    """A quiet server was waited for a second time, until its next TIMEOUT."""
    (block,) = blocks([records])
    begins = PositionPassed(Position(END - 1, END - 1), is_timeout=False)
    assembler = TransactionAssembler(Position(0, 0))
    made = watch()
    assert after(made, Read([begins], END - 1, 0, assembler, block)) == (shows_end, shows_end)


def _timeout(began_at: float) -> Answer:
    passed = PositionPassed(Position(END, END), is_timeout=True)
    return Read([passed], END, 0, TransactionAssembler(Position(0, 0)), began_at=began_at)
