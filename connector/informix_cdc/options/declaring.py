"""Declare an option, and read its text as a value; what it must be is said by the ValueError.

Rule: functions from text to value, used where options are declared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from typing import Any

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import parse


def option(
    doc: str,
    read: Callable[[str], Any] = str,
    *,
    default: Any = MISSING,  # noqa: ANN401 - a default is of its option's own type
    name: str = "",
    secret: bool = False,
) -> Any:  # noqa: ANN401 - dataclasses.field is typed the same way
    """Declare an option: its meaning, how its text is read, its default."""
    metadata = {"doc": doc, "read": read, "name": name}
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True)
class WholeNumbers:
    """Reads a whole number between two bounds; the command line shows them."""

    lowest: int
    highest: int
    read: Callable[[str], int]

    def __call__(self, text: str) -> int:
        """Return the number."""
        return self.read(text)


@dataclass(frozen=True, slots=True)
class Words:
    """Reads one of a few words; the command line shows and completes them."""

    words: tuple[str, ...]
    read: Callable[[str], str]

    def __call__(self, text: str) -> str:
        """Return the word."""
        return self.read(text)


def whole_number(lowest: int, highest: int) -> WholeNumbers:
    """Read a whole number between two bounds."""

    def read(text: str) -> int:
        if not (text.isascii() and text.strip().isdigit()) or not lowest <= int(text) <= highest:
            raise ValueError(f"must be a whole number from {lowest} to {highest}")
        return int(text)

    return WholeNumbers(lowest, highest, read)


def one_of(*choices: str) -> Words:
    """Read one of a few words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be {', '.join(choices[:-1])} or {choices[-1]}")
        return text

    return Words(choices, read)


def flag(text: str) -> bool:
    """Read true or false."""
    return one_of("true", "false")(text.lower()) == "true"


_MOST_DIGITS = 38  # of a Spark DECIMAL
_FLOATING = re.compile(r"decimal\(38,\s*(\d+)\)")


def floating_decimal(text: str) -> str | int:
    """Read what DECIMAL(p) becomes: a word, or the scale of a DECIMAL(38,n)."""
    if text in ("string", "double"):
        return text
    found = _FLOATING.fullmatch(text)
    if not found or int(found[1]) > _MOST_DIGITS:
        raise ValueError("must be string, double or decimal(38,n) with n from 0 to 38")
    return int(found[1])


_BETWEEN_COMMAS = re.compile(r'(?:"(?:[^"]|"")*"|[^",])+')


def names(text: str) -> tuple[str, ...]:
    """Read names between commas; a comma in double quotes belongs to the name."""
    found = tuple(part.strip() for part in _BETWEEN_COMMAS.findall(text) if part.strip())
    if text.count('"') % 2:
        raise ValueError("has a double quote without its other half")
    if not found or len(set(found)) != len(found):
        raise ValueError("must be owner.table, or several of them with commas, each once")
    return found


def starting_position(text: str) -> str:
    """Read where a stream begins."""
    try:
        if text not in ("latest", "earliest"):
            parse(text)
    except BadOption:
        raise ValueError("must be latest, earliest, log:0xposition or one integer") from None
    return text


_SIZE = re.compile(r"(\d{1,15})([kmgt]?)b?")
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def size(lowest: int, highest: int = 1 << 50) -> Callable[[str], int]:
    """Read a number of bytes such as 512m; k, m, g and t are powers of 1024."""

    def read(text: str) -> int:
        found = _SIZE.fullmatch(text.strip().lower())
        count = int(found[1]) << _UNITS[found[2]] if found else -1
        if not lowest <= count <= highest:
            raise ValueError(f"must be a number of bytes such as 512m, from {lowest} to {highest}")
        return count

    return read
