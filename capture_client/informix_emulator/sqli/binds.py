"""Values that a client binds to the parameters of a statement.

The bytes are cut by the type that the client names; the value is then converted to the parameter's
type. The layouts are those that IBM's JDBC driver (4.50.11 and 15.0.1.0) and gbase8sdb 1.1.1 send.

    type:u16  [owner:char name:char, if type is 40 to 45]  indicator:i16  precision:u16  value
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from ..answers import SqlValue
from ..column_types.encoding import EmulatedType
from ..large_objects.simple_objects import DESCRIPTOR_BYTES
from ..sql_errors import sql_error
from .packed import datetime_of, in_fields, interval_of, unpack
from .reading import Malformed, RequestReader

_MAX_BINDS = 32_767
_NULL = -1
_INTERVAL = 14
_DAY_ZERO = datetime.date(1899, 12, 31).toordinal()
_SIMPLE_OBJECTS = (11, 12)  # BYTE and TEXT
_NAMED = range(40, 46)  # opaque types name owner and type


@dataclass(frozen=True, slots=True)
class BoundValue:
    """One value as it came: the type that the client gave it, and its bytes; None is NULL."""

    kind: int
    precision: int
    data: bytes | None
    is_to_come: bool = False  # of a TEXT or BYTE: a later message has the value


def read_binds(reader: RequestReader, object_bytes: int = DESCRIPTOR_BYTES) -> tuple[BoundValue, ...]:
    """Read the values of one execution; in place of a TEXT or BYTE is a descriptor of so many bytes."""
    count = reader.u16("number of values")
    if count > _MAX_BINDS:
        raise Malformed(f"{count} values")
    return tuple(_bound(reader, object_bytes) for _ in range(count))


def _bound(reader: RequestReader, object_bytes: int) -> BoundValue:
    kind = _kind(reader)
    indicator, precision = reader.i16("indicator"), reader.u16("precision")
    if indicator == _NULL:
        return BoundValue(kind, precision, None)
    if kind in _SIMPLE_OBJECTS:
        reader.octets(object_bytes, "descriptor")
        return BoundValue(kind, precision, b"", is_to_come=True)
    cut = _CUT.get(kind)
    if cut is None:
        raise Malformed(f"a value of type {kind} cannot be bound; up to it: {reader.seen.hex()}")
    return BoundValue(kind, precision, cut(reader))


def _kind(reader: RequestReader) -> int:
    kind = reader.u16("type")
    if kind in _NAMED:
        reader.char("owner of the type")
        reader.char("name of the type")
    return kind


def with_objects(binds: Sequence[BoundValue], objects: Sequence[bytes]) -> tuple[BoundValue, ...]:
    """Return bound values with those of TEXT and BYTE; SqlError -1213 if there are more or fewer."""
    waiting = sum(bound.is_to_come for bound in binds)
    if waiting != len(objects):
        raise sql_error(-1213)
    left = iter(objects)
    return tuple(
        BoundValue(bound.kind, bound.precision, next(left)) if bound.is_to_come else bound
        for bound in binds
    )


def read_result_types(reader: RequestReader) -> None:
    """Read what the client wants columns as; this server sends what it has described."""
    reader.u16("first column")
    count = reader.u16("number of columns")
    if count > _MAX_BINDS:
        raise Malformed(f"{count} columns")
    for _ in range(count):
        _kind(reader)
        reader.u32("length")


def _fixed(size: int) -> Callable[[RequestReader], bytes]:
    return lambda reader: reader.octets(size, "value")


def _char(reader: RequestReader) -> bytes:
    return reader.char("value")


def _long(reader: RequestReader) -> bytes:
    return reader.padded(reader.u32("length of value"), "value")


_CUT: dict[int, Callable[[RequestReader], bytes]] = {
    0: _char,
    1: _fixed(2),
    2: _fixed(4),
    3: _fixed(8),
    4: _fixed(4),
    5: _char,
    6: _fixed(4),
    7: _fixed(4),
    8: _char,
    10: _char,
    13: _char,
    14: _char,
    15: _char,
    16: _char,
    17: _fixed(10),
    18: _fixed(10),
    40: _long,
    41: _long,
    43: _long,
    44: _long,
    45: _long,
    52: _fixed(8),
    53: _fixed(8),
}


def value_of(bound: BoundValue, parameter: EmulatedType, codec: str) -> SqlValue:
    """Return a bound value in the type of its parameter; SqlError -1213 if it has none there."""
    if bound.data is None:
        return None
    if bound.is_to_come:
        raise sql_error(-1213)
    fit = _FIT.get(parameter.coltype & 0xFF, _as_it_is)
    try:
        value = _READ[bound.kind](bound.data, _precision(bound, parameter), codec)
        return None if value is None else fit(value, parameter)
    except (ValueError, ArithmeticError, struct.error, LookupError, TypeError):
        raise sql_error(-1213) from None


def _precision(bound: BoundValue, parameter: EmulatedType) -> int:
    """Return the qualifier to read by; an INTERVAL is cut to its parameter's, if it begins alike."""
    is_interval = bound.kind == parameter.coltype & 0xFF == _INTERVAL
    begins_alike = (bound.precision ^ parameter.collength) & 0xF0 == 0
    return parameter.collength if is_interval and begins_alike else bound.precision


