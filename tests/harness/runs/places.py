"""Loops that stand for many tests: a failure names the place at which it happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at(place: object) -> Iterator[None]:
    """Add the place to what fails in a block."""
    try:
        yield
    except BaseException as reason:  # pytest's failures too, which are no Exceptions
        reason.add_note(f"at: {place}")
        raise
