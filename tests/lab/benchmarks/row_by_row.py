"""The plain way to decode the benchmark's table: one row, one column at a time.

What one writes first, with `struct` compiled once; the yardstick for the decoder.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa

_FIXED = struct.Struct(">iq9siQBB10s11s")
_SIZES = struct.Struct(">II")
_DOUBLE, _BITS = struct.Struct(">d"), struct.Struct(">Q")
_DAY_ZERO = date(1899, 12, 31).toordinal()

Value = int | float | bool | str | Decimal | date | datetime | None
Values = tuple[Value, ...]


def decode_row(sizes: bytes, payload: bytes) -> Values:
    """Return the values of a row from its record's size array and payload."""
    number, written, amount, due, weight, no_flag, flag, code, changed = _FIXED.unpack_from(payload)
    label_size, _ = _SIZES.unpack(sizes)
    label_end = _FIXED.size + label_size
    label, note = payload[_FIXED.size + 1 : label_end], payload[label_end:]
    return (
        None if number == -(2**31) else number,
        None if written == -(2**63) else written,
        _decimal(amount),
        None if due == -(2**31) else date.fromordinal(_DAY_ZERO + due),
        None if weight == 2**64 - 1 else _DOUBLE.unpack(_BITS.pack(weight))[0],
        None if no_flag else flag == 1,
        None if code[0] == 0 else code.decode().rstrip(" "),
        _timestamp(changed),
        None if label == b"\0" else label.decode(),
        None if note[2] else note[3:].decode(),
    )


def decode_rows(rows: Iterable[tuple[bytes, bytes]], schema: pa.Schema) -> pa.RecordBatch:
    """Return the same Arrow batch that the decoder makes."""
    columns = zip(*(decode_row(*row) for row in rows), strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _digits(packed: bytes) -> tuple[int, list[int], int] | None:
    """Return sign, base-100 digits and exponent; None for NULL."""
    head, digits = packed[0], list(packed[1:])
    if head == 0:
        return None
    if head >= 0x80:
        return 0, digits, head - 192
    last = max(place for place, digit in enumerate(digits) if digit)
    for place in range(last):
        digits[place] = 99 - digits[place]
    digits[last] = 100 - digits[last]
    return 1, digits, (~head & 0x7F) - 64


def _decimal(packed: bytes) -> Decimal | None:
    if (number := _digits(packed)) is None:
        return None
    sign, digits, exponent = number
    unscaled = 0
    for digit in digits:
        unscaled = unscaled * 100 + digit
    return Decimal(-unscaled if sign else unscaled).scaleb(2 * (exponent - len(digits)))


def _timestamp(packed: bytes) -> datetime | None:
    if (number := _digits(packed)) is None:
        return None
    _, (century, year, month, day, hour, minute, second, *fraction), _ = number
    microseconds = fraction[0] * 10_000 + fraction[1] * 100 + fraction[2]
    return datetime(century * 100 + year, month, day, hour, minute, second, microseconds)
