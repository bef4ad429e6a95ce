"""What Spark has asked of a capture.

Rule: Spark's threads write it, by stream; the capture reads it to know when it must wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from informix_capture_client.positions import Position, RecordPlace
from informix_checkpoints.spool import Spool

_NOWHERE: RecordPlace = (-1, 0)


@dataclass(slots=True)
class SparkSide:
    """Up to where Spark is done with each stream, and up to where it has planned.

    Attributes:
        restart: where a new session of the query would begin; None before the first batch.
    """

    restart: int | None = None
    _taken: dict[str, RecordPlace] = field(default_factory=dict)  # by stream, as in the next one
    _planned: dict[str, RecordPlace] = field(default_factory=dict)

    def take(self, stream: str, position: Position) -> bool:
        """Note that Spark asks for what lies above a place, so is done with the rest; tell if news."""
        self.restart = position.restart or None
        is_news = position.place > self._taken.get(stream, _NOWHERE)
        if is_news:
            self._taken[stream] = position.place
        return is_news

    def plan(self, stream: str, upto: RecordPlace) -> None:
        """Note that Spark asks for a range up to a place: that must not wait for room."""
        self._planned[stream] = max(upto, self._planned.get(stream, _NOWHERE))

    def taken(self, stream: str) -> int | None:
        """Return the commit up to which Spark is done with a stream; None before its first batch."""
        place = self._taken.get(stream)
        return None if place is None else place[0]

    def has_taken(self, spool: Spool) -> bool:
        """Tell whether Spark is done with everything that a spool holds."""
        return self._taken.get(spool.stream, _NOWHERE) >= spool.end.place

    def bytes_ahead(self, spool: Spool) -> int:
        """Return how much lies in a spool that Spark has neither taken nor planned."""
        asked = [asked.get(spool.stream, _NOWHERE) for asked in (self._taken, self._planned)]
        return spool.bytes_above(max(asked))
