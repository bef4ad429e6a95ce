"""Decode DATETIME and INTERVAL of every qualifier.

Rule: the point of the packed decimal is after SECOND, whatever the qualifier (captured rows:
`year to day` has exponent 7, `hour to minute` 07:05 is c3 07 05). So each field has a fixed place:

    pair      6 5      4       3     2      1        0    .  -1 -2 -3
    field     YEAR   MONTH    DAY  HOUR  MINUTE   SECOND  .  FRACTION

An interval's leading field may have up to nine digits and then extends to the left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_cdc.capture_client.arrow_arrays import Bits, binaries, fixed_width, refuse
from informix_cdc.capture_client.framing import Integers
from informix_cdc.capture_client.packed_decimal import Bytes, Unpacked, align, join_pairs, unpack

FIELDS = ("year", "month", "day", "hour", "minute", "second", "fraction")
_PLACE = {"year": 5, "month": 4, "day": 3, "hour": 2, "minute": 1, "second": 0}
_UNIT_MICROSECONDS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "fraction": 1,
}
_TIME_RANGE = {"hour": (0, 23), "minute": (0, 59), "second": (0, 59)}
_DATETIME_RANGE = {"year": (1, 9999), "month": (1, 12), "day": (1, 31), **_TIME_RANGE}
_INTERVAL_RANGE = {"month": (0, 11), **_TIME_RANGE}  # of fields that do not lead
_SEPARATOR = {"month": "-", "day": "-", "hour": " ", "minute": ":", "second": ":", "fraction": "."}
_MAX_INTERVAL_DAYS = 106_751_990  # one less than what 64-bit microseconds hold, so the rest fits


@dataclass(frozen=True, slots=True)
class Qualifier:
    """From `first` to `last` field; `leading_digits` of the first, `fraction_digits` at the end."""

    first: str
    last: str
    leading_digits: int
    fraction_digits: int

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that a value shows, the largest first."""
        return FIELDS[FIELDS.index(self.first) : FIELDS.index(self.last) + 1]

    @property
    def leading_pairs(self) -> int:
        """How many base-100 digits the leading field takes."""
        return -(-self.leading_digits // 2)

    @property
    def whole_pairs(self) -> int:
        """How many base-100 digits lie before the point, implied trailing fields included."""
        return 0 if self.first == "fraction" else _PLACE[self.first] + self.leading_pairs

    @property
    def fraction_pairs(self) -> int:
        """How many base-100 digits lie after the point."""
        return -(-self.fraction_digits // 2)

    @property
    def width_bytes(self) -> int:
        """What a value occupies in a row: only the fields up to `last` are stored."""
        whole = [name for name in self.fields[1:] if name != "fraction"]
        leading = 0 if self.first == "fraction" else self.leading_pairs
        return leading + len(whole) + self.fraction_pairs + 1


def _split(number: Unpacked, qualifier: Qualifier) -> dict[str, Integers]:
    """Return each field's values; fields that the qualifier leaves out must be zero."""
    whole = qualifier.whole_pairs
    pairs = align(number, whole, qualifier.fraction_pairs)
    values: dict[str, Integers] = {}
    for name in qualifier.fields:
        if name == "fraction":
            padded = np.pad(pairs[:, whole:], ((0, 0), (0, 3 - qualifier.fraction_pairs)))
            values[name] = join_pairs(padded)
            finest = 10 ** (6 - qualifier.fraction_digits)
            refuse(values[name] % finest != 0, f"has more than {qualifier.fraction_digits} decimals")
            continue
        column = whole - 1 - _PLACE[name]
        first = 0 if name == qualifier.first else column
        values[name] = join_pairs(pairs[:, first : column + 1])
    stored = whole - (0 if qualifier.last == "fraction" else _PLACE[qualifier.last])
    below = pairs[:, stored:whole].any(axis=1)
    refuse(below, f"has digits below its {qualifier.last.upper()}")
    return values


def _require_range(values: Integers, name: str, bounds: tuple[int, int], nulls: Bits) -> None:
    lowest, highest = bounds
    bad = (values < lowest) | (values > highest)
    refuse(bad & ~nulls, f"has a {name.upper()} outside {lowest} to {highest}")


def _datetime_fields(number: Unpacked, qualifier: Qualifier) -> dict[str, Integers]:
    values = _split(number, qualifier)
    refuse(number.negative, "is a negative DATETIME")
    for name in qualifier.fields:
        if bounds := _DATETIME_RANGE.get(name):
            _require_range(values[name], name, bounds, number.nulls)
    return values


def _interval_fields(number: Unpacked, qualifier: Qualifier) -> dict[str, Integers]:
    values = _split(number, qualifier)
    leading = (0, 10**qualifier.leading_digits - 1)
    for name in qualifier.fields:
        bounds = leading if name == qualifier.first else _INTERVAL_RANGE.get(name)
        if bounds and name != "fraction":
            _require_range(values[name], name, bounds, number.nulls)
    return values


def _days(values: dict[str, Integers], nulls: Bits) -> Integers:
    """Return days since 1970-01-01, refusing what the calendar does not know."""
    months = (values["year"] - 1970) * 12 + np.where(nulls, 0, values["month"] - 1)
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    next_first = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    day = np.where(nulls, 1, values["day"])
    refuse(first + day > next_first, "has a DAY that its month does not have")
    return first + day - 1


def decode_date_fields(raw: Bytes, qualifier: Qualifier) -> pa.Array:
    """Decode DATETIME YEAR TO DAY as a date."""
    number = unpack(raw)
    values = _datetime_fields(number, qualifier)
    return fixed_width(pa.date32(), _days(values, number.nulls).astype(np.int32), number.nulls)


def decode_timestamp(raw: Bytes, qualifier: Qualifier) -> pa.Array:
    """Decode DATETIME YEAR TO HOUR ... FRACTION(5) as a timestamp without time zone."""
    number = unpack(raw)
    values = _datetime_fields(number, qualifier)
    microseconds = _days(values, number.nulls) * _UNIT_MICROSECONDS["day"]
    for name in qualifier.fields[3:]:
        microseconds += values[name] * _UNIT_MICROSECONDS[name]
    return fixed_width(pa.timestamp("us"), microseconds, number.nulls)


def decode_field_text(raw: Bytes, qualifier: Qualifier) -> pa.Array:
    """Decode a DATETIME that is no date as the text that Informix prints, `07:05`."""
    number = unpack(raw)
    values = _datetime_fields(number, qualifier)
    columns: list[NDArray[np.uint8]] = []
    for name in qualifier.fields:
        if columns:
            columns.append(np.full((len(raw), 1), ord(_SEPARATOR[name]), np.uint8))
        columns.append(_ascii_digits(values[name], name, qualifier))
    text = np.hstack(columns)
    lengths = np.full(len(raw), text.shape[1], np.int64)
    return binaries(lengths, text.ravel(), number.nulls).cast(pa.string())


def _ascii_digits(values: Integers, name: str, qualifier: Qualifier) -> NDArray[np.uint8]:
    digits = {"year": 4, "fraction": 6}.get(name, 2)
    powers = 10 ** np.arange(digits - 1, -1, -1)
    text = (values[:, None] // powers % 10 + ord("0")).astype(np.uint8)
    return text[:, : qualifier.fraction_digits] if name == "fraction" else text


def decode_months(raw: Bytes, qualifier: Qualifier) -> pa.Array:
    """Decode an INTERVAL of the YEAR TO MONTH family as a number of months."""
    number = unpack(raw)
    values = _interval_fields(number, qualifier)
    zero = np.zeros(len(raw), np.int64)
    months = values.get("year", zero) * 12 + values.get("month", zero)
    refuse(months > 0x7FFFFFFF, "has more months than an INT holds")
    signed = np.where(number.negative, -months, months).astype(np.int32)
    return fixed_width(pa.int32(), signed, number.nulls)


def decode_duration(raw: Bytes, qualifier: Qualifier) -> pa.Array:
    """Decode an INTERVAL of the DAY TO FRACTION family as a duration in microseconds.

    Raises:
        BadValue: the interval is beyond the range of Spark's INTERVAL DAY TO SECOND.
    """
    number = unpack(raw)
    total = np.zeros(len(raw), np.int64)
    for name, value in _interval_fields(number, qualifier).items():
        unit = _UNIT_MICROSECONDS[name]
        most = _MAX_INTERVAL_DAYS * _UNIT_MICROSECONDS["day"] // unit
        refuse(value > most, f"has more than {most} {name.upper()}S, Spark's limit")
        total += value * unit
    return fixed_width(pa.duration("us"), np.where(number.negative, -total, total), number.nulls)
