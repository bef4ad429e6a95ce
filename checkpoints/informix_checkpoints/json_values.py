"""Read typed values from parsed JSON, and reject values of another type.

Rule: a ValueError names the value; the caller names the file.
"""

from __future__ import annotations

from collections.abc import Mapping


def mapping(given: object, what: str) -> Mapping[str, object]:
    """Return a JSON object.

    Raises:
        ValueError: the value is of another type.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"{given!r} is not {what}")
    return given


def number(given: object) -> int:
    """Return a non-negative integer of at most 63 bits.

    Raises:
        ValueError: the value is of another type.
    """
    if type(given) is not int or not 0 <= given < 1 << 63:
        raise ValueError(f"{given!r} is not a number")
    return given


def text(given: object) -> str:
    """Return a string.

    Raises:
        ValueError: the value is of another type.
    """
    if not isinstance(given, str):
        raise ValueError(f"{given!r} is not a string")
    return given
