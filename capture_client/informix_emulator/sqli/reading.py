"""Read the fields of a message from a source of bytes.

A length is checked against its limit before bytes are read; the error names the field.

    char := length:u16  bytes  [one zero if the length is odd]
    asc  := length:u16 with the NUL that ends it  bytes  NUL        (login only)
"""

from __future__ import annotations

import struct
from collections.abc import Callable

Take = Callable[[int], bytes]  # returns exactly so many bytes; EOFError if there are no more

MAX_TEXT_BYTES = 1 << 24
_I16, _U16 = struct.Struct(">h"), struct.Struct(">H")
_I32, _U32 = struct.Struct(">i"), struct.Struct(">I")


class Malformed(Exception):
    """The bytes are not a message that this server knows."""


class RequestReader:
    """Walks over one request; `seen` holds its bytes, to be shown should they make no sense."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self.seen = bytearray()

    def octets(self, size: int, what: str) -> bytes:
        """Return the next bytes; `what` names the field in the error."""
        if len(self.seen) + size > MAX_TEXT_BYTES:
            raise Malformed(f"{what} of {size} bytes makes the request longer than {MAX_TEXT_BYTES}")
        data = self._take(size)
        self.seen += data
        return data

    def i16(self, what: str) -> int:
        """Return a signed number of 2 bytes."""
        return int(_I16.unpack(self.octets(2, what))[0])

    def u16(self, what: str) -> int:
        """Return a number of 2 bytes."""
        return int(_U16.unpack(self.octets(2, what))[0])

    def i32(self, what: str) -> int:
        """Return a signed number of 4 bytes."""
        return int(_I32.unpack(self.octets(4, what))[0])

    def u32(self, what: str) -> int:
        """Return a number of 4 bytes."""
        return int(_U32.unpack(self.octets(4, what))[0])

    def char(self, what: str) -> bytes:
        """Return a text whose length has 2 bytes."""
        return self.padded(self.u16(what), what)

    def padded(self, size: int, what: str) -> bytes:
        """Return bytes that fill an even number of places."""
        data = self.octets(size, what)
        if size & 1:
            self.octets(1, what)
        return data

    def asc(self, what: str) -> str | None:
        """Return a text of the login, or None where there is none."""
        size = self.u16(what)
        if not size:
            return None
        return self.octets(size, what).removesuffix(b"\0").decode(errors="replace")


def take_from(data: bytes) -> Take:
    """Return what takes bytes from a packet that is there as a whole."""
    place = 0

    def take(size: int) -> bytes:
        nonlocal place
        end = place + size
        if end > len(data):
            raise EOFError
        taken, place = data[place:end], end
        return taken

    return take
