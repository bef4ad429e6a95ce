"""Decode the rows of a response (SQ_TUPLE) to texts, in the format of an ODBC driver.

Rule: values follow each other in column order, without alignment. A row that is longer or shorter than
its columns is rejected.

    SMALLINT, INTEGER, BIGINT, DATE    big-endian; the lowest number is NULL; days since 31 Dec 1899
    CHAR                               blank padded; a NUL as the first byte is NULL
    VARCHAR                            u8 length, bytes; `01 00` is NULL
    LVARCHAR, BOOLEAN, BLOB, CLOB      u8 1 if NULL, u32 length, bytes; for a BLOB its locator

Source: tuples that IBM's JDBC driver reads, of 18 types, including NULL.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Sequence

from informix_capture_client.errors import ProtocolViolation, ServerRefused
from informix_capture_client.transport.base import Row
from informix_capture_client.transport.sqli.describing import SqliColumn, SqliType
from informix_capture_client.transport.sqli.numbers import (
    decimal_text,
    fields_text,
    packed_size,
    qualifier,
)

_DAY_ZERO = datetime.date(1899, 12, 31).toordinal()
_LENGTH_AND_DESCRIPTOR = struct.Struct(">i56s")  # the lowest number is NULL
_LVARCHAR_ID, _BOOLEAN_ID, _BLOB_ID, _CLOB_ID = 1, 5, 10, 11


class RowBytes:
    """The bytes of a row, with checks against reading beyond its end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, count: int) -> bytes:
        """Read `count` bytes; ValueError if there are fewer."""
        end = self._at + count
        if end > len(self._content):
            raise ValueError(f"it ends at byte {len(self._content)} instead of {end}")
        begin, self._at = self._at, end
        return self._content[begin:end]

    def require_end(self) -> None:
        """Raise ValueError if bytes remain."""
        if self._at != len(self._content):
            raise ValueError(f"{len(self._content) - self._at} bytes are left")


_Read = Callable[[RowBytes], str | None]
_ToText = Callable[[bytes], str]
_Build = Callable[[SqliColumn, _ToText], _Read]


class SqliRowReader:
    """Reads the rows of one statement.

    Args:
        columns: as described by the server.
        codec: the Python codec of the database's code set.
        errors: how to decode invalid bytes; "surrogateescape" preserves them.

    Raises:
        ServerRefused: a column has a type that this transport does not support.
    """

    def __init__(self, columns: Sequence[SqliColumn], codec: str, errors: str = "replace") -> None:
        def to_text(raw: bytes) -> str:
            return raw.decode(codec, errors)

        self._reads = [(column, _reader(column, to_text)) for column in columns]

    def row(self, content: bytes) -> Row:
        """Return a row's values; NULL is None."""
        cut, name = RowBytes(content), ""
        values: list[str | None] = []
        try:
            for column, read in self._reads:
                name = column.name
                values.append(read(cut))
            name = "after the last"
            cut.require_end()
        except (ValueError, struct.error, OverflowError) as reason:
            raise ProtocolViolation(
                f"A row of {len(content)} bytes cannot be read at column {name!r}: {reason};"
                f" it begins with {content[:64].hex()}.",
                "Record the messages with --trace-wire FILE and report them.",
            ) from None
        return tuple(values)


def simple_object_of(content: bytes) -> tuple[int | None, bytes]:
    """Return the length and the descriptor of a TEXT or BYTE, from a row of LENGTH(column), column.

    Raises:
        ProtocolViolation: the row has another format.
    """
    if len(content) != _LENGTH_AND_DESCRIPTOR.size:
        raise ProtocolViolation(
            f"A row with the length and descriptor of a TEXT or BYTE has {len(content)} bytes.",
            "Record the messages with --trace-wire FILE and report them.",
        )
    length, descriptor = _LENGTH_AND_DESCRIPTOR.unpack(content)
    return (None if length < 0 else length), descriptor


def _reader(column: SqliColumn, to_text: _ToText) -> _Read:
    build = _BUILD.get(column.type)
    try:
        read = build(column, to_text) if build else None
    except ValueError as reason:
        raise ProtocolViolation(f"The server describes column {column.name!r} with {reason}.") from None
    if column.type not in _NAMED:
        raise ProtocolViolation(
            f"The server describes column {column.name!r} with the unknown type {column.type}."
        )
    if read is None:
        shown = column.type_name or SqliType(column.type).name
        raise ServerRefused(
            f"Column {column.name!r} has type {shown}, which transport=sqli does not support.",
            "Remove it from the query.",
        )
    return read


_NAMED = {int(kind) for kind in SqliType}


def _integer(form: str) -> _Build:
    read = struct.Struct(form)
    null = -(1 << 8 * read.size - 1)

    def value(cut: RowBytes) -> str | None:
        (number,) = read.unpack(cut.take(read.size))
        return None if number == null else str(number)

    return lambda _column, _to_text: value


def _float(form: str) -> _Build:
    read = struct.Struct(form)
    null = b"\xff" * read.size

    def value(cut: RowBytes) -> str | None:
        raw = cut.take(read.size)
        return None if raw == null else _shortest(read.unpack(raw)[0], read.size)

    return lambda _column, _to_text: value


