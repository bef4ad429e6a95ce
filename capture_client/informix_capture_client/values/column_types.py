"""The table of types: the layout of each Informix type in a row, and its Arrow type.

Rule: everything that depends on a column's declaration is determined once, here; a type that is not in
the tables at the end of this file is rejected before the first row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption, UnsupportedColumn
from informix_capture_client.masks import Mask
from informix_capture_client.records import Bits, Integers
from informix_capture_client.values.arrow_arrays import (
    BadValue,
    booleans,
    byte_strings,
    fixed_width,
    refuse,
)
from informix_capture_client.values.column_list import Column
from informix_capture_client.values.datetimes import (
    decode_date_fields,
    decode_field_text,
    decode_timestamp,
)
from informix_capture_client.values.floating_decimal import decode_double, decode_floating
from informix_capture_client.values.intervals import (
    decode_duration,
    decode_interval_text,
    decode_months,
)
from informix_capture_client.values.masked import decoding_masked, masked_type
from informix_capture_client.values.packed_decimal import decode_decimal
from informix_capture_client.values.packed_words import packing
from informix_capture_client.values.qualifiers import FieldReader, Qualifier, make_qualifier
from informix_capture_client.values.text import (
    Bytes,
    CodeSet,
    decode_char,
    decode_content,
    decode_lvarchar,
    decode_varchar,
)

Raw = NDArray[Any]


@dataclass(frozen=True, slots=True)
class FixedType:
    """A type with a fixed width; `decode` gets the column's values as an array of `layout`.

    `null` is the encoding of NULL; a column with only NULLs is not decoded.
    """

    arrow_type: pa.DataType
    layout: np.dtype
    null: bytes
    decode: Callable[[Raw], pa.Array]


@dataclass(frozen=True, slots=True)
class VariableType:
    """A type whose size is in the record's header; `decode` gets bytes, starts and sizes.

    `null` is the encoding of NULL, with the prefix. `content` decodes values without a prefix, from
    sources other than the log: bytes, starts, lengths, and which are NULL.
    """

    arrow_type: pa.DataType
    null: bytes
    decode: Callable[[Bytes, Integers, Integers], pa.Array]
    content: Callable[[Bytes, Integers, Integers, Bits], pa.Array]


ColumnType = FixedType | VariableType
Make = Callable[..., ColumnType]
_Read = Callable[..., pa.Array]

_TYPE = re.compile(r"([a-z0-9_ ]*?[a-z0-9_])(?:\((\d+)(?:,(\d+))?\))?")
_QUALIFIED = re.compile(
    r"(datetime|interval) (\w+)(?:\((\d)\))? to (\w+)(?:\((\d)\))?",
)
# A 4-byte NULL indicator and a 72-byte locator (sample program of the CDC guide, LOHANDLE_OFFSET). A
# NULL has a locator of zeros (Oninit's page on the types of 14.10); its indicator is taken to be a flag
# byte of 1 and padding, as captured NULLs of other opaque types have it (docs/assumptions.md).
_HANDLE_BYTES, _INDICATOR_BYTES = 76, 4
_NO_HANDLE = b"\1".ljust(_HANDLE_BYTES, b"\0")
_MOST_DIGITS = 38  # of a Spark DECIMAL
_DAYS_TO_1970 = 25_568  # Informix counts days from 1899-12-31, Arrow from 1970-01-01
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31 from 1970-01-01


def _integer(layout: str, arrow_type: pa.DataType) -> FixedType:
    dtype = np.dtype(layout)
    lowest = np.iinfo(dtype).min  # the value that stands for NULL
    null = lowest.to_bytes(dtype.itemsize, signed=True)

    def decode(raw: Raw) -> pa.Array:
        values = raw.astype(dtype.newbyteorder("="))
        return fixed_width(arrow_type, values, values == lowest)

    return FixedType(arrow_type, dtype, null, decode)


def _real(bits: str, native: type, arrow_type: pa.DataType) -> FixedType:
    dtype = np.dtype(bits)
    all_ones = np.iinfo(dtype).max  # the bit pattern that stands for NULL

    def decode(raw: Raw) -> pa.Array:
        values = raw.astype(dtype.newbyteorder("="))
        return fixed_width(arrow_type, values.view(native), values == all_ones)

    return FixedType(arrow_type, dtype, b"\xff" * dtype.itemsize, decode)


_INT8 = np.dtype([("sign", ">i2"), ("low", ">u4"), ("high", ">u4")])


def _decode_int8(raw: Raw) -> pa.Array:
    sign, high = raw["sign"].astype(np.int64), raw["high"].astype(np.int64)
    magnitude = high << 32 | raw["low"].astype(np.int64)
    refuse((sign > 1) | (sign < -1), "has an INT8 sign that is not -1, 0 or 1")
    refuse((sign == 0) & (magnitude != 0), "has an INT8 value without a sign")
    refuse(high >> 31 != 0, "has an INT8 magnitude beyond 63 bits")
    return fixed_width(pa.int64(), sign * magnitude, sign == 0)


def _decode_date(raw: Raw) -> pa.Array:
    days = raw.astype(np.int32)
    nulls = days == np.iinfo(np.int32).min
    days -= _DAYS_TO_1970  # what wraps around lands beyond the last day
    beyond = (days - _FIRST_DAY).view(np.uint32) > _LAST_DAY - _FIRST_DAY
    refuse(beyond & ~nulls, "has a DATE outside 0001-01-01 to 9999-12-31")
    return fixed_width(pa.date32(), days, nulls)


def _decode_boolean(raw: Raw) -> pa.Array:
    values = raw.astype(np.uint16)
    refuse(values & 0xFEFE, "has a BOOLEAN byte that is not 0 or 1")
    return booleans(values & 1, values > 0xFF)


def _decode_handle(raw: Raw) -> pa.Array:
    """Return large objects' handles unchanged; their contents are not in the log.

    Raises:
        BadValue: neither a handle nor NULL: an indicator with a locator that is not empty.
    """
    handles = raw.copy().view(np.uint8).reshape(-1, _HANDLE_BYTES)
    nulls = np.logical_not(handles[:, _INDICATOR_BYTES:].any(axis=1))
    unknown = handles[:, :_INDICATOR_BYTES].any(axis=1) & ~nulls
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        found = handles[row, :_INDICATOR_BYTES].tobytes().hex()
        raise BadValue(row, f"has a large object's indicator {found} with a locator that is not empty")
    lengths = np.where(nulls, 0, _HANDLE_BYTES)
    return byte_strings(handles.reshape(-1), np.arange(len(raw)) * _HANDLE_BYTES, lengths, nulls)


def _decimal(rules: DecodeRules, precision: int = 16, scale: int | None = None) -> FixedType:
    if not 1 <= precision <= 32 or (scale or 0) > precision:
        raise ValueError(f"precision {precision} and scale {scale} are out of range")
    if scale is None:
        return _floating(precision, rules)
    return _exact(precision, scale, (precision + (scale & 1) + 3) // 2)


def _exact(precision: int, scale: int, size: int) -> FixedType:
    packed = packing(size)
    decode = partial(decode_decimal, packing=packed, precision=precision, scale=scale)
    return FixedType(pa.decimal128(precision, scale), packed.layout, bytes(size), decode)


def _floating(precision: int, rules: DecodeRules) -> FixedType:
    size = (precision + 4) // 2
    if isinstance(rules.floating_decimal, int):
        return _exact(_MOST_DIGITS, rules.floating_decimal, size)
    arrow_type, decode = _FLOATING[rules.floating_decimal]
    packed = packing(size)
    return FixedType(arrow_type, packed.layout, bytes(size), partial(decode, packing=packed))


def _money(rules: DecodeRules, precision: int = 16, scale: int = 2) -> FixedType:
    return _decimal(rules, precision, scale)


def _char(rules: DecodeRules, width: int = 1) -> FixedType:
    if not 1 <= width <= 32_767:
        raise ValueError(f"width {width} is out of range")
    decode = partial(decode_char, code_set=_code_set(rules), keep_blanks=rules.keep_blanks)
    return FixedType(pa.string(), np.dtype(f"V{width}"), b"\0".ljust(width), decode)


def _code_set(rules: DecodeRules) -> CodeSet:
    return CodeSet(rules.codec, rules.bad_characters)


def _datetime(qualifier: Qualifier, rules: DecodeRules) -> tuple[pa.DataType, _Read]:
    if qualifier.first != "year" or qualifier.last in ("year", "month"):
        return pa.string(), decode_field_text
    if qualifier.last == "day":
        return pa.date32(), decode_date_fields
    return pa.timestamp("us"), decode_timestamp


def _interval(qualifier: Qualifier, rules: DecodeRules) -> tuple[pa.DataType, _Read]:
    if rules.intervals == "string":
        return pa.string(), decode_interval_text
    if qualifier.first in ("year", "month"):
        return pa.int32(), decode_months
    return pa.duration("us"), decode_duration


def _qualified(rules: DecodeRules, kind: str, *parts: str) -> FixedType:
    qualifier = make_qualifier(kind, *parts)
    arrow_type, decode = _QUALIFIED_TYPES[kind](qualifier, rules)
    reader = FieldReader(kind, qualifier)
    null = bytes(qualifier.width_bytes)
    return FixedType(arrow_type, reader.packing.layout, null, partial(decode, reader=reader))


def _plain(made: ColumnType) -> Make:
    def make(rules: DecodeRules, *arguments: int) -> ColumnType:
        if arguments:
            raise ValueError("it does not accept a number in parentheses")
        return made

    return make


def _started(made: ColumnType) -> Make:
    """A type whose number in parentheses, a start value or a precision, does not change its layout."""
    return lambda rules, ignored=0: made


def _variable(decode: Callable[..., pa.Array], null: bytes, most: int) -> Make:
    def make(rules: DecodeRules, size: int = 1, reserve: int = 0) -> VariableType:
        if not reserve <= size <= most:
            raise ValueError(f"size {size} and reserve {reserve} are out of range")
        code_set = _code_set(rules)
        content = partial(decode_content, code_set=code_set)
        return VariableType(pa.string(), null, partial(decode, code_set=code_set), content)

    return make


_INT32 = _integer(">i4", pa.int32())
_INT64 = _integer(">i8", pa.int64())
_SIGNED_INT8 = FixedType(pa.int64(), _INT8, bytes(10), _decode_int8)
_DOUBLE = _real(">u8", np.float64, pa.float64())
_FLOAT = _real(">u4", np.float32, pa.float32())
_BLOB, _CLOB = (  # two, since their contents are of two types
    _plain(FixedType(pa.binary(), np.dtype(f"V{_HANDLE_BYTES}"), _NO_HANDLE, _decode_handle))
    for _ in range(2)
)
_DATE = FixedType(pa.date32(), np.dtype(">i4"), b"\x80\0\0\0", _decode_date)

_TYPES: dict[str, Make] = {
    "smallint": _plain(_integer(">i2", pa.int16())),
    "integer": _plain(_INT32),
    "int": _plain(_INT32),
    "serial": _started(_INT32),
    "bigint": _plain(_INT64),
    "bigserial": _started(_INT64),
    "int8": _plain(_SIGNED_INT8),
    "serial8": _started(_SIGNED_INT8),
    "smallfloat": _plain(_FLOAT),
    "real": _plain(_FLOAT),
    "float": _started(_DOUBLE),
    "double precision": _started(_DOUBLE),
    "decimal": _decimal,
    "dec": _decimal,
    "numeric": _decimal,
    "money": _money,
    "date": _plain(_DATE),
    "boolean": _plain(FixedType(pa.bool_(), np.dtype(">u2"), b"\1\0", _decode_boolean)),
    "char": _char,
    "character": _char,
    "nchar": _char,
    "varchar": _variable(decode_varchar, b"\1\0", 255),
    "character varying": _variable(decode_varchar, b"\1\0", 255),
    "nvarchar": _variable(decode_varchar, b"\1\0", 255),
    "lvarchar": _variable(decode_lvarchar, b"\0\1\1", 32_739),
    "blob": _BLOB,
    "clob": _CLOB,
}
_LARGE_OBJECTS = ("blob", "clob")
_COLLECTIONS = ("set", "multiset", "list")
_FLOATING = {"string": (pa.string(), decode_floating), "double": (pa.float64(), decode_double)}
_QUALIFIED_TYPES = {"datetime": _datetime, "interval": _interval}


def compile_type(column: Column, table: str, rules: DecodeRules) -> ColumnType:
    """Return the decoder of a column's type.

    Raises:
        BadOption: its mask does not apply to the type.
        UnsupportedColumn: the type is unknown; the error names table, column and type.
    """
    try:
        kind = _compiled(column.type_text, rules)
    except ValueError as reason:
        raise _unsupported(column, table, f": {reason}") from None
    except TypeError:
        raise _unsupported(column, table, ": it has too many numbers in parentheses") from None
    if kind is None:
        raise _unsupported(column, table, "")
    if (mask := column.mask_of_values) is None:
        return kind
    try:
        return _masked(column.type_text, rules, mask)
    except ValueError as reason:
        raise BadOption(
            f"option 'mask' has {mask.kind} for column {column.name} of {table}, a"
            f" {column.type_text.upper()}: {reason}.",
            "Use hash or null for it.",
            option="mask",
        ) from None


@lru_cache(maxsize=4096)  # as below: what decodes in the same way is the same object
def _masked(type_text: str, rules: DecodeRules, mask: Mask) -> ColumnType:
    """Return a type that can be compiled, with its values masked."""
    kind = _compiled(type_text, rules)
    assert kind is not None
    arrow_type, decode = masked_type(kind.arrow_type, mask), decoding_masked(kind.decode, mask)
    if isinstance(kind, FixedType):
        return replace(kind, arrow_type=arrow_type, decode=decode)
    return replace(kind, arrow_type=arrow_type, decode=decode)


@lru_cache(maxsize=4096)  # five hundred tables have thousands of columns, of a few types
def _compiled(type_text: str, rules: DecodeRules) -> ColumnType | None:
    if found := _QUALIFIED.fullmatch(type_text):
        return _qualified(rules, *found.groups())
    if (found := _TYPE.fullmatch(type_text)) and found[1] in _TYPES:
        arguments = tuple(int(part) for part in found.groups()[1:] if part is not None)
        return _TYPES[found[1]](rules, *arguments)
    return None


def capturable(type_text: str) -> bool:
    """Return whether a column of this type can be captured; large objects count, by their handle.

    >>> capturable("decimal(10,2)"), capturable("text")
    (True, False)
    """
    try:
        compile_type(Column("", type_text), "", DecodeRules())
    except UnsupportedColumn:
        return False
    return True


def is_large_object(type_text: str) -> bool:
    """Return whether a column is a BLOB or CLOB, whose rows contain only a handle."""
    return type_text in _LARGE_OBJECTS


def is_simple_object(type_text: str) -> bool:
    """Return whether a column is a TEXT or BYTE, which the log does not contain."""
    return type_text in ("text", "byte")


def is_collection(type_text: str) -> bool:
    """Return whether a column is a SET, MULTISET or LIST; columns after it are not captured."""
    return type_text in _COLLECTIONS


def _unsupported(column: Column, table: str, why: str) -> UnsupportedColumn:
    return UnsupportedColumn(
        f"column {column.name} of table {table} has type {column.type_text.upper()[:200]},"
        f" which cannot be captured{why}.",
        "Exclude it with option columns or unsupportedColumns=omit; docs/types.md lists the types.",
        table=table,
        column=column.name,
        type=column.type_text,
    )