def _integer(form: str) -> Callable[[bytes, int, str], SqlValue]:
    unpack_from, null = struct.Struct(form).unpack, -(1 << (8 * struct.calcsize(form) - 1))

    def read(data: bytes, _precision: int, _codec: str) -> SqlValue:
        (value,) = unpack_from(data)
        return None if value == null else value

    return read


def _float(form: str) -> Callable[[bytes, int, str], SqlValue]:
    unpack_from = struct.Struct(form).unpack
    return lambda data, _precision, _codec: float(unpack_from(data)[0])


def _text(data: bytes, _precision: int, codec: str) -> SqlValue:
    return data.decode(codec)


def _date(data: bytes, _precision: int, _codec: str) -> SqlValue:
    (days,) = struct.unpack(">i", data)
    return datetime.date.fromordinal(days + _DAY_ZERO)


def _int8(data: bytes, _precision: int, _codec: str) -> SqlValue:
    sign, low, high = struct.unpack(">hII", data)
    return None if not sign else sign * (high << 32 | low)


_READ: dict[int, Callable[[bytes, int, str], SqlValue]] = {
    0: _text,
    1: _integer(">h"),
    2: _integer(">i"),
    3: _float(">d"),
    4: _float(">f"),
    5: lambda data, _precision, _codec: unpack(data),
    6: _integer(">i"),
    7: _date,
    8: lambda data, _precision, _codec: unpack(data),
    10: lambda data, precision, _codec: datetime_of(data, precision),
    11: lambda data, _precision, _codec: data,
    12: _text,
    13: _text,
    14: lambda data, precision, _codec: interval_of(data, precision),
    15: _text,
    16: _text,
    17: _int8,
    18: _int8,
    40: _text,
    41: lambda data, _precision, _codec: data,
    43: _text,
    44: lambda data, _precision, _codec: data,
    45: lambda data, _precision, _codec: bool(data[0]),
    52: _integer(">q"),
    53: _integer(">q"),
}


def _as_it_is(value: SqlValue, _parameter: EmulatedType) -> SqlValue:
    return value


def _to_integer(value: SqlValue, _parameter: EmulatedType) -> SqlValue:
    return int(Decimal(str(value).strip())) if not isinstance(value, int) else int(value)


def _to_float(value: SqlValue, _parameter: EmulatedType) -> SqlValue:
    return float(str(value))


def _to_decimal(value: SqlValue, _parameter: EmulatedType) -> SqlValue:
    try:
        return Decimal(str(value).strip())
    except InvalidOperation:
        raise ValueError(f"{value!r} is not a number") from None


def _to_date(value: SqlValue, _parameter: EmulatedType) -> SqlValue:
    if isinstance(value, datetime.datetime):
        return value.date()
    return value  # a text is read as the session's DBDATE has it


def _to_datetime(value: SqlValue, parameter: EmulatedType) -> SqlValue:
    if isinstance(value, datetime.datetime):
        return in_fields(value, parameter.collength)
    return value


def _to_text(value: SqlValue, _parameter: EmulatedType) -> SqlValue:
    if isinstance(value, bool):
        return "t" if value else "f"
    return value if isinstance(value, str) else str(value)


def _to_boolean(value: SqlValue, _parameter: EmulatedType) -> SqlValue:
    if isinstance(value, bytes):
        return value
    return _BOOLEANS[value.strip().lower()] if isinstance(value, str) else bool(value)


# a text stands for a BOOLEAN by these letters alone (Guide to SQL: Reference, "BOOLEAN")
_BOOLEANS = {"t": True, "f": False}


_FIT: dict[int, Callable[[SqlValue, EmulatedType], SqlValue]] = {
    0: _to_text,
    1: _to_integer,
    2: _to_integer,
    3: _to_float,
    4: _to_float,
    5: _to_decimal,
    6: _to_integer,
    7: _to_date,
    8: _to_decimal,
    10: _to_datetime,
    13: _to_text,
    15: _to_text,
    16: _to_text,
    17: _to_integer,
    18: _to_integer,
    40: _to_text,
    41: _to_boolean,
    52: _to_integer,
    53: _to_integer,
}
