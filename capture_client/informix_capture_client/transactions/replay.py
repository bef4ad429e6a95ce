"""Capture a planned batch again: the log must show its last COMMTX, and nothing beyond it first.

Rule: a batch that Spark has planned holds the same transactions whenever it is read. If the spool has
lost it, it is captured again from the log; commit order makes it the same rows, if it is the same log
(docs/design.md, section 5, "Replay without a spool"). Its end is always a COMMTX of that log, with rows
or without, since every COMMTX moves `commit` (decision 0003). What the records prove is judged here; a
server that is slow proves nothing, and how long it may be is judged where there is a clock.
"""

from __future__ import annotations

import numpy as np

from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import show
from informix_capture_client.transactions.ends import Ends


class Replay:
    """Watches a session for the COMMTX at which a planned batch ends; None: no batch is replayed."""

    def __init__(self, expected_commit: int | None) -> None:
        self._expected = expected_commit

    @property
    def is_on(self) -> bool:
        """Whether a batch is replayed whose end has not passed."""
        return self._expected is not None

    def require_progress(self, timeout_at: int) -> None:
        """Refuse a TIMEOUT at or beyond the end of the replay: the log was read so far without it.

        Raises:
            DataLoss: the sequence number lies at or beyond the expected commit.
        """
        if self._expected is not None and timeout_at >= self._expected:
            raise replay_failed(self._expected, f"the server has nothing beyond {show(timeout_at)}")

    def end_at(self, ends: Ends) -> tuple[int, DataLoss] | None:
        """End the replay if one of these is the expected COMMTX, or lies above it.

        Returns:
            What is wrong, and the place of the COMMTX that shows it.
        """
        if (expected := self._expected) is None:
            return None
        reached = np.flatnonzero(ends.is_commit & (ends.sequence_numbers >= expected))
        if len(reached) == 0:
            return None
        self._expected = None
        sequence_number = int(ends.sequence_numbers[reached[0]])
        if sequence_number == expected:
            return None
        reason = replay_failed(expected, f"the log continues with {show(sequence_number)}")
        return int(ends.places[reached[0]]), reason


def replay_failed(expected: int, what: str) -> DataLoss:
    """Return the error for a planned batch of which it is proven that this log does not hold it."""
    return DataLoss(
        f"a batch that Spark has planned ends at commit {show(expected)}, but {what}.",
        "The log is not the one the checkpoint was written for: start a new stream.",
        expected_commit=expected,
    )
