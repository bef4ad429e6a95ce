"""Assemblers to feed, short records to feed them, and what they deliver."""

from __future__ import annotations

from harness.capture.streams import begin, commit, rows_of
from informix_capture_client.positions import Position
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import (
    CommittedTransactions,
    PositionPassed,
    StreamEvent,
)


def resumed(commit: int = 0, restart: int = 0, *unseen: int) -> TransactionAssembler:
    return TransactionAssembler(Position(commit, restart, unseen))


def delivered(events: list[StreamEvent]) -> list[list[int]]:
    """Return the sequence numbers of the rows of each delivered transaction."""
    return [[r[1] for r in rows_of(e)] for e in events if isinstance(e, CommittedTransactions)]


def positions(events: list[StreamEvent]) -> list[Position]:
    return [e.position for e in events if isinstance(e, CommittedTransactions | PositionPassed)]


def b(sequence: int, transaction: int = 1) -> bytes:
    return begin(sequence, transaction, 1000, 501)


def c(sequence: int, transaction: int = 1, time: int = 2000) -> bytes:
    return commit(sequence, transaction, time)
