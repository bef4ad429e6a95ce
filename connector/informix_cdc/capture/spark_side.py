"""What Spark has asked of a capture.

Rule: Spark's threads write it, by stream; the capture reads it to know when it must wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from informix_capture_client.positions import Position
from informix_checkpoints.spool import Spool


@dataclass(slots=True)
class SparkSide:
    """Up to where Spark is done with each stream, and up to where it has planned.

    Attributes:
        restart: where a new session of the query would begin; None before the first batch.
    """

    restart: int | None = None
    _taken: dict[str, int] = field(default_factory=dict)  # commits, by stream, as in the next one
    _planned: dict[str, int] = field(default_factory=dict)

    def take(self, stream: str, position: Position) -> bool:
        """Note that Spark asks for what lies above a commit, so is done with the rest; tell if news."""
        self.restart = position.restart or None
        is_news = position.commit > self._taken.get(stream, -1)
        if is_news:
            self._taken[stream] = position.commit
        return is_news

    def plan(self, stream: str, commit: int) -> None:
        """Note that Spark asks for a range up to a commit: that must not wait for room."""
        self._planned[stream] = max(commit, self._planned.get(stream, 0))

    def taken(self, stream: str) -> int | None:
        """Return the commit up to which Spark is done with a stream; None before its first batch."""
        return self._taken.get(stream)

    def has_taken(self, spool: Spool) -> bool:
        """Tell whether Spark is done with everything that a spool holds."""
        return self._taken.get(spool.stream, -1) >= spool.end.commit

    def bytes_ahead(self, spool: Spool) -> int:
        """Return how much lies in a spool that Spark has neither taken nor planned."""
        taken, planned = self._taken.get(spool.stream, 0), self._planned.get(spool.stream, 0)
        return spool.bytes_above(max(taken, planned))
