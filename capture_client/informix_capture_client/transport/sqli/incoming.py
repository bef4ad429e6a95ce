"""Read fields from a stream of bytes.

Rule: bytes may arrive in pieces of any size, and lengths are not trusted: memory is allocated for
received bytes, never for announced ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NoReturn

from informix_capture_client.errors import ProtocolViolation

ReceiveInto = Callable[[memoryview], int]
_OnMessage = Callable[[str, bytes], None]

_BUFFER_BYTES = 65_536
_SHOWN_BYTES = 64
_MOST_FIELD_BYTES = 1 << 24  # a row of Informix holds 32 KB, and its long texts 32 KB each
_MOST_MESSAGE_BYTES = 1 << 28  # of which a listener gets the bytes
_U16, _I16 = struct.Struct(">H"), struct.Struct(">h")
_U32 = struct.Struct(">I")


class EndOfBytes(Exception):
    """The peer has closed the connection."""


class Incoming:
    """Reads fields from arriving bytes.

    Args:
        receive_into: fills a view with at least one byte and returns the number of bytes; 0 means
            the end.
        listener: is called with each message and its bytes, in order.
    """

    def __init__(self, receive_into: ReceiveInto, listener: _OnMessage | None = None) -> None:
        self._receive_into = receive_into
        self._listener = listener
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._at = self._end = 0
        self._traced = bytearray()

    def take(self, count: int) -> bytes:
        """Read `count` bytes."""
        if self._end - self._at < count:
            return self._gathered(count)
        begin, self._at = self._at, self._at + count
        taken = bytes(self._buffer[begin : self._at])
        if self._listener is not None:
            self._remember(taken)
        return taken

    def take_into(self, target: memoryview) -> None:
        """Fill a view; bytes that have not arrived are received into it directly."""
        filled = min(len(target), self._end - self._at)
        target[:filled] = self._buffer[self._at : self._at + filled]
        self._at += filled
        while filled < len(target):
            filled += self._received(self._receive_into(target[filled:]))
        if self._listener is not None:
            self._remember(target)

    def arrived(self) -> memoryview:
        """Return the unread bytes without consuming them; empty if there is a listener."""
        return self._buffer[self._at : self._end if self._listener is None else self._at]

    def pass_over(self, count: int) -> None:
        """Consume bytes returned by `arrived`."""
        self._at += count

    def u16(self) -> int:
        """Read an unsigned 16-bit number."""
        return int(_U16.unpack(self.take(2))[0])

    def i16(self) -> int:
        """Read a signed 16-bit number."""
        return int(_I16.unpack(self.take(2))[0])

    def u32(self) -> int:
        """Read an unsigned 32-bit number."""
        return int(_U32.unpack(self.take(4))[0])

    def padded(self, most: int = _MOST_FIELD_BYTES) -> bytes:
        """Read a text with a 16-bit length, up to a maximum size."""
        return self.padded_bytes(self.u16(), most)

    def padded_bytes(self, count: int, most: int = _MOST_FIELD_BYTES) -> bytes:
        """Read `count` bytes, and the padding zero if the number is odd."""
        if count > most:
            self.refuse(f"a field of {count} bytes")
        taken = self.take(count + (count & 1))
        return taken[:count]

    def ended(self) -> bytes:
        """Read a text of a login packet, without the NUL at its end."""
        return self.take(self.u16()).removesuffix(b"\0")

    def trace_message(self, name: str) -> None:
        """Pass a complete message to the listener."""
        if self._listener is not None:
            self._listener(name, bytes(self._traced))
            self._traced.clear()

    def trace_rest(self) -> None:
        """Pass unread or unknown bytes to the listener, for error reports."""
        if self._listener is not None:
            self._traced += self._buffer[self._at : self._end]
            self._at = self._end
            if self._traced:
                self.trace_message("not understood")

    def refuse(self, what: str) -> NoReturn:
        """Raise: the following bytes cannot be interpreted.

        Raises:
            ProtocolViolation: with a description and the bytes after it that have arrived.
        """
        behind = bytes(self._buffer[self._at : min(self._end, self._at + _SHOWN_BYTES)])
        shown = behind.hex() or "none yet"
        raise ProtocolViolation(
            f"The server sent {what}, which is not a known SQLI response; the bytes after it: {shown}.",
            "Record the messages with --trace-wire FILE and report them, or use transport=odbc.",
        )

    def _gathered(self, count: int) -> bytes:
        """Read bytes of which some have not arrived."""
        parts: list[bytes] = []
        missing = count
        while missing:
            if self._at == self._end:
                self._at, self._end = 0, 0
                self._end = self._received(self._receive_into(self._buffer))
            begin = self._at
            self._at = min(self._end, begin + missing)
            parts.append(bytes(self._buffer[begin : self._at]))
            missing -= self._at - begin
        taken = b"".join(parts)
        if self._listener is not None:
            self._remember(taken)
        return taken

    def _remember(self, taken: bytes | memoryview) -> None:
        """Buffer the bytes of a message for the listener."""
        if len(self._traced) + len(taken) > _MOST_MESSAGE_BYTES:
            self._traced.clear()
            self.refuse(f"a message of more than {_MOST_MESSAGE_BYTES} bytes")
        self._traced += taken

    def _received(self, count: int) -> int:
        if not count:
            raise EndOfBytes
        return count
