"""A batch that is captured again ends at its own commit, or is lost; a slow server proves no loss."""

from __future__ import annotations

import pytest

from harness.capture.streams import (
    begin,
    commit,
    feed,
    row,
    rows_of,
    timeout,
)
from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import Position
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions, StreamEvent


def resumed(commit: int = 0, restart: int = 0) -> TransactionAssembler:
    return TransactionAssembler(Position(commit, restart))


def delivered(events: list[StreamEvent]) -> list[list[int]]:
    """Return the sequence numbers of the rows of each delivered transaction."""
    return [[r[1] for r in rows_of(e)] for e in events if isinstance(e, CommittedTransactions)]


def b(sequence: int, transaction: int = 1) -> bytes:
    return begin(sequence, transaction, 1000, 501)


def c(sequence: int, transaction: int = 1) -> bytes:
    return commit(sequence, transaction, 2000)


def replay(expected: int) -> TransactionAssembler:
    return TransactionAssembler(Position(10, 10), expected_commit=expected)


def test_a_replay_passes_exactly_the_expected_commit_and_goes_on() -> None:
    events = feed(replay(13), b(11), row(12), c(13), timeout(14), b(15), row(16), c(17))
    assert delivered(events) == [[12], [16]]


def test_a_replay_that_meets_a_later_commit_first_is_loss() -> None:
    with pytest.raises(DataLoss, match="ends at commit 0:0xd, but the log continues with 0:0xe"):
        feed(replay(13), b(11), row(12), c(14))


def test_a_replay_that_meets_a_timeout_beyond_its_end_is_loss_at_once() -> None:
    with pytest.raises(DataLoss, match="ends at commit 0:0xd, but the server's log ends at 0:0xd"):
        feed(replay(13), b(11), row(12), timeout(13))


def test_a_replay_bears_any_number_of_timeouts_before_its_end() -> None:
    events = feed(replay(13), b(11), row(12), *[timeout(12)] * 1000, c(13))
    assert delivered(events) == [[12]]
