"""The clock of a capture: the time, and waiting until a time has come.

Rule: whatever decides by a time, or waits for one, uses the clock of its capture. A test can move it.
"""

from __future__ import annotations

import threading
import time


class Clock:
    """A monotonic clock, in seconds."""

    def __call__(self) -> float:
        """Return the time."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the seconds are over; return whether it is set."""
        return event.wait(seconds)


MONOTONIC = Clock()
