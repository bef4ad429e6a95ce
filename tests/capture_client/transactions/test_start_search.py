"""Where a stream begins: at the first record that shows that what is older was read, and has ended."""

from __future__ import annotations

import pytest

from harness.capture.streams import begin, blocks, commit, rollback
from informix_capture_client.positions import LogEnd
from informix_capture_client.transactions.spans import Run, spans_of
from informix_capture_client.transactions.start_search import StartSearch
from informix_capture_client.transactions.transaction_ends import Ends
from informix_capture_client.transactions.unseen import UnseenTransactions

PAGE_BYTES = 4096
END = LogEnd(10 * PAGE_BYTES, 700)  # position and time of the log's end at the start
FLOOR = 8 * PAGE_BYTES  # two pages before it


def search(*unseen: int) -> StartSearch:
    return StartSearch(UnseenTransactions(unseen), END)


@pytest.mark.parametrize(
    ("timeout", "read_from", "unseen", "begins"),
    [
        (FLOOR + 1, FLOOR, (), True),
        (FLOOR + 1, FLOOR, (7,), False),  # it is open still
        (FLOOR, FLOOR, (), False),  # nothing of the page before the log's end has come
        (END.position, END.position, (), True),  # the session begins at the log's end
    ],
)
def test_a_stream_begins_at_a_timeout(
    timeout: int, read_from: int, unseen: tuple[int, ...], begins: bool
) -> None:
    assert search(*unseen).begins_at_timeout(timeout, read_from) == begins


@pytest.mark.parametrize(
    ("number", "time", "unseen", "begins"),
    [
        (END.position - 1, END.time, (), False),
        (END.position - 1, END.time + 1, (), True),
        (END.position, END.time, (), True),
        (END.position, END.time + 1, (7,), False),
    ],
)
def test_a_stream_begins_at_a_commit(
    number: int, time: int, unseen: tuple[int, ...], begins: bool
) -> None:
    assert search(*unseen).commit_in(ends(commit(number, 5, time))) == (number if begins else None)


def test_a_stream_does_not_begin_at_a_rollback() -> None:
    assert search().commit_in(ends(rollback(END.position, 5))) is None


def test_a_search_that_waits_no_longer_lets_a_stream_begin_beside_older_transactions() -> None:
    impatient = search(7)
    impatient.stop_waiting_for_unseen()
    assert impatient.begins_at_timeout(FLOOR, FLOOR)
    assert impatient.commit_in(ends(commit(END.position, 5, 0))) == END.position


def ends(last: bytes) -> Ends:
    (block,) = blocks([begin(FLOOR, 5, 0, 0) + last])
    return Ends.of(block, spans_of(Run(block, 0, 2)))
