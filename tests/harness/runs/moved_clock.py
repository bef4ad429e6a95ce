"""Clocks of a capture that a test moves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.runs.background import meanwhile
from informix_cdc.clock import Clock

_STEP_SECONDS = 5.0  # shorter than any silence that is an error
_LONGEST_STEP_REAL_SECONDS = 1.0
_RUNNING_SECONDS = 1.0


class ReadClock(Clock):
    """A clock whose time somebody else has; waiting is up to the event that is waited for."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def __call__(self) -> float:
        return self._now()


class MovedClock(Clock):
    """The time of a capture whose waiting a test is about: it stands still until it is moved.

    Threads that wait on it wake when it is moved. It moves in steps, and after each step it lets each
    thread that looks at the time look again: one that the machine has no time for is not overtaken.
    """

    def __init__(self, now: float = 1000.0) -> None:
        self._now = now
        self._steps = 0
        self._looked: dict[int, int] = {}  # the step at which each thread looked last
        self._looks = 0
        self._moved = threading.Condition()

    def __call__(self) -> float:
        with self._moved:
            self._looks += 1
            self._looked[threading.get_ident()] = self._steps
            self._moved.notify_all()
            return self._now

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the clock has been moved by the seconds."""
        with self._moved:
            until = self._now + seconds
            self._looked.pop(threading.get_ident(), None)
            while not event.is_set() and self._now < until:
                self._moved.wait(0.02)  # the event does not wake us
        return event.is_set()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let time pass during a block, as fast as those who look at it keep up."""
        with meanwhile(lambda: self.move(_RUNNING_SECONDS), 0):
            yield

    def move(self, seconds: float) -> None:
        """Let seconds pass."""
        while seconds > 0:
            with self._moved:
                step = min(seconds, _STEP_SECONDS)
                self._now, seconds, looks = self._now + step, seconds - step, self._looks
                self._looked.pop(threading.get_ident(), None)
                self._steps += 1
                self._moved.notify_all()
                deadline = time.monotonic() + _LONGEST_STEP_REAL_SECONDS
                while (self._looks < looks + 4 or self._is_behind()) and (
                    left := deadline - time.monotonic()
                ) > 0:
                    self._moved.wait(left)

    def _is_behind(self) -> bool:
        """Return whether a thread that looked in the last two steps has not looked since."""
        return any(self._steps - 2 <= step < self._steps for step in self._looked.values())
