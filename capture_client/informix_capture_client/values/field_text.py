"""Print the fields of DATETIME and INTERVAL as Informix prints them, whole columns at a time.

Rule: every value is written with the same width; then each is cut out, an interval without the leading
zeros of its first field.

    year to month  2024-01    hour to fraction(2)  07:05:00.25    interval day to second  -3 04:05:06
    fraction to fraction(4)  .1250    interval fraction to fraction(2)  -.05

A value that begins with FRACTION has a leading point, as in IBM's JDBC driver, which prints an INTERVAL
so and does not parse one without it (docs/assumptions.md).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.records import Bits, Integers
from informix_capture_client.values.arrow_arrays import byte_strings
from informix_capture_client.values.qualifiers import SEPARATOR, Qualifier

TWO_DIGITS = np.array([tuple(f"{n:02d}".encode()) for n in range(100)], np.uint8)
_MICROSECOND_DIGITS = 6


def print_fields(
    values: Mapping[str, Integers], qualifier: Qualifier, nulls: Bits, negative: Bits | None = None
) -> pa.Array:
    """Return the fields as text; with `negative` they are those of an interval."""
    widths = {name: _width(name, qualifier) for name in values}
    marked = [name for name in values if name != qualifier.first or name == "fraction"]
    sheet = np.empty((len(nulls), 1 + len(marked) + sum(widths.values())), np.uint8)
    at = 1  # room for a sign; a DATETIME begins behind it
    for name, value in values.items():
        if name in marked:
            sheet[:, at] = ord(SEPARATOR[name])
            at += 1
        if name == "fraction":
            value = value // 10 ** (_MICROSECOND_DIGITS - widths[name])
        _write_digits(sheet[:, at : at + widths[name]], value)
        at += widths[name]
    starts = np.ones(len(nulls), np.int64)
    if negative is not None and qualifier.first != "fraction":
        starts += widths[qualifier.first] - _digits_of(values[qualifier.first])
    if negative is not None:
        starts -= negative
        sheet[negative, starts[negative]] = ord("-")
    lengths = np.where(nulls, 0, sheet.shape[1] - starts)
    starts += np.arange(len(nulls)) * sheet.shape[1]
    return byte_strings(sheet.reshape(-1), starts, lengths, nulls, pa.string())


def _width(name: str, qualifier: Qualifier) -> int:
    if name == "fraction":
        return qualifier.fraction_digits
    if name == qualifier.first:
        return qualifier.leading_digits
    return 2


def _write_digits(sheet: NDArray[np.uint8], value: Integers) -> None:
    """Write numbers right-aligned with zeros in front, two digits at a time."""
    end = sheet.shape[1]
    while end > 0:
        rest = value // 100
        begin = max(end - 2, 0)
        sheet[:, begin:end] = TWO_DIGITS[value - rest * 100][:, begin - end :]
        value, end = rest, begin


def _digits_of(value: Integers) -> Integers:
    """Return the number of digits of each number, at least one."""
    digits = np.ones(len(value), np.int64)
    for power in range(1, 9):
        digits += value >= 10**power
    return digits
