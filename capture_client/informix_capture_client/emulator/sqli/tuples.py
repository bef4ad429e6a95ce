"""The values of a row as a tuple holds them: dense, in column order, without alignment.

Rule: a fixed column has the bytes of a row of the log (IBM's JDBC driver, Spark, Debezium and
gbase8sdb read the encoder's bytes as they are); what varies or is opaque has a head of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from ..answers import ResultColumn, Value
from ..encoding import ColumnType
from ..sql_errors import sql_error
from .dialect import Dialect

EncodeValue = Callable[[Value], bytes]

_OPAQUE = struct.Struct(">BI")  # 1 = NULL, length of what follows
_LOCATOR_BYTES = 56  # BYTE and TEXT: where the value is
_LVARCHAR_HEAD = 3  # of a row of the log: length, NULL flag
_BLOB_INDICATOR = 4
_LONG_NULL = b"\0\1\0"


def encoder(kind: ColumnType, dialect: Dialect) -> EncodeValue:
    """Return what encodes a column's values."""
    head = _HEADS.get(kind.coltype & 0xFF)
    if head is not None:
        return head(kind)
    if dialect.has_long_varchars and kind.coltype & 0xFF in (13, 16):
        return _long_varchar(kind)
    return lambda value: kind.null if value is None else kind.encode(value)


def encode_row(encoders: Sequence[EncodeValue], row: Sequence[Value]) -> bytes:
    """Encode a row; SqlError if a value is none of its column's type."""
    try:
        return b"".join(encode(value) for encode, value in zip(encoders, row, strict=True))
    except (ValueError, TypeError, struct.error):
        raise sql_error(-1213) from None


def place_bytes(column: ResultColumn) -> int:
    """Return how far the next column's place is in a description; IBM's driver reads on by types."""
    kind = column.type.coltype & 0xFF
    if kind in (13, 16):
        return (column.type.collength & 0xFF) + 1
    if kind in (40, 41):
        return column.type.collength
    return _LOCATOR_BYTES if kind in (11, 12) else column.type.size or 0


def _lvarchar(kind: ColumnType) -> EncodeValue:
    return _opaque(lambda value: kind.encode(value)[_LVARCHAR_HEAD:])


def _fixed_opaque(kind: ColumnType) -> EncodeValue:
    if kind.extended_id == 5:
        return _opaque(lambda value: kind.encode(value)[1:])
    return _opaque(lambda value: kind.encode(value)[_BLOB_INDICATOR:])


def _opaque(content: EncodeValue) -> EncodeValue:
    null = _OPAQUE.pack(1, 0)

    def encode(value: Value) -> bytes:
        if value is None:
            return null
        data = content(value)
        return _OPAQUE.pack(0, len(data)) + data

    return encode


def _long_varchar(kind: ColumnType) -> EncodeValue:
    """GBase 8s with VARCHARs of 32 K: the length has 2 bytes; that NULL is one NUL is our choice."""

    def encode(value: Value) -> bytes:
        return _LONG_NULL if value is None else b"\0" + kind.encode(value)

    return encode


def _simple_large_object(_kind: ColumnType) -> EncodeValue:
    return lambda _value: bytes(_LOCATOR_BYTES)


_HEADS: dict[int, Callable[[ColumnType], EncodeValue]] = {
    11: _simple_large_object,
    12: _simple_large_object,
    40: _lvarchar,
    41: _fixed_opaque,
}
