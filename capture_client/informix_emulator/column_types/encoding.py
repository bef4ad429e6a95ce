"""Column types: how each is spelled, catalogued and encoded in a row of the log.

Rule: written from the manual and from recorded rows, never from a decoder. A type is built once per
column; its encoder takes a Python value and returns the column's bytes, or raises ValueError.
All integers are big-endian. Every type has its own NULL pattern; there is no bitmap.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from dataclasses import dataclass

from .column_list import TypeText
from .datetimes import datetime_encoder, interval_encoder, qualifier, spelling
from .decimals import Encode, fixed_point, floating_point

_DAY_ZERO = datetime.date(1899, 12, 31).toordinal()
# Guide to SQL: Reference, CHAR and LVARCHAR; Administrator's Reference, system limits, for a row
MOST_ROW_BYTES, _LONGEST_LVARCHAR = 32_767, 32_739
_LARGE_OBJECT_BYTES = 76  # a 4-byte NULL indicator and a 72-byte pointer (the guide's sample)


@dataclass(frozen=True, slots=True)
class EmulatedType:
    """Everything the emulator knows of a column's type. `size` is None where it varies."""

    spelling: str
    coltype: int
    collength: int
    size: int | None
    encode: Encode
    null: bytes
    extended_id: int = 0
    is_capturable: bool = True


def column_type(text: TypeText, codec: str) -> EmulatedType:
    """Return the type of a column as written; ValueError if there is none of that name."""
    build = _TYPES.get(text.name)
    if build is None:
        raise ValueError(f"the type {text.name!r} is not known to the emulator")
    return build(text, codec)


_Build = Callable[[TypeText, str], EmulatedType]


def _integer(name: str, coltype: int, form: str) -> _Build:
    pack, size = struct.Struct(form).pack, struct.calcsize(form)
    lowest = -(1 << (8 * size - 1))  # means NULL
    null = pack(lowest)

    def encode(value: object) -> bytes:
        if value == lowest:
            raise ValueError(f"{value} is the NULL pattern")
        return pack(value)

    kind = EmulatedType(name, coltype, size, size, encode, null)
    return lambda _text, _codec: kind


def _int8(name: str, coltype: int) -> _Build:
    pack = struct.Struct(">hII").pack  # sign, low word, high word

    def encode(value: object) -> bytes:
        if not isinstance(value, int) or abs(value) >= 1 << 63:
            raise ValueError(f"{value!r} is not an INT8")
        magnitude = abs(value)
        return pack(-1 if value < 0 else 1, magnitude & 0xFFFFFFFF, magnitude >> 32)

    kind = EmulatedType(name, coltype, 10, 10, encode, bytes(10))
    return lambda _text, _codec: kind


def _binary_float(name: str, coltype: int, form: str) -> _Build:
    pack, size = struct.Struct(form).pack, struct.calcsize(form)

    def encode(value: object) -> bytes:
        if value != value:
            raise ValueError("NaN cannot be told from NULL")
        return pack(value)

    kind = EmulatedType(name, coltype, size, size, encode, b"\xff" * size)
    return lambda _text, _codec: kind


def _decimal(text: TypeText, _codec: str) -> EmulatedType:
    precision, *rest = text.numbers or (16,)
    if rest:
        size, encode = fixed_point(precision, rest[0])
        shown, scale = f"decimal({precision},{rest[0]})", rest[0]
    else:
        size, encode = floating_point(precision)
        shown, scale = f"decimal({precision})", 255
    return EmulatedType(shown, 5, precision << 8 | scale, size, encode, bytes(size))


def _money(text: TypeText, _codec: str) -> EmulatedType:
    precision, scale = (*text.numbers, *(16, 2)[len(text.numbers) :])
    size, encode = fixed_point(precision, scale)
    shown = f"money({precision},{scale})"
    return EmulatedType(shown, 8, precision << 8 | scale, size, encode, bytes(size))


def _date(_text: TypeText, _codec: str) -> EmulatedType:
    pack = struct.Struct(">i").pack

    def encode(value: object) -> bytes:
        if isinstance(value, str):
            value = datetime.date.fromisoformat(value)
        if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
            raise ValueError(f"{value!r} is not a date")
        return pack(value.toordinal() - _DAY_ZERO)

    return EmulatedType("date", 7, 4, 4, encode, b"\x80\0\0\0")


def _datetime(text: TypeText, _codec: str) -> EmulatedType:
    fields = qualifier(text)
    size, encode = fields.packed_bytes, datetime_encoder(fields)
    return EmulatedType(spelling("datetime", fields), 10, fields.collength, size, encode, bytes(size))


def _interval(text: TypeText, _codec: str) -> EmulatedType:
    fields = qualifier(text)
    size, encode = fields.packed_bytes, interval_encoder(fields)
    return EmulatedType(spelling("interval", fields), 14, fields.collength, size, encode, bytes(size))


def _boolean(_text: TypeText, _codec: str) -> EmulatedType:
    def encode(value: object) -> bytes:
        if value is not True and value is not False:
            raise ValueError(f"{value!r} is not a boolean")
        return b"\0\1" if value else b"\0\0"

    return EmulatedType("boolean", 41, 1, 2, encode, b"\1\0", extended_id=5)


