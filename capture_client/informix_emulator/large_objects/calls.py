"""Calls of the functions on smart large objects by the fast path.

They are called as gbase8sdb 1.1.1 does: the client asks for a routine by its signature, gets a number,
and calls it with bound values.

    function informix.ifx_lo_stat(integer, ifx_lo_stat)
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence

from ..sql_errors import sql_error
from .sbspace import Descriptors

_SIGNATURE = re.compile(r"function (?:\w+\.)?(?P<name>\w+) ?\((?P<kinds>[^)]*)\)", re.IGNORECASE)
# LO_RDONLY, LO_RDWR, LO_DIRTY_READ (infxcli.h); IBM's JDBC driver 15.0.1.0 opens with 0x800 alone
_READABLE, _KNOWN_FLAGS = 0x4 | 0x8 | 0x10 | 0x800, 0x7FFF
INT, INT8, OPAQUE = 2, 17, 40  # types of what the fast path returns

Returned = tuple[int, bytes]  # a type, and the value as a tuple has it


class LoCalls:
    """The functions of one connection.

    Args:
        descriptors: what it has open.
        taken: returns the number of its capture session, which is not a descriptor of an object.
        order: the byte order in which the client takes a status, as `struct` has it.
    """

    def __init__(self, descriptors: Descriptors, taken: Callable[[], int], order: str) -> None:
        self._descriptors = descriptors
        self._taken = taken
        self._order = order
        self._routines: list[str] = []

    def _open(self, locator: bytes, flags: int) -> int:
        if not flags & _READABLE or flags & ~_KNOWN_FLAGS:
            raise sql_error(-9810, isam=-12086)
        return self._descriptors.open(locator, self._taken())

    def routine(self, signature: str) -> int:
        """Return the number of a routine, by which it is called; SqlError -674 if there is none."""
        match = _SIGNATURE.fullmatch(signature.strip())
        name = match["name"].lower() if match else signature
        if match is None or name not in _FAST or len(match["kinds"].split(",")) != _FAST[name][0]:
            raise sql_error(-674, name)
        if name not in self._routines:
            self._routines.append(name)
        return self._routines.index(name) + 1

    def call(self, number: int, values: Sequence[bytes | None]) -> list[Returned]:
        """Call a routine with values as they were bound."""
        if not 1 <= number <= len(self._routines):
            raise sql_error(-674, number)
        count, run = _FAST[self._routines[number - 1]]
        if len(values) != count or None in values:
            raise sql_error(-254)
        return run(self, [value or b"" for value in values])

    def _open_fast(self, values: list[bytes]) -> list[Returned]:
        number = self._open(values[0], _number(values[1]))
        return [(INT, struct.pack(">i", number))]

    def _close_fast(self, values: list[bytes]) -> list[Returned]:
        self._descriptors.close(_number(values[0]))
        return [(INT, struct.pack(">i", 0))]

    def _stat_fast(self, values: list[bytes]) -> list[Returned]:
        return [(OPAQUE, self._descriptors.stat(_number(values[0]), self._order))]

    def _seek_fast(self, values: list[bytes]) -> list[Returned]:
        number, offset, whence = _number(values[0]), _int8_number(values[1]), _number(values[2])
        return [(INT8, _int8(self._descriptors.seek(number, offset, whence)))]

    def _position_fast(self, values: list[bytes]) -> list[Returned]:
        return [(INT8, _int8(self._descriptors.tell(_number(values[0]))))]


_FAST: dict[str, tuple[int, Callable[[LoCalls, list[bytes]], list[Returned]]]] = {
    "ifx_lo_open": (2, LoCalls._open_fast),
    "ifx_lo_close": (1, LoCalls._close_fast),
    "ifx_lo_stat": (2, LoCalls._stat_fast),
    "ifx_lo_seek": (4, LoCalls._seek_fast),
    "ifx_lo_tell": (2, LoCalls._position_fast),
}


def _number(data: bytes) -> int:
    return int.from_bytes(data, signed=True)


def _int8(number: int) -> bytes:
    high, low = divmod(number, 1 << 32)
    return struct.pack(">hII", 1, low, high)


def _int8_number(data: bytes) -> int:
    sign, low, high = map(int, struct.unpack(">hII", data))
    return sign * (high << 32 | low)
