"""Which commit place a stream had reached a while ago.

Rule: times are handed in, as seconds from anywhere; what is not known exactly is taken for older.
"""

from __future__ import annotations

from collections import deque

# A low watermark is at least so old: what committed below it has had that long to let its locks go.
AGE_SECONDS = 1.0
# where a commit waits for a secondary's answer with its locks held
AGE_WITH_SECONDARY_SECONDS = 30.0
_STEPS = 16  # in which an age is known


class AgedPlaces:
    """Commit places of a stream, as far back as one age.

    Args:
        age_seconds: how old a place must be.
    """

    def __init__(self, age_seconds: float = AGE_SECONDS) -> None:
        self._age_seconds = age_seconds
        self._reached: deque[tuple[float, int]] = deque()  # times and places, both rising

    def note(self, commit: int, now: float) -> None:
        """Note that everything up to a commit place has been taken in."""
        if self._reached and now - self._reached[-1][0] < self._age_seconds / _STEPS:
            return  # a later call notes it
        self._reached.append((now, commit))
        while len(self._reached) > 1 and self._is_old(self._reached[1][0], now):
            self._reached.popleft()

    def place(self, now: float) -> int | None:
        """Return the newest place that is old enough; None before there is one."""
        old = [commit for time, commit in self._reached if self._is_old(time, now)]
        return old[-1] if old else None

    def _is_old(self, time: float, now: float) -> bool:
        return now - time >= self._age_seconds
