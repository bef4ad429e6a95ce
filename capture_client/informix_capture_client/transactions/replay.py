"""Checks of a resumed session: the last delivered transaction, and the end of a planned batch.

Rule: a planned batch has the same transactions whenever it is read. If the spool has lost it, it is
captured again from the log. Commit order yields the same rows if it is the same log (docs/design.md,
section 5, "Replay without a spool"). Its end is always a COMMTX of that log, with rows or without,
since every COMMTX advances `commit` (decision 0003). Only what records prove is checked here; a slow
server proves nothing, and time limits are enforced by the callers.

A server that was restored, or lost the end of a buffered log in a crash, reuses positions. Then commits
at or below `commit` would be mistaken for delivered ones. So a session starts, where that costs little,
with the last delivered transaction, and checks that its COMMTX is unchanged (decision 0029).
"""

from __future__ import annotations

import numpy as np

from informix_capture_client.errors import NEW_STREAM, DataLoss, Gap
from informix_capture_client.positions import DeliveredCommit, Position, show
from informix_capture_client.transactions.transaction_ends import Ends


class Replay:
    """Checks a session for the COMMTX that ends a planned batch; None if no batch is replayed."""

    def __init__(self, expected_commit: int | None) -> None:
        self._expected = expected_commit

    @property
    def is_on(self) -> bool:
        """Whether a batch is being replayed whose end has not been read."""
        return self._expected is not None

    def require_progress(self, timeout_at: int) -> None:
        """Reject a TIMEOUT at or beyond the end of the replay: the log does not contain that end.

        Raises:
            DataLoss: the sequence number lies at or beyond the expected commit.
        """
        if self._expected is not None and timeout_at >= self._expected:
            raise replay_failed(self._expected, f"the server's log ends at {show(timeout_at)}")

    def end_at(self, ends: Ends) -> tuple[int, DataLoss] | None:
        """End the replay if one of these is the expected COMMTX, or lies above it.

        Returns:
            The place of the COMMTX that shows an error, and the error.
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
    """Return the error for a planned batch that the server's log does not contain."""
    return DataLoss(
        f"a batch that Spark has planned ends at commit {show(expected)}, but {what}.",
        f"The checkpoint was written for another log: {NEW_STREAM}.",
        expected_commit=expected,
    )


class ContinuityCheck:
    """Checks that a session's log contains the last transaction delivered before the session.

    Attributes:
        awaited: that transaction, until its COMMTX has been read.
    """

    def __init__(self, start: Position | None, begins_at: int | None = None) -> None:
        known = start.last_delivered if start else None
        place = begins_at if begins_at is not None else (start.restart if start else 0)
        # A session that starts after its BEGINTX may not report it: some servers hide such ends.
        self.awaited = known if known is not None and place <= known.begin else None

    def check(self, ends: Ends) -> tuple[int, DataLoss] | None:
        """Check the first COMMTX at or above the awaited one; return its place and any error."""
        if (known := self.awaited) is None:
            return None
        reached = np.flatnonzero(ends.is_commit & (ends.sequence_numbers >= known.commit))
        if len(reached) == 0:
            return None
        first = int(reached[0])
        number, place = int(ends.sequence_numbers[first]), int(ends.places[first])
        time = int(ends.block.times(ends.places[first : first + 1])[0])
        if (number, time) == (known.commit, known.time):
            self.awaited = None
            return None
        return place, other_log(known, f"the log has a commit at {show(number)} in second {time}")


def other_log(known: DeliveredCommit, what: str) -> DataLoss:
    """Return the error for a log that does not contain a transaction delivered from it."""
    return DataLoss(
        f"the last delivered transaction committed at {show(known.commit)} in second"
        f" {known.time}, but {what}: the server was restored, or lost the end of its log.",
        f"Changes may be missing, because log positions were reused: {NEW_STREAM}.",
        position=known.commit,
        gap=Gap.OTHER_LOG,
    )
