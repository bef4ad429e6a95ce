"""The table of types: what each Informix type is in a row and becomes in Arrow.

Rule: everything that depends on a column's declaration is worked out once, here; a type that is not
in the tables at the foot of this file is refused before the first row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_cdc.capture_client.arrow_arrays import booleans, byte_strings, fixed_width, refuse
from informix_cdc.capture_client.columns import Column
from informix_cdc.capture_client.datetimes import (
    FIELDS,
    Qualifier,
    decode_date_fields,
    decode_duration,
    decode_field_text,
    decode_months,
    decode_timestamp,
)
from informix_cdc.capture_client.decode_rules import DecodeRules
from informix_cdc.capture_client.errors import UnsupportedColumn
from informix_cdc.capture_client.framing import Integers
from informix_cdc.capture_client.packed_decimal import Bytes, decode_decimal, decode_floating
from informix_cdc.capture_client.text import decode_char, decode_lvarchar, decode_varchar

Raw = NDArray[Any]


@dataclass(frozen=True, slots=True)
class FixedType:
    """A type with one width; `decode` gets the column's values as an array of `layout`."""

    arrow_type: pa.DataType
    layout: np.dtype
    decode: Callable[[Raw], pa.Array]


@dataclass(frozen=True, slots=True)
class VariableType:
    """A type whose size stands in the record's header; `decode` gets bytes, starts and sizes."""

    arrow_type: pa.DataType
    decode: Callable[[Bytes, Integers, Integers], pa.Array]


ColumnType = FixedType | VariableType

_TYPE = re.compile(r"([a-z0-9_ ]*?[a-z0-9_])(?:\((\d+)(?:,(\d+))?\))?")
_QUALIFIED = re.compile(
    r"(datetime|interval) (\w+)(?:\((\d)\))? to (\w+)(?:\((\d)\))?",
)
# A 4-byte NULL indicator and a 72-byte pointer (sample program of the CDC guide, LOHANDLE_OFFSET). That
# an indicator of -1 says NULL, as in ESQL/C, is an assumption: no source shows the bytes of a NULL.
_HANDLE_BYTES, _INDICATOR_BYTES = 76, 4
_DAYS_TO_1970 = 25_568  # Informix counts days from 1899-12-31, Arrow from 1970-01-01
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31 from 1970-01-01


def _integer(layout: str, arrow_type: pa.DataType) -> FixedType:
    dtype = np.dtype(layout)
    lowest = np.iinfo(dtype).min  # the value that stands for NULL

    def decode(raw: Raw) -> pa.Array:
        return fixed_width(arrow_type, raw.astype(dtype.newbyteorder("=")), raw == lowest)

    return FixedType(arrow_type, dtype, decode)


def _real(bits: str, native: type, arrow_type: pa.DataType) -> FixedType:
    dtype = np.dtype(bits)
    all_ones = np.iinfo(dtype).max  # the bit pattern that stands for NULL

    def decode(raw: Raw) -> pa.Array:
        values = raw.astype(dtype.newbyteorder("="))
        return fixed_width(arrow_type, values.view(native), raw == all_ones)

    return FixedType(arrow_type, dtype, decode)


_INT8 = np.dtype([("sign", ">i2"), ("low", ">u4"), ("high", ">u4")])


def _decode_int8(raw: Raw) -> pa.Array:
    sign, high = raw["sign"].astype(np.int64), raw["high"].astype(np.int64)
    magnitude = high << 32 | raw["low"].astype(np.int64)
    refuse((sign > 1) | (sign < -1), "has an INT8 sign that is not -1, 0 or 1")
    refuse((sign == 0) & (magnitude != 0), "has an INT8 value without a sign")
    refuse(high >> 31 != 0, "has an INT8 magnitude beyond 63 bits")
    return fixed_width(pa.int64(), sign * magnitude, sign == 0)