def _shortest(number: float, size: int) -> str:
    """Return the shortest text that reads back as the same number."""
    if size == 8:
        return repr(number)
    digits = (f"{number:.{count}g}" for count in range(6, 10))
    return next(text for text in digits if _means(text, number))


def _means(text: str, number: float) -> bool:
    """Return whether a text reads back as the same 4-byte number."""
    return number != number or struct.pack(">f", float(text)) == struct.pack(">f", number)


def _int8(_column: SqliColumn, _to_text: _ToText) -> _Read:
    def value(cut: RowBytes) -> str | None:
        sign, low, high = struct.unpack(">hII", cut.take(10))
        number = high << 32 | low
        return None if sign == 0 else str(-number if sign < 0 else number)

    return value


def _decimal(column: SqliColumn, _to_text: _ToText) -> _Read:
    precision, scale = column.length >> 8, column.length & 0xFF
    if not 1 <= precision <= 32:
        raise ValueError(f"{precision} digits")
    size = packed_size(precision, scale)
    return lambda cut: decimal_text(cut.take(size), scale)


def _date(_column: SqliColumn, _to_text: _ToText) -> _Read:
    def value(cut: RowBytes) -> str | None:
        (days,) = struct.unpack(">i", cut.take(4))
        if days == -(1 << 31):
            return None
        return datetime.date.fromordinal(days + _DAY_ZERO).isoformat()

    return value


def _fields(*, is_interval: bool) -> _Build:
    def build(column: SqliColumn, _to_text: _ToText) -> _Read:
        fields = qualifier(column.length)
        return lambda cut: fields_text(cut.take(fields.size), fields, is_interval=is_interval)

    return build


def _char(column: SqliColumn, to_text: _ToText) -> _Read:
    def value(cut: RowBytes) -> str | None:
        raw = cut.take(column.length)
        return None if raw[:1] == b"\0" else to_text(raw)

    return value


def _varchar(_column: SqliColumn, to_text: _ToText) -> _Read:
    def value(cut: RowBytes) -> str | None:
        raw = cut.take(cut.take(1)[0])
        return None if raw == b"\0" else to_text(raw)

    return value


def _of_stated_length(cut: RowBytes) -> bytes | None:
    is_null, length = struct.unpack(">BI", cut.take(5))
    raw = cut.take(length)
    return None if is_null else raw


def _lvarchar(_column: SqliColumn, to_text: _ToText) -> _Read:
    def value(cut: RowBytes) -> str | None:
        raw = _of_stated_length(cut)
        return None if raw is None else to_text(raw)

    return value


def _boolean(_column: SqliColumn, _to_text: _ToText) -> _Read:
    def value(cut: RowBytes) -> str | None:
        raw = _of_stated_length(cut)
        if raw is not None and raw not in (b"\0", b"\1"):
            raise ValueError(f"{raw[:8].hex()} as a BOOLEAN")
        return None if raw is None else str(raw[0])

    return value


def _only_lvarchar(column: SqliColumn, to_text: _ToText) -> _Read | None:
    is_lvarchar = column.extended_id == _LVARCHAR_ID or column.type_name == "lvarchar"
    return _lvarchar(column, to_text) if is_lvarchar else None


def _known_opaque(column: SqliColumn, to_text: _ToText) -> _Read | None:
    for extended_id, name, build in _OPAQUE:
        if column.extended_id == extended_id or column.type_name == name:
            return build(column, to_text)
    return None


def _locator(_column: SqliColumn, _to_text: _ToText) -> _Read:
    """Return a smart large object's locator in hexadecimal digits, like a driver."""

    def value(cut: RowBytes) -> str | None:
        raw = _of_stated_length(cut)
        return None if raw is None else raw.hex()

    return value


_OPAQUE: list[tuple[int, str, _Build]] = [
    (_BOOLEAN_ID, "boolean", _boolean),
    (_BLOB_ID, "blob", _locator),
    (_CLOB_ID, "clob", _locator),
]


_BUILD: dict[int, Callable[[SqliColumn, _ToText], _Read | None]] = {
    SqliType.CHAR: _char,
    SqliType.NCHAR: _char,
    SqliType.SMALLINT: _integer(">h"),
    SqliType.INTEGER: _integer(">i"),
    SqliType.SERIAL: _integer(">i"),
    SqliType.BIGINT: _integer(">q"),
    SqliType.BIGSERIAL: _integer(">q"),
    SqliType.FLOAT: _float(">d"),
    SqliType.SMALLFLOAT: _float(">f"),
    SqliType.DECIMAL: _decimal,
    SqliType.MONEY: _decimal,
    SqliType.DATE: _date,
    SqliType.DATETIME: _fields(is_interval=False),
    SqliType.INTERVAL: _fields(is_interval=True),
    SqliType.VARCHAR: _varchar,
    SqliType.NVARCHAR: _varchar,
    SqliType.INT8: _int8,
    SqliType.SERIAL8: _int8,
    SqliType.OPAQUE_VARIABLE: _only_lvarchar,
    SqliType.LVARCHAR_BIND: _lvarchar,
    SqliType.OPAQUE_FIXED: _known_opaque,
    SqliType.BOOLEAN_BIND: _boolean,
}
