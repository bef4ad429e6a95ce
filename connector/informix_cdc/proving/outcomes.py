"""What a proof finds, described without data or secrets.

Rule: by kinds, counts, types, error numbers, and numbers that the proof itself has written. No text of
a row, no name of a server, database, table or user, and no message of a server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from informix_capture_client.errors import ConnectionLost, InformixCdcError


class Deviation(Exception):
    """The server does something else than is assumed.

    Args:
        expected: what is assumed.
        found: what the server did.
        numbers: the assumptions that this contradicts; none: all of the proof.
    """

    def __init__(self, expected: str, found: str, *numbers: int) -> None:
        super().__init__(expected, found)
        self.expected, self.found, self.numbers = expected, found, numbers


class NotTried(Exception):
    """A proof cannot be tried on this server, or by this user."""


def expect(is_so: bool, expected: str, found: str, *numbers: int) -> None:
    """Raise `Deviation` unless something is as expected."""
    if not is_so:
        raise Deviation(expected, found, *numbers)


def expect_equal(what: str, expected: object, found: object, *numbers: int) -> None:
    """Raise `Deviation` unless two figures, kinds or numbers are equal."""
    expect(expected == found, f"{what}: {expected}", f"{what}: {found}", *numbers)


def error_text(reason: InformixCdcError) -> str:
    """Return an error as its code and the server's numbers, without its message."""
    answer = reason.answer
    natives = [native for _, native, _ in answer.diagnostics] if answer else []
    numbers = ", ".join(map(str, natives or ([answer.native] if answer else [])))
    return f"{reason.code}" + (f", SQL error {numbers}" if numbers else "")


@contextlib.contextmanager
def needed(what: str) -> Iterator[None]:
    """Let an error of the server mean that a proof cannot be tried, for want of something."""
    try:
        yield
    except ConnectionLost:
        raise
    except InformixCdcError as reason:
        raise NotTried(f"{what}: {error_text(reason)}") from None


@contextlib.contextmanager
def refused(what: str, *natives: int, number: int = 0) -> Iterator[None]:
    """Require that the server refuses what the block does, with one of some numbers if any are given.

    Raises:
        Deviation: it does not, or with another number.
    """
    numbers = (number,) if number else ()
    wanted = "refused" + (f" with {' or '.join(map(str, natives))}" if natives else "")
    try:
        yield
    except ConnectionLost:
        raise
    except InformixCdcError as reason:
        if natives and not natives_of(reason) & set(natives):
            raise Deviation(f"{what}: {wanted}", f"{what}: {error_text(reason)}", *numbers) from None
    else:
        raise Deviation(f"{what}: {wanted}", f"{what}: accepted", *numbers)


def natives_of(reason: InformixCdcError) -> set[int]:
    """Return the numbers of an error, whichever sign a server prints them with."""
    answer = reason.answer
    found = {answer.native, *(native for _, native, _ in answer.diagnostics)} if answer else set()
    return found | {-abs(number) for number in found}
