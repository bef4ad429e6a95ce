"""What has gone into the spool, and when what Spark has not yet taken of it was committed.

Rule: the capture thread notes, Spark's thread takes, anybody asks; a lock keeps them apart. One entry
for each segment, so that it costs nothing where rows are many.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

from informix_checkpoints.spool import Segment


@dataclass(slots=True)
class Appended:
    """Counts since the process began.

    Attributes:
        rows, transactions, size_bytes: of all segments that were written.
    """

    rows: int = 0
    transactions: int = 0
    size_bytes: int = 0
    _waiting: deque[tuple[int, int | None]] = field(default_factory=deque)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def note(self, segment: Segment, first_commit_time: int) -> None:
        """Note a segment and the time of its first COMMTX; one without rows is not kept."""
        if segment.rows:
            with self._changing:
                self.rows += segment.rows
                self.transactions += segment.transactions
                self.size_bytes += segment.size_bytes
                self._waiting.append((segment.last_commit, first_commit_time))

    def begin(self, last_commit: int | None) -> None:
        """Begin with another spool, whose segments up to a commit are of unknown time."""
        with self._changing:
            self._waiting.clear()
            if last_commit is not None:
                self._waiting.append((last_commit, None))

    def take(self, commit: int) -> None:
        """Note that Spark is done with everything up to a commit."""
        with self._changing:
            while self._waiting and self._waiting[0][0] <= commit:
                self._waiting.popleft()

    def waiting_since(self) -> tuple[bool, int | None]:
        """Return whether anything waits, and the commit time of the oldest where that is known."""
        with self._changing:
            return (True, self._waiting[0][1]) if self._waiting else (False, None)
