"""Where a schedule's chances come from: a seed, or the list of what was decided before.

Rule: every decision is a number below a bound, and 0 is the least eventful one; so a schedule is a list
of numbers, and a shorter list, or one with zeros, is a simpler schedule.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Choice = TypeVar("Choice")


class Decisions:
    """Decides from a seed, or repeats a list and decides 0 behind its end."""

    def __init__(self, source: int | Sequence[int]) -> None:
        self.made: list[int] = []
        self._random = random.Random(source) if isinstance(source, int) else None
        self._given = [] if isinstance(source, int) else list(source)

    def below(self, bound: int) -> int:
        """Return a number from 0 up to a bound."""
        if self._random is not None:
            number = int(self._random.random() * bound)
        else:
            place = len(self.made)
            number = min(self._given[place], bound - 1) if place < len(self._given) else 0
        self.made.append(number)
        return number

    def one_in(self, count: int) -> bool:
        """Tell whether something happens that does so once in a while; never for 0."""
        return count > 0 and self.below(count) == count - 1

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        """Choose; what comes first is the least eventful."""
        return choices[self.below(len(choices))]