def _decode_date(raw: Raw) -> pa.Array:
    nulls = raw == np.iinfo(np.int32).min
    days = np.where(nulls, 0, raw).astype(np.int64) - _DAYS_TO_1970
    beyond = ((days < _FIRST_DAY) | (days > _LAST_DAY)) & ~nulls
    refuse(beyond, "has a DATE outside 0001-01-01 to 9999-12-31")
    return fixed_width(pa.date32(), days.astype(np.int32), nulls)


def _decode_boolean(raw: Raw) -> pa.Array:
    refuse((raw > 1).any(axis=1), "has a BOOLEAN byte that is not 0 or 1")
    return booleans(raw[:, 1] == 1, raw[:, 0] == 1)


def _decode_handle(raw: Raw) -> pa.Array:
    """Hand a large object's handle on as it is: its content is not in the log."""
    nulls = (raw[:, :_INDICATOR_BYTES] == 0xFF).all(axis=1)
    starts = np.arange(len(raw)) * _HANDLE_BYTES
    lengths = np.where(nulls, 0, _HANDLE_BYTES)
    return byte_strings(np.ascontiguousarray(raw), starts, lengths, nulls).cast(pa.binary())


def _bytes_type(width: int, arrow_type: pa.DataType, decode: Callable[[Bytes], pa.Array]) -> FixedType:
    return FixedType(arrow_type, np.dtype((np.uint8, (width,))), decode)


