"""The messages of SQLI, Informix's client/server protocol: numbers, names and text formats.

Rule: requests are built from these; a text that is too long for its length field is rejected. All
integers are big-endian. A message is a 16-bit number and its fields, without a total length.

Sources: recorded requests of IBM's JDBC driver 4.50.11; gbase8sdb 1.1.1 (MIT), the source of the fast
path; libsqli (sqlicon/libsqli, MIT), which was made by tracing live servers.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from informix_capture_client.errors import BadOption

_MOST_SHORT_BYTES = 0xFFFF


class Message(IntEnum):
    """Messages that a capture client sends or receives; the names are libsqli's."""

    SQ_PREPARE = 2
    SQ_CURNAME = 3
    SQ_ID = 4
    SQ_BIND = 5
    SQ_OPEN = 6
    SQ_EXECUTE = 7
    SQ_DESCRIBE = 8
    SQ_NFETCH = 9
    SQ_CLOSE = 10
    SQ_RELEASE = 11
    SQ_EOT = 12
    SQ_ERR = 13
    SQ_TUPLE = 14
    SQ_DONE = 15
    SQ_NDESCRIBE = 22
    SQ_DBOPEN = 36
    SQ_FETCHBLOB = 38
    SQ_BLOB = 39
    SQ_WANTDONE = 49
    SQ_COST = 55
    SQ_EXIT = 56
    SQ_INFO = 81
    SQ_INSERTDONE = 94
    SQ_LODATA = 97
    SQ_XACTSTAT = 99
    SQ_RET_TYPE = 100
    SQ_GETROUTINE = 101
    SQ_EXFPROUTINE = 102
    SQ_FPROUTINE = 103
    SQ_PROTOCOLS = 126
    SQ_ACCEPTED = 127
    SQ_CHALLENGE_READY = 128
    SQ_CHALLENGE = 129
    SQ_RESPONSE = 130


def name_of(number: int) -> str:
    """Return a message's name, or its number if it is unknown."""
    try:
        return Message(number).name
    except ValueError:
        return f"message {number}"


def u16(*numbers: int) -> bytes:
    """Encode 16-bit numbers."""
    return struct.pack(f">{len(numbers)}H", *numbers)


def u32(*numbers: int) -> bytes:
    """Encode 32-bit numbers."""
    return struct.pack(f">{len(numbers)}I", *numbers)


def padded(text: bytes) -> bytes:
    """Encode a text with a 16-bit length and padding to an even size, as in most fields."""
    return u16(_length(text)) + text + bytes(len(text) & 1)


def long_padded(text: bytes) -> bytes:
    """Encode a text with a 32-bit length and padding to an even size."""
    return u32(len(text)) + text + bytes(len(text) & 1)


def ended(text: bytes) -> bytes:
    """Encode a text with a trailing NUL that its length includes, as in login packets."""
    return u16(_length(text + b"\0")) + text + b"\0"


def _length(text: bytes) -> int:
    if len(text) > _MOST_SHORT_BYTES:
        raise BadOption(
            f"A string of {len(text)} bytes does not fit into an SQLI field; the maximum is"
            f" {_MOST_SHORT_BYTES}.",
            "Shorten it.",
        )
    return len(text)
