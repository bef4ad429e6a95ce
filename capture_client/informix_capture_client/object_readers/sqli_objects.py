"""Read smart large objects over SQLI.

Rule: open, status and close use the fast path, reads use SQ_LODATA like a capture session, as in IBM's
JDBC driver (4.50.11, 15.0.1.0) and gbase8sdb 1.1.1, with these signatures. Of the status only the size
is used: an INT8 of two words, the lower first, and a sign, whose bytes reveal the byte order. IBM's
driver reads it big-endian; gbase8sdb, whose login states another floating-point format, little-endian
(decision 0092).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.object_readers.base import FLAGS, ObjectReader, ObjectStatus, SimpleObject
from informix_capture_client.transport import Argument, Row, SqliTransport
from informix_capture_client.transport.sqli import Opaque

_OPEN = "function informix.ifx_lo_open(blob,integer)"
_CLOSE = "function informix.ifx_lo_close(integer)"
_STAT = "function informix.ifx_lo_stat(integer, ifx_lo_stat)"
_STAT_BYTES = 644
_DESCRIPTOR_BYTES = 4
_REMEDY = "Record the messages with --trace-wire FILE and report them."
_SIGN = slice(12, 14)
_SIZES = {b"\0\1": struct.Struct(">4xII"), b"\1\0": struct.Struct("<4xII")}  # by a sign of 1


class SqliObjects(ObjectReader):
    """Reads objects natively."""

    def __init__(self, transport: SqliTransport) -> None:
        self._transport = transport

    def locators(self, statement: str, arguments: Sequence[Argument]) -> list[bytes | None]:
        """Return the locators that a SELECT finds."""
        return [_locator(row) for row in self._transport.rows(statement, *arguments)]

    def simple_object(
        self, statement: str, arguments: Sequence[Argument], most_bytes: int
    ) -> SimpleObject | None:
        """Return a TEXT or BYTE."""
        found = self._transport.simple_object(statement, arguments, most_bytes)
        return None if found is None else SimpleObject(*found)

    def open(self, locator: bytes) -> int:
        """Open an object; see `ObjectReader`."""
        found = self._transport.call_routine(_OPEN, Opaque("blob", locator), FLAGS)
        if len(found) != _DESCRIPTOR_BYTES:
            raise ProtocolViolation(
                f"ifx_lo_open returned {len(found)} bytes instead of {_DESCRIPTOR_BYTES}.", _REMEDY
            )
        return int.from_bytes(found, signed=True)

    def status(self, descriptor: int) -> ObjectStatus:
        """Return its size, and the rest."""
        status = self._transport.call_routine(
            _STAT, descriptor, Opaque("ifx_lo_stat", bytes(_STAT_BYTES))
        )
        size = _SIZES.get(status[_SIGN])
        if size is None:
            raise ProtocolViolation(
                f"The status of a large object, of {len(status)} bytes, has no size:"
                f" it begins with {status[: _SIGN.stop].hex()}.",
                _REMEDY,
            )
        low, high = size.unpack_from(status)
        return ObjectStatus(high << 32 | low, bytes(status))

    def read(self, descriptor: int, most_bytes: int) -> memoryview:
        """Return the next bytes."""
        return self._transport.lo_read(descriptor, most_bytes)

    def close(self, descriptor: int) -> None:
        """Close it."""
        self._transport.call_routine(_CLOSE, descriptor)


def _locator(row: Row) -> bytes | None:
    """Return the locator in a row of one column; errors do not quote it, as it may be data."""
    if len(row) != 1:
        raise ProtocolViolation(
            f"The server returned {len(row)} columns instead of 1 for a large object.",
            _REMEDY,
        )
    try:
        return None if row[0] is None else bytes.fromhex(row[0])
    except ValueError:
        raise ProtocolViolation(
            f"The server returned {len(row[0] or '')} characters for a large object"
            " that are not hexadecimal.",
            _REMEDY,
        ) from None
