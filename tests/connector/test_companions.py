"""Companions as one: each sees every answer, in their order, whatever the others say of it."""

from __future__ import annotations

from typing import Any

from informix_capture_client.stream import Answer, Read, Silence
from informix_capture_client.transactions import TransactionAssembler
from informix_cdc.companions import Companion, Companions


class Marked(Companion):
    """Puts its name behind what it sees, and says what it is told to."""

    def __init__(self, name: str, calls: list[str], *, is_due: bool = False) -> None:
        self._name, self._calls, self._is_due = name, calls, is_due

    def on_read(self, answer: Answer, now: float) -> Answer:
        self._calls.append(f"{self._name} reads {'a read' if isinstance(answer, Read) else 'silence'}")
        return Silence() if now > 1 else answer

    def due(self, _answer: Answer, _spool: Any) -> bool:
        self._calls.append(f"{self._name} is asked")
        return self._is_due

    def emit(self, _spool: Any, _encoder: Any) -> None:
        self._calls.append(f"{self._name} emits")


def a_read() -> Read:
    return Read([], 0, 0, TransactionAssembler(None))


def test_an_answer_passes_them_in_their_order_as_each_leaves_it() -> None:
    calls: list[str] = []
    both = Companions([Marked("a", calls), Marked("b", calls)])
    assert both.on_read(a_read(), 2.0) == Silence()
    assert calls == ["a reads a read", "b reads silence"]


def test_all_take_an_answer_in_though_the_first_has_rows_due_and_only_those_emit() -> None:
    calls: list[str] = []
    both = Companions([Marked("a", calls, is_due=True), Marked("b", calls)])
    assert both.due(a_read(), None)
    unused: Any = None
    both.emit(None, unused)
    assert calls == ["a is asked", "b is asked", "a emits"]


def test_none_at_all_let_everything_pass() -> None:
    none, answer = Companions([]), a_read()
    assert none.on_read(answer, 0.0) is answer
    assert none.may_leave_out_older(answer)
    assert not (none.is_over)
    assert not (none.is_urgent)
    assert not (none.due(answer, None))
