"""REPLACE, TRIM, LTRIM and RTRIM.

Rule: the time grows with the texts' lengths added up, never multiplied, and no text grows beyond the
longest that a column holds. SQLite's own functions of these names have neither bound, and nothing ends
one of them while it runs. Source: Guide to SQL: Syntax, "String-Manipulation Functions".
"""

from __future__ import annotations

from collections.abc import Callable

from ...sql_errors import sql_error
from .values import Stored

_LONGEST = 32_739  # of an LVARCHAR


def replaced(text: Stored, previous: Stored, new: Stored) -> Stored:
    """Return a text with another in place of a part of it; SqlError -1279 if that is too long."""
    if text is None or previous is None or new is None:
        return None
    kept, old, other = str(text), str(previous), str(new)
    if not old:
        return kept
    if len(kept) + kept.count(old) * (len(other) - len(old)) > _LONGEST:
        raise sql_error(-1279)
    return kept.replace(old, other)


def trimmed(*, at_start: bool, at_end: bool) -> Callable[[Stored, Stored], Stored]:
    """Return what takes signs off a text's ends."""

    def trim(text: Stored, signs: Stored) -> Stored:
        if text is None or signs is None:
            return None
        kept, removed = str(text), frozenset(str(signs))
        start, end = 0, len(kept)
        while at_start and start < end and kept[start] in removed:
            start += 1
        while at_end and start < end and kept[end - 1] in removed:
            end -= 1
        return kept[start:end]

    return trim
