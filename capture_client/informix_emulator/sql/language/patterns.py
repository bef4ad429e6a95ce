"""LIKE and MATCHES: a text and a pattern with wildcards.

Rule: no time that grows faster than the text's length times the pattern's. A pattern is cut where it
has a wildcard for any number of signs; each piece has a fixed length and is looked for once, leftmost,
behind the piece before it. That finds a match wherever there is one, and never goes back. A piece with
other wildcards is looked for in short stretches of the text, so that other threads and Ctrl-C get in
between. Source: Guide to SQL: Syntax, "LIKE Operator" and "MATCHES Operator".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ...sql_errors import sql_error

_MOST_STEPS = 1_000_000_000  # comparisons of signs for one text, some seconds: our choice
_STEPS_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a pattern, of a fixed length."""

    width: int
    literal: str | None  # where it has no wildcards
    shape: re.Pattern[str]

    def fits(self, text: str, place: int) -> bool:
        """Whether it is found at a place."""
        if self.literal is not None:
            return text.startswith(self.literal, place)
        return self.shape.match(text, place) is not None

    def find(self, text: str, start: int, end: int) -> int:
        """Return where it is found first between two places, or -1."""
        if self.literal is not None:
            return text.find(self.literal, start, end)
        stride = max(1, _STEPS_AT_ONCE // self.width)
        for place in range(start, end - self.width + 1, stride):
            stop = min(place + stride + self.width - 1, end)
            if found := self.shape.search(text, place, stop):
                return found.start()
        return -1


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that was understood: pieces with any number of signs between them."""

    pieces: tuple[_Piece, ...]

    def matches(self, text: str) -> bool:
        """Return whether a whole text matches; SqlError -213 if that would take too long."""
        first, *middle = self.pieces
        if not middle:
            return len(text) == first.width and first.fits(text, 0)
        last = middle.pop()
        place, end = first.width, len(text) - last.width
        if place > end or not first.fits(text, 0) or not last.fits(text, end):
            return False
        if sum(piece.width for piece in middle if piece.literal is None) * len(text) > _MOST_STEPS:
            raise sql_error(-213)
        for piece in middle:
            found = piece.find(text, place, end)
            if found < 0:
                return False
            place = found + piece.width
        return True


@lru_cache(maxsize=512)
def like_pattern(text: str, escape: str) -> Pattern:
    """Understand a pattern of LIKE."""
    return _pattern(text, escape, "%", "_", has_classes=False)


@lru_cache(maxsize=512)
def matches_pattern(text: str, escape: str) -> Pattern:
    """Understand a pattern of MATCHES."""
    return _pattern(text, escape, "*", "?", has_classes=True)


def _pattern(text: str, escape: str, many: str, one: str, *, has_classes: bool) -> Pattern:
    pieces: list[_Piece] = []
    signs: list[tuple[str, str | None]] = []  # of a piece: its shapes, and what they stand for
    place = 0
    while place < len(text):
        sign = text[place]
        end = text.find("]", place + 2) if has_classes and sign == "[" else -1
        if sign == escape and place + 1 < len(text):
            place += 1
            signs.append((re.escape(text[place]), text[place]))
        elif end > 0:
            signs.append((_class(text[place + 1 : end]), None))
            place = end
        elif sign == many:
            pieces.append(_piece(signs))
            signs = []
        else:
            signs.append((".", None) if sign == one else (re.escape(sign), sign))
        place += 1
    return Pattern((*pieces, _piece(signs)))


def _class(inner: str) -> str:
    negation = "^" if inner[0] == "^" else ""
    members = re.sub(r"([\\\[\]&~|^])", r"\\\1", inner.removeprefix("^"))
    return f"[{negation}{members}]"


def _piece(signs: list[tuple[str, str | None]]) -> _Piece:
    literals = [literal for _, literal in signs if literal is not None]
    literal = "".join(literals) if len(literals) == len(signs) else None
    return _Piece(len(signs), literal, re.compile("".join(shape for shape, _ in signs), re.DOTALL))
