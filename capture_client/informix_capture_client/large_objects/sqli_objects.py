"""Smart large objects over Informix's own protocol.

Rule: opened, measured and closed by the fast path, and read by SQ_LODATA like a capture session. So
IBM's JDBC driver opens and closes them, by these signatures, and gbase8sdb 1.1.1, which asks for their
size too; of the status that it is told it reads the four bytes that are read here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.large_objects.base import FLAGS, ObjectReader, ObjectStatus, SimpleObject
from informix_capture_client.sqli import Opaque
from informix_capture_client.transport import Argument, SqliTransport

_OPEN = "function informix.ifx_lo_open(blob,integer)"
_CLOSE = "function informix.ifx_lo_close(integer)"
_STAT = "function informix.ifx_lo_stat(integer, ifx_lo_stat)"
_SIZE = struct.Struct("<4xI")  # where gbase8sdb 1.1.1 reads it; of what lies behind nothing is known


class SqliObjects(ObjectReader):
    """Reads objects natively."""

    def __init__(self, transport: SqliTransport) -> None:
        self._transport = transport

    def locators(self, statement: str, arguments: Sequence[Argument]) -> list[bytes | None]:
        """Return the locators that a SELECT finds."""
        rows = self._transport.rows(statement, *arguments)
        return [None if text is None else bytes.fromhex(text) for (text,) in rows]

    def simple_object(
        self, statement: str, arguments: Sequence[Argument], most_bytes: int
    ) -> SimpleObject | None:
        """Return a TEXT or BYTE."""
        found = self._transport.simple_object(statement, arguments, most_bytes)
        return None if found is None else SimpleObject(*found)

    def open(self, locator: bytes) -> int:
        """Open an object; see `ObjectReader`."""
        found = self._transport.call_routine(_OPEN, Opaque("blob", locator), FLAGS)
        return int.from_bytes(found, signed=True)

    def status(self, descriptor: int) -> ObjectStatus:
        """Return its size, and the rest."""
        status = self._transport.call_routine(_STAT, descriptor, Opaque("ifx_lo_stat", bytes(2)))
        if len(status) < _SIZE.size:
            raise ProtocolViolation(
                f"The server told the status of a large object in {len(status)} bytes.",
                "Record it with --trace-wire FILE.",
            )
        return ObjectStatus(int(_SIZE.unpack_from(status)[0]), bytes(status))

    def read(self, descriptor: int, most_bytes: int) -> memoryview:
        """Return the next bytes."""
        return self._transport.lo_read(descriptor, most_bytes)

    def close(self, descriptor: int) -> None:
        """Close it."""
        self._transport.call_routine(_CLOSE, descriptor)
