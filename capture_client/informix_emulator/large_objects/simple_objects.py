"""TEXT and BYTE in result rows: a row contains a descriptor, with which the client asks for the value.

A descriptor is valid for its statement. The first byte, the last byte and the flags are where IBM's
JDBC driver 4.50.11 reads them; the other fields are our choice.

    descriptor  4 bytes, u32 which value, i32 first byte, i32 last byte, i32 size, 18 bytes,
                u16 flags (1 = NULL), 16 bytes; zeros up to the length that both sides agreed on
"""

from __future__ import annotations

import struct

from ..sql_errors import sql_error

DESCRIPTOR_BYTES = 56
_LAYOUT = struct.Struct(">4xIiii18xH16x")
_NULL: bytes = _LAYOUT.pack(0, 0, -1, 0, 1)
_BAD_ADDRESS = -12215  # ISAM error: an invalid address for a text/byte type


class SimpleObjects:
    """The values that a statement's rows have told of."""

    def __init__(self, descriptor_bytes: int = DESCRIPTOR_BYTES) -> None:
        self._descriptor_bytes = descriptor_bytes
        self._values: list[bytes] = []

    def descriptor(self, value: bytes | None) -> bytes:
        """Keep a value and return what a row has in its place."""
        packed = _NULL
        if value is not None:
            self._values.append(value)
            packed = _LAYOUT.pack(len(self._values), 0, len(value) - 1, len(value), 0)
        return packed.ljust(self._descriptor_bytes, b"\0")

    def value(self, descriptor: bytes) -> bytes:
        """Return the value that a descriptor leads to; SqlError -604 if there is none."""
        number: int
        number, _first, _last, size, flags = _LAYOUT.unpack_from(descriptor)
        ours = _LAYOUT.pack(number, 0, size - 1, size, flags)
        is_ours = descriptor == ours.ljust(self._descriptor_bytes, b"\0")
        if (
            not is_ours
            or flags
            or not 0 < number <= len(self._values)
            or len(self._values[number - 1]) != size
        ):
            raise sql_error(-604, isam=_BAD_ADDRESS)
        return self._values[number - 1]
