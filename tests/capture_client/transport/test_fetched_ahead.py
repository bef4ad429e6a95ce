"""The next answer is on its way while one is decoded, and never more than that."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from harness.runs.patience import patiently
from informix_capture_client.transport.sqli.cursor import fetched_ahead


class Server:
    """Answers from a list; an exception in it is raised."""

    def __init__(self, *answers: list[int] | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.has_been_asked = threading.Semaphore(0)
        self.may_answer = threading.Event()
        self.may_answer.set()

    def fetch(self) -> list[int]:
        self.asked += 1
        self.has_been_asked.release()
        assert self.may_answer.wait(patiently(10))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_rows_come_in_the_order_of_the_answers() -> None:
    assert list(fetched_ahead(Server([1, 2], [3], [4, 5], []).fetch)) == [1, 2, 3, 4, 5]


def test_nothing_is_asked_behind_the_end() -> None:
    server = Server([1], [])
    assert list(fetched_ahead(server.fetch)) == [1]
    assert server.asked == 2


def test_nothing_is_asked_before_the_first_row_is_wanted() -> None:
    server = Server([1], [])
    with closing(fetched_ahead(server.fetch)):
        assert server.asked == 0


def test_the_next_answer_is_asked_for_while_one_is_in_hand() -> None:
    server = Server([1, 2], [3], [])
    with closing(fetched_ahead(server.fetch)) as rows:
        assert next(rows) == 1
        for _ in range(2):
            assert server.has_been_asked.acquire(timeout=patiently(10))
        assert next(rows) == 2
        assert server.asked == 2  # and no other before this one is taken


def test_an_error_comes_behind_the_rows_before_it() -> None:
    rows = fetched_ahead(Server([1], ValueError("refused")).fetch)
    assert next(rows) == 1
    with pytest.raises(ValueError, match="refused"):
        next(rows)


def test_who_stops_waits_for_the_answer_that_is_on_its_way() -> None:
    server = Server([1], [2], [])
    rows = fetched_ahead(server.fetch)
    server.has_been_asked.acquire(blocking=False)
    assert next(rows) == 1
    server.may_answer.clear()
    stopping = threading.Thread(target=rows.close)
    stopping.start()
    server.may_answer.set()
    stopping.join(patiently(10))
    assert not stopping.is_alive()
    assert server.answers == [[]]  # the second was taken, and the third not asked for


def test_who_stops_is_told_nothing_of_an_error_on_its_way() -> None:
    with closing(fetched_ahead(Server([1], ValueError("refused")).fetch)) as rows:
        assert next(rows) == 1


def test_its_thread_ends_with_it() -> None:
    before = threading.active_count()
    assert list(fetched_ahead(Server([1], []).fetch)) == [1]
    for thread in threading.enumerate()[before:]:
        thread.join(patiently(10))
    assert threading.active_count() == before
