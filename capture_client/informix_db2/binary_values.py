"""Decode fixed-width fields into Arrow columns, whole columns at a time.

Rule: a field is a row of a matrix of bytes. Packed digits are converted to text first, so that one
function parses dates and decimals; a nibble that is not a digit makes the value invalid.

    packed decimal   digits, the last nibble is the sign: C A E F plus, D B minus (IBM, z/Architecture)
    packed digits    of a date 4 bytes, of a time 3, of a timestamp 7 and its fraction
    hex float        sign, exponent of 16 in excess of 64, fraction of 24 or 56 bits (z/Architecture)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_db2.changes import IntArray
from informix_db2.declared_tables import Db2Column
from informix_db2.text_values import read_what_can_be, reader_of

Matrix = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Order = Literal["little", "big"]
_FieldReader = Callable[[Matrix, Bools], tuple[pa.Array, list[int]]]

_MARKS = {"little": "<", "big": ">"}
_NUMPY = {"SMALLINT": "i2", "INTEGER": "i4", "BIGINT": "i8", "REAL": "f4", "DOUBLE": "f8"}
_DATE, _TIME = "0000-00-00", "00.00.00"
_HEX = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)
_NO_DIGIT = ord("?")
_PLUS, _MINUS = (0xC, 0xA, 0xE, 0xF), (0xD, 0xB)


def fields_of(data: NDArray[np.uint8], starts: IntArray, width: int) -> Matrix:
    """Return the bytes of a field of each row; all must lie in the data."""
    if not len(starts) or not width:
        return np.zeros((len(starts), width), np.uint8)
    # One item at every byte, as wide as the field: it is copied as a whole.
    items = np.ndarray((len(data) - width + 1,), f"V{width}", data, strides=(1,))
    return items[starts].view(np.uint8).reshape(len(starts), width)


def numbers_of(fields: Matrix, code: str, order: Order) -> NDArray[np.generic]:
    """Return fields as numbers of NumPy's code, such as i4, in a byte order."""
    return np.ascontiguousarray(fields).view(_MARKS[order] + code).ravel()


def width_of(column: Db2Column) -> int:
    """Return the bytes of a numeric column or a column of packed digits."""
    if column.kind in _NUMPY:
        return int(_NUMPY[column.kind][1])
    widths = {
        "DECIMAL": column.length // 2 + 1,
        "DATE": 4,
        "TIME": 3,
        "TIMESTAMP": 7 + (column.length + 1) // 2,
    }
    return widths[column.kind]


def number_reader(column: Db2Column, order: Order, *, is_hex_float: bool = False) -> _FieldReader:
    """Return the decoder of a column of integers or floats."""
    code, kind = _NUMPY[column.kind], column.type

    def read(fields: Matrix, valid: Bools) -> tuple[pa.Array, list[int]]:
        if is_hex_float and code.startswith("f"):
            return _hex_floats(fields, valid, kind)
        numbers = numbers_of(fields, code, order).astype(code)
        return pa.array(numbers, kind, mask=~valid), []

    return read


