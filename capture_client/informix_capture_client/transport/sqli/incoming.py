"""Bytes as they come, taken apart in the order of the wire.

Rule: nothing is taken for granted of how bytes are cut up on their way, and no length is believed:
memory is taken for bytes that have come, never for bytes that are announced.
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
_MOST_MESSAGE_BYTES = 1 << 28  # of which a listener is told
_U16, _I16 = struct.Struct(">H"), struct.Struct(">h")
_U32 = struct.Struct(">I")


class EndOfBytes(Exception):
    """The other side has sent all that it will send."""


class Incoming:
    """Takes fields off bytes that arrive.

    Args:
        receive_into: fills a view with what there is, at least one byte, and returns how many; 0 means
            that no more will come.
        listener: is told each message with its bytes, in order.
    """

    def __init__(self, receive_into: ReceiveInto, listener: _OnMessage | None = None) -> None:
        self._receive_into = receive_into
        self._listener = listener
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._at = self._end = 0
        self._traced = bytearray()

    def take(self, count: int) -> bytes:
        """Take so many bytes."""
        if self._end - self._at < count:
            return self._gathered(count)
        begin, self._at = self._at, self._at + count
        taken = bytes(self._buffer[begin : self._at])
        if self._listener is not None:
            self._remember(taken)
        return taken

    def take_into(self, target: memoryview) -> None:
        """Fill a view; what is not here yet goes there without a copy on its way."""
        filled = min(len(target), self._end - self._at)
        target[:filled] = self._buffer[self._at : self._at + filled]
        self._at += filled
        while filled < len(target):
            filled += self._received(self._receive_into(target[filled:]))
        if self._listener is not None:
            self._remember(target)

    def arrived(self) -> memoryview:
        """Look at what is here and not taken; at nothing, where a listener is told of each message."""
        return self._buffer[self._at : self._end if self._listener is None else self._at]

    def pass_over(self, count: int) -> None:
        """Take what was looked at."""
        self._at += count

    def u16(self) -> int:
        """Take a number of 16 bits."""
        return int(_U16.unpack(self.take(2))[0])

    def i16(self) -> int:
        """Take a number of 16 bits with a sign."""
        return int(_I16.unpack(self.take(2))[0])

    def u32(self) -> int:
        """Take a number of 32 bits."""
        return int(_U32.unpack(self.take(4))[0])

    def padded(self, most: int = _MOST_FIELD_BYTES) -> bytes:
        """Take a text with a length of 16 bits, of at most so many bytes."""
        return self.padded_bytes(self.u16(), most)

    def padded_bytes(self, count: int, most: int = _MOST_FIELD_BYTES) -> bytes:
        """Take bytes whose number is known, and the zero behind an odd number."""
        if count > most:
            self.refuse(f"a field of {count} bytes")
        taken = self.take(count + (count & 1))
        return taken[:count]

    def ended(self) -> bytes:
        """Take a text of a login packet, without the NUL at its end."""
        return self.take(self.u16()).removesuffix(b"\0")

    def trace_message(self, name: str) -> None:
        """Note that a message is complete."""
        if self._listener is not None:
            self._listener(name, bytes(self._traced))
            self._traced.clear()

    def trace_rest(self) -> None:
        """Note what came and was not understood, or not taken: a report of trouble needs it."""
        if self._listener is not None:
            self._traced += self._buffer[self._at : self._end]
            self._at = self._end
            if self._traced:
                self.trace_message("not understood")

    def refuse(self, what: str) -> NoReturn:
        """Give up; nothing that follows can be understood.

        Raises:
            ProtocolViolation: says what came, and the bytes after it that are here.
        """
        behind = bytes(self._buffer[self._at : min(self._end, self._at + _SHOWN_BYTES)])
        shown = behind.hex() or "none yet"
        raise ProtocolViolation(
            f"The server sent {what}, which is not a known SQLI response; the bytes after it: {shown}.",
            "Record the messages with --trace-wire FILE and report them, or use transport=odbc.",
        )

    def _gathered(self, count: int) -> bytes:
        """Take bytes of which some are still to come."""
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
        """Keep what a message has so far, for the listener that is told of it whole."""
        if len(self._traced) + len(taken) > _MOST_MESSAGE_BYTES:
            self._traced.clear()
            self.refuse(f"a message of more than {_MOST_MESSAGE_BYTES} bytes")
        self._traced += taken

    def _received(self, count: int) -> int:
        if not count:
            raise EndOfBytes
        return count
