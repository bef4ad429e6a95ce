"""Which field of which record every byte of a stream belongs to, by chapter 3 of the CDC guide."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_COMMON = (("size", 8), ("scheme", 4), ("number", 4))
_SEQUENCE, _ID = ("sequence", 8), ("id", 4)
_BY_NUMBER: dict[int, tuple[tuple[str, int], ...]] = {
    1: (_SEQUENCE, _ID, ("time", 8), ("user", 4)),
    2: (_SEQUENCE, _ID, ("time", 8)),
    3: (_SEQUENCE, _ID),
    62: (_SEQUENCE, _ID),
    200: (("table", 4), ("reserved", 4), ("fixed bytes", 4), ("column counts", 8)),
    201: (_SEQUENCE,),
}
_ROW = (_SEQUENCE, _ID, ("table", 4), ("reserved", 4))


def fields_of(stream: bytes) -> list[tuple[int, str]]:
    """Return the record number and the field's name for every byte."""
    return [named for number, name, size in _fields(stream) for named in [(number, name)] * size]


def _fields(stream: bytes) -> Iterator[tuple[int, str, int]]:
    at = 0
    while at < len(stream):
        header, payload, _, number = struct.unpack_from(">4I", stream, at)
        known = _COMMON + _BY_NUMBER.get(number, _ROW)
        yield from ((number, name, size) for name, size in known)
        yield number, "column size", header - sum(size for _, size in known)
        yield number, "payload", payload
        at += header + payload