def _char(name: str, coltype: int) -> _Build:
    def build(text: TypeText, codec: str) -> EmulatedType:
        size = text.numbers[0] if text.numbers else 1
        if not 0 < size <= MOST_ROW_BYTES:
            raise ValueError(f"{size} is not the size of a {name}")
        characters = _characters(codec, size)

        def encode(value: object) -> bytes:
            return characters(value).ljust(size)

        return EmulatedType(f"{name}({size})", coltype, size, size, encode, b"\0".ljust(size))

    return build


def _varchar(name: str, coltype: int) -> _Build:
    def build(text: TypeText, codec: str) -> EmulatedType:
        limit, reserve = (*text.numbers, *(1, 0)[len(text.numbers) :])
        if not 0 <= reserve <= limit <= 255:
            raise ValueError(f"({limit},{reserve}) is not the size of a {name}")
        characters = _characters(codec, limit)

        def encode(value: object) -> bytes:
            data = characters(value)
            return bytes((len(data),)) + data

        shown = f"{name}({limit},{reserve})"
        return EmulatedType(shown, coltype, reserve << 8 | limit, None, encode, b"\1\0")

    return build


def _lvarchar(text: TypeText, codec: str) -> EmulatedType:
    limit = text.numbers[0] if text.numbers else 2048
    if not 0 < limit <= _LONGEST_LVARCHAR:
        raise ValueError(f"{limit} is not the size of an lvarchar")
    characters = _characters(codec, limit)
    prefix = struct.Struct(">HB").pack  # length with the flag byte, flag: 1 = NULL

    def encode(value: object) -> bytes:
        data = characters(value)
        return prefix(len(data) + 1, 0) + data

    return EmulatedType(f"lvarchar({limit})", 40, limit, None, encode, b"\0\1\1", extended_id=1)


def _characters(codec: str, limit: int) -> Callable[[object], bytes]:
    def encode(value: object) -> bytes:
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is not text")
        data = value.encode(codec)
        if len(data) > limit:
            raise ValueError(f"{len(data)} bytes of text do not fit into {limit}")
        return data

    return encode


def _large_object(name: str, extended_id: int) -> _Build:
    # a zeroed locator is reported of 14.10; that the indicator is a flag of 1 and padding, as in the
    # NULLs of other opaque types, is our choice
    null = b"\1".ljust(_LARGE_OBJECT_BYTES, b"\0")
    size = _LARGE_OBJECT_BYTES
    kind = EmulatedType(name, 41, 72, size, _handle, null, extended_id)
    return lambda _text, _codec: kind


def _handle(value: object) -> bytes:
    if not isinstance(value, bytes) or len(value) != _LARGE_OBJECT_BYTES:
        raise ValueError(f"a large object is given as its {_LARGE_OBJECT_BYTES}-byte handle")
    return value


def _simple_object(name: str, coltype: int) -> _Build:
    """TEXT and BYTE: no part of a row of the log; elsewhere a value is its bytes."""

    def build(_text: TypeText, codec: str) -> EmulatedType:
        def encode(value: object) -> bytes:
            if isinstance(value, str) and name == "text":
                return value.encode(codec)
            if not isinstance(value, bytes):
                raise ValueError(f"{value!r} is no {name.upper()}")
            return value

        return EmulatedType(name, coltype, 56, 0, encode, b"", 0, is_capturable=False)

    return build


def _not_captured(name: str, coltype: int) -> _Build:
    kind = EmulatedType(name, coltype, 56, 0, lambda _value: b"", b"", 0, is_capturable=False)
    return lambda _text, _codec: kind


_TYPES: dict[str, _Build] = {
    "smallint": _integer("smallint", 1, ">h"),
    "integer": _integer("integer", 2, ">i"),
    "int": _integer("integer", 2, ">i"),
    "serial": _integer("serial", 6, ">i"),
    "bigint": _integer("bigint", 52, ">q"),
    "bigserial": _integer("bigserial", 53, ">q"),
    "int8": _int8("int8", 17),
    "serial8": _int8("serial8", 18),
    "float": _binary_float("float", 3, ">d"),
    "double precision": _binary_float("float", 3, ">d"),
    "smallfloat": _binary_float("smallfloat", 4, ">f"),
    "real": _binary_float("smallfloat", 4, ">f"),
    "decimal": _decimal,
    "dec": _decimal,
    "numeric": _decimal,
    "money": _money,
    "date": _date,
    "datetime": _datetime,
    "interval": _interval,
    "boolean": _boolean,
    "char": _char("char", 0),
    "character": _char("char", 0),
    "nchar": _char("nchar", 15),
    "varchar": _varchar("varchar", 13),
    "character varying": _varchar("varchar", 13),
    "nvarchar": _varchar("nvarchar", 16),
    "lvarchar": _lvarchar,
    "blob": _large_object("blob", 10),
    "clob": _large_object("clob", 11),
    "byte": _simple_object("byte", 11),
    "text": _simple_object("text", 12),
    "set": _not_captured("set", 19),
    "multiset": _not_captured("multiset", 20),
    "list": _not_captured("list", 21),
}
