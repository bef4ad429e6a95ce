"""Rows as tuples: dense, in column order, without alignment.

A fixed column has the bytes of a row of the log (IBM's JDBC driver, Spark, Debezium and gbase8sdb read
the encoder's bytes unchanged). Variable and opaque columns have a header.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from ..answers import ResultColumn, SqlValue
from ..column_types.encoding import EmulatedType
from ..large_objects.simple_objects import DESCRIPTOR_BYTES, SimpleObjects
from ..sql_errors import sql_error
from .dialect import MessageLayout

EncodeValue = Callable[[SqlValue], bytes]
Frame = Callable[[bytes | None], bytes]  # from a value as its type encodes it

_OPAQUE = struct.Struct(">BI")  # 1 = NULL, length of what follows
_LVARCHAR_HEAD = 3  # of a row of the log: length, NULL flag
_BLOB_INDICATOR = 4
_LONG_NULL = b"\0\1\0"


def encoder(
    kind: EmulatedType, dialect: MessageLayout, objects: SimpleObjects | None = None
) -> EncodeValue:
    """Return what encodes a column's values."""
    frame = frame_of(kind, dialect.has_long_varchars, objects)
    frame = frame or (lambda data: kind.null if data is None else data)
    return lambda value: frame(None if value is None else kind.encode(value))


def is_simple_object(kind: EmulatedType) -> bool:
    """Whether a tuple has the descriptor of a value: TEXT and BYTE."""
    return kind.coltype & 0xFF in (11, 12)


def frame_of(
    kind: EmulatedType, has_long_varchars: bool, objects: SimpleObjects | None = None
) -> Frame | None:
    """Return what a tuple makes of a value's bytes; None: it has them as they are."""
    if is_simple_object(kind):
        return (objects or SimpleObjects()).descriptor
    if has_long_varchars and kind.coltype & 0xFF in (13, 16):
        return _long_varchar
    head = _HEADS.get(kind.coltype & 0xFF)
    return head(kind) if head else None


def encode_rows(
    kinds: Sequence[EmulatedType],
    has_long_varchars: bool,
    piece: Sequence[Sequence[bytes | None]],
    objects: SimpleObjects | None = None,
) -> Iterator[bytes]:
    """Return rows whose values are encoded, a column at a time."""
    frames = (frame_of(kind, has_long_varchars, objects) for kind in kinds)
    framed = (_framed(*each) for each in zip(kinds, frames, piece, strict=True))
    return map(b"".join, zip(*framed, strict=True))


def _framed(
    kind: EmulatedType, frame: Frame | None, data: Sequence[bytes | None]
) -> Sequence[bytes | None] | Iterator[bytes]:
    if frame is not None:
        return map(frame, data)
    return [kind.null if value is None else value for value in data] if None in data else data


def encode_row(encoders: Sequence[EncodeValue], row: Sequence[SqlValue]) -> bytes:
    """Encode a row; SqlError if a value is none of its column's type."""
    try:
        return b"".join(encode(value) for encode, value in zip(encoders, row, strict=True))
    except (ValueError, TypeError, struct.error):
        raise sql_error(-1213) from None


def place_bytes(column: ResultColumn, object_bytes: int = DESCRIPTOR_BYTES) -> int:
    """Return how far the next column's place is in a description; IBM's driver reads on by types."""
    kind = column.type.coltype & 0xFF
    if kind in (13, 16):
        return (column.type.collength & 0xFF) + 1
    if kind in (40, 41):
        return column.type.collength
    return object_bytes if kind in (11, 12) else column.type.size or 0


def _lvarchar(_kind: EmulatedType) -> Frame:
    return _opaque(_LVARCHAR_HEAD)


def _fixed_opaque(kind: EmulatedType) -> Frame:
    if kind.extended_id == 5:
        return lru_cache(maxsize=4)(_opaque(1))
    return _opaque(_BLOB_INDICATOR)


def _opaque(head_bytes: int) -> Frame:
    """Return what puts a head of the wire in place of that of a row of the log."""
    null = _OPAQUE.pack(1, 0)

    def frame(data: bytes | None) -> bytes:
        if data is None:
            return null
        return _OPAQUE.pack(0, len(data) - head_bytes) + data[head_bytes:]

    return frame


def _long_varchar(data: bytes | None) -> bytes:
    """GBase 8s with VARCHARs of 32 K: the length has 2 bytes; that NULL is one NUL is our choice."""
    return _LONG_NULL if data is None else b"\0" + data


_HEADS: dict[int, Callable[[EmulatedType], Frame]] = {
    40: _lvarchar,
    41: _fixed_opaque,
}
