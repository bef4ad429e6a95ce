"""Values of files that we have written, as JSON has them: what is not as it should be is refused.

Rule: a ValueError names the value; whoever knows the file names the file.
"""

from __future__ import annotations

from collections.abc import Mapping


def mapping(given: object, what: str) -> Mapping[str, object]:
    """Return an object of JSON.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"{given!r} is not {what}")
    return given


def number(given: object) -> int:
    """Return a whole number of at most 63 bits, not below zero.

    Raises:
        ValueError: it is something else.
    """
    if type(given) is not int or not 0 <= given < 1 << 63:
        raise ValueError(f"{given!r} is not a number")
    return given


def text(given: object) -> str:
    """Return a text.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(given, str):
        raise ValueError(f"{given!r} is not a text")
    return given
