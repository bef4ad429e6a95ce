"""Trace the messages of connections, one line per message, without the password.

Rule: the password is removed from the bytes before they are written, in any code set: from login
packets and PAM responses by their format, from other messages wherever its bytes occur.

    2026-11-22T08:41:09.123456Z 1 > SQ_PREPARE 000200000000...
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterable

HIDDEN = b"***"
_SENT, _RECEIVED = ">", "<"
_CODE_SETS = ("utf-8", "iso8859-1", "iso8859-2", "iso8859-15", "cp1252", "utf-16-le", "utf-16-be")

_Clock = Callable[[], datetime.datetime]


class WireTrace:
    """Writes the messages of any number of connections.

    Args:
        write: is called with each line, from the thread that uses the connection.
        clock: returns the current time in UTC.
    """

    def __init__(self, write: Callable[[str], object], clock: _Clock) -> None:
        self._write = write
        self._clock = clock
        self._numbers = itertools.count(1)

    def connection(self, password: str, codecs: Iterable[str] = ()) -> ConnectionTrace:
        """Return the trace of a new connection."""
        return ConnectionTrace(self, next(self._numbers), _spellings(password, codecs))

    def line(self, connection: int, direction: str, name: str, content: bytes) -> None:
        """Write one message."""
        time = self._clock().isoformat(timespec="microseconds").replace("+00:00", "Z")
        self._write(f"{time} {connection} {direction} {name} {content.hex()}\n")


class ConnectionTrace:
    """The trace of one connection."""

    def __init__(self, trace: WireTrace, number: int, secrets: list[bytes]) -> None:
        self._trace = trace
        self._number = number
        self._secrets = secrets

    def __repr__(self) -> str:
        return f"ConnectionTrace({self._number})"

    def sent(self, name: str, content: bytes) -> None:
        """Record a message to the server."""
        self._trace.line(self._number, _SENT, name, self._cut(content))

    def received(self, name: str, content: bytes) -> None:
        """Record a message from the server."""
        self._trace.line(self._number, _RECEIVED, name, self._cut(content))

    def _cut(self, content: bytes) -> bytes:
        for secret in self._secrets:
            content = content.replace(secret, HIDDEN)
        return content


def _spellings(password: str, codecs: Iterable[str]) -> list[bytes]:
    """Return a password's bytes in every code set that can encode it, longest first."""
    found: set[bytes] = set()
    for codec in (*_CODE_SETS, *codecs):
        try:
            found.add(password.encode(codec))
        except UnicodeEncodeError:
            continue
    return sorted((spelling for spelling in found if spelling), key=len, reverse=True)