def _decimal(precision: int, scale: int | None) -> FixedType:
    if not 1 <= precision <= 32 or (scale or 0) > precision:
        raise ValueError(f"precision {precision} and scale {scale} are out of range")
    if scale is None:
        return _bytes_type((precision + 4) // 2, pa.string(), decode_floating)
    width = (precision + (scale & 1) + 3) // 2
    decode = partial(decode_decimal, precision=precision, scale=scale)
    return _bytes_type(width, pa.decimal128(precision, scale), decode)


def _char(width: int, rules: DecodeRules) -> FixedType:
    if not 1 <= width <= 32_767:
        raise ValueError(f"width {width} is out of range")
    decode = partial(decode_char, codec=rules.codec, keep_blanks=rules.keep_blanks)
    return _bytes_type(width, pa.string(), decode)


def _datetime(qualifier: Qualifier) -> FixedType:
    if qualifier.first != "year" or qualifier.last in ("year", "month"):
        arrow_type, decode = pa.string(), decode_field_text
    elif qualifier.last == "day":
        arrow_type, decode = pa.date32(), decode_date_fields
    else:
        arrow_type, decode = pa.timestamp("us"), decode_timestamp
    return _bytes_type(qualifier.width_bytes, arrow_type, partial(decode, qualifier=qualifier))


def _interval(qualifier: Qualifier) -> FixedType:
    if qualifier.first in ("year", "month"):
        decode, arrow_type = decode_months, pa.int32()
    else:
        decode, arrow_type = decode_duration, pa.duration("us")
    return _bytes_type(qualifier.width_bytes, arrow_type, partial(decode, qualifier=qualifier))


def _qualifier(kind: str, first: str, lead: str | None, last: str, end: str | None) -> Qualifier:
    if first not in FIELDS or last not in FIELDS or FIELDS.index(first) > FIELDS.index(last):
        raise ValueError(f"{first} to {last} is no qualifier")
    default = 4 if first == "year" else 2
    is_interval = kind == "interval"
    leading = int(lead) if lead and is_interval else default
    fraction = int(end or (lead if first == "fraction" else None) or 3) if last == "fraction" else 0
    if fraction > 5 or (is_interval and first in ("year", "month") and last not in ("year", "month")):
        raise ValueError(f"{first} to {last} is no qualifier")
    if leading == 0:
        raise ValueError("a leading field needs at least one digit")
    return Qualifier(first, last, leading, fraction)


Make = Callable[[tuple[int, ...], DecodeRules], ColumnType]


def _plain(made: ColumnType) -> Make:
    return lambda arguments, rules: made


def _variable(decode: Callable[..., pa.Array]) -> Make:
    return lambda arguments, rules: VariableType(pa.string(), partial(decode, codec=rules.codec))


_INT32 = _integer(">i4", pa.int32())
_INT64 = _integer(">i8", pa.int64())
_SIGNED_INT8 = FixedType(pa.int64(), _INT8, _decode_int8)
_DOUBLE = _real(">u8", np.float64, pa.float64())
_FLOAT = _real(">u4", np.float32, pa.float32())
_DATE = FixedType(pa.date32(), np.dtype(">i4"), _decode_date)

_TYPES: dict[str, Make] = {
    "smallint": _plain(_integer(">i2", pa.int16())),
    "integer": _plain(_INT32),
    "int": _plain(_INT32),
    "serial": _plain(_INT32),
    "bigint": _plain(_INT64),
    "bigserial": _plain(_INT64),
    "int8": _plain(_SIGNED_INT8),
    "serial8": _plain(_SIGNED_INT8),
    "smallfloat": _plain(_FLOAT),
    "real": _plain(_FLOAT),
    "float": _plain(_DOUBLE),
    "double precision": _plain(_DOUBLE),
    "decimal": lambda arguments, _: _decimal((*arguments, 16)[0], (*arguments[1:], None)[0]),
    "numeric": lambda arguments, _: _decimal((*arguments, 16)[0], (*arguments[1:], None)[0]),
    "money": lambda arguments, _: _decimal((*arguments, 16)[0], (*arguments[1:], 2)[0]),
    "date": _plain(_DATE),
    "boolean": _plain(_bytes_type(2, pa.bool_(), _decode_boolean)),
    "char": lambda arguments, rules: _char((*arguments, 1)[0], rules),
    "character": lambda arguments, rules: _char((*arguments, 1)[0], rules),
    "nchar": lambda arguments, rules: _char((*arguments, 1)[0], rules),
    "varchar": _variable(decode_varchar),
    "nvarchar": _variable(decode_varchar),
    "lvarchar": _variable(decode_lvarchar),
    "blob": _plain(_bytes_type(_HANDLE_BYTES, pa.binary(), _decode_handle)),
    "clob": _plain(_bytes_type(_HANDLE_BYTES, pa.binary(), _decode_handle)),
}
_LARGE_OBJECTS = ("blob", "clob")
_QUALIFIED_TYPES = {"datetime": _datetime, "interval": _interval}


def compile_type(column: Column, table: str, rules: DecodeRules) -> ColumnType:
    """Return how a column reads from a row.

    Raises:
        UnsupportedColumn: the type is not in the table; names table, column and type.
    """
    try:
        if found := _QUALIFIED.fullmatch(column.type_text):
            return _QUALIFIED_TYPES[found[1]](_qualifier(*found.groups()))
        if (found := _TYPE.fullmatch(column.type_text)) and found[1] in _TYPES:
            arguments = tuple(int(part) for part in found.groups()[1:] if part is not None)
            return _TYPES[found[1]](arguments, rules)
    except ValueError as reason:
        raise _unsupported(column, table, f": {reason}") from None
    raise _unsupported(column, table, "")


def capturable(type_text: str) -> bool:
    """Tell whether a column of this type can be captured, large objects by their handle.

    >>> capturable("decimal(10,2)"), capturable("text")
    (True, False)
    """
    try:
        compile_type(Column("", type_text), "", DecodeRules())
    except UnsupportedColumn:
        return False
    return True


def is_large_object(type_text: str) -> bool:
    """Tell whether a column's rows hold only the handle of a value that is stored elsewhere."""
    return type_text in _LARGE_OBJECTS


def _unsupported(column: Column, table: str, why: str) -> UnsupportedColumn:
    return UnsupportedColumn(
        f"column {column.name} of table {table} has type {column.type_text.upper()[:200]},"
        f" which cannot be captured{why}.",
        "Leave the table out, or give the column a type of the list in the README.",
        table=table,
        column=column.name,
        type=column.type_text,
    )