def decimal_reader(column: Db2Column) -> _FieldReader:
    """Return the decoder of a column of packed decimals."""
    count, scale, parse = 2 * (column.length // 2 + 1) - 1, column.scale, reader_of(column)

    def read(fields: Matrix, valid: Bools) -> tuple[pa.Array, list[int]]:
        nibbles = nibbles_of(fields)
        whole = digits_of(nibbles[:, :count])
        sign = nibbles[:, count]
        signs = np.where(np.isin(sign, _MINUS), ord("-"), ord("+")).astype(np.uint8)
        signs[~np.isin(sign, _PLUS + _MINUS)] = _NO_DIGIT
        point = np.full((len(fields), 1), ord("."), np.uint8)
        texts = [signs[:, None], whole[:, : count - scale], point, whole[:, count - scale :]]
        return read_what_can_be(texts_of(np.hstack(texts), valid), parse, column.type)

    return read


def packed_moment_reader(column: Db2Column) -> _FieldReader:
    """Return the decoder of a column of dates, times or timestamps in packed digits."""
    pattern = {"DATE": _DATE, "TIME": _TIME}.get(column.kind, _DATE + "-" + _TIME)
    parse = reader_of(column)
    digits = column.length if column.kind == "TIMESTAMP" else 0

    def read(fields: Matrix, valid: Bools) -> tuple[pa.Array, list[int]]:
        texts = texts_of(punctuated(digits_of(nibbles_of(fields)), pattern, digits), valid)
        return read_what_can_be(texts, parse, column.type)

    return read


def nibbles_of(fields: Matrix) -> Matrix:
    """Return two entries a byte."""
    high, low = fields >> np.uint8(4), fields & np.uint8(15)
    return np.stack([high, low], axis=2).reshape(len(fields), 2 * fields.shape[1])


def hexadecimal_of(fields: Matrix, valid: Bools) -> pa.Array:
    """Return fields as hexadecimal digits."""
    digits = _HEX[fields].view(np.uint8).reshape(len(fields), 2 * fields.shape[1])
    return texts_of(digits, valid)


def digits_of(nibbles: Matrix) -> Matrix:
    """Return digits as characters; an invalid digit becomes a question mark, which does not parse."""
    return np.where(nibbles > 9, _NO_DIGIT, nibbles + ord("0")).astype(np.uint8)


def punctuated(digits: Matrix, pattern: str, fraction: int) -> Matrix:
    """Insert digits at the zeros of a pattern, and the remaining ones after a point."""
    pattern += "." + "0" * fraction if fraction else ""
    made = np.tile(np.frombuffer(pattern.encode(), np.uint8), (len(digits), 1))
    places = np.flatnonzero(made[0] == ord("0")) if len(digits) else np.empty(0, np.int64)
    made[:, places] = digits[:, : len(places)]
    return made


def texts_of(characters: Matrix, valid: Bools) -> pa.Array:
    """Return rows of a matrix of ASCII as strings."""
    return _rows_of(characters, valid, pa.string())


def binaries_of(fields: Matrix, valid: Bools) -> pa.Array:
    """Return rows of a matrix as binary values."""
    return _rows_of(fields, valid, pa.binary())


def _rows_of(characters: Matrix, valid: Bools, kind: pa.DataType) -> pa.Array:
    count, width = characters.shape
    offsets = (np.arange(count + 1) * width).astype(np.int32)
    data = pa.py_buffer(np.ascontiguousarray(characters))
    buffers = [pa.array(valid).buffers()[1], pa.py_buffer(offsets), data]
    return pa.Array.from_buffers(kind, count, buffers)


def _hex_floats(fields: Matrix, valid: Bools, kind: pa.DataType) -> tuple[pa.Array, list[int]]:
    """Decode System/360 floats to the nearest IEEE value: a double has 53 of the 56 bits.

    Values that do not fit in an IEEE REAL, such as 16^63, are invalid.
    """
    width = fields.shape[1]
    sign, exponent = fields[:, 0] >> 7, (fields[:, 0] & 0x7F).astype(np.int64) - 64
    fraction = np.zeros(len(fields), np.uint64)
    for place in range(1, width):
        fraction = (fraction << np.uint64(8)) | fields[:, place].astype(np.uint64)
    mantissa = fraction.astype(np.float64)
    values = np.ldexp(mantissa, (4 * exponent - 8 * (width - 1)).astype(np.int32))
    values = np.where(sign == 1, -values, values)
    has_room = np.ones(len(fields), bool)
    if pa.types.is_float32(kind):
        with np.errstate(over="ignore", under="ignore"):
            has_room = values.astype(np.float32).astype(np.float64) == values
    bad = np.flatnonzero(valid & ~has_room).tolist()
    return pa.array(values, mask=~valid).cast(kind, safe=False), bad
