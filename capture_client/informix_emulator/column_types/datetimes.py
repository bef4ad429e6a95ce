"""DATETIME and INTERVAL: a qualifier, and values as packed decimals.

    fields      year month day hour minute second fraction
    numbers     0    1     2   3    4      5      6

The seconds are the units pair of the packed decimal, also where a qualifier ends before them, so
the exponent counts the fields that are left out: YEAR TO DAY 2024-03-15 is c7 14 18 03 0f.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from .column_list import TypeText
from .decimals import Encode, pack

_FIELDS = ("year", "month", "day", "hour", "minute", "second", "fraction")
_SECOND, _FRACTION = 5, 6
_SEPARATORS = ("-", "-", " ", ":", ":", ".")  # after year, month, ..
_RANGES = ((1, 9999), (1, 12), (1, 31), (0, 23), (0, 59), (0, 59))
_INTERVAL_LIMITS = (10**9, 11, 10**9, 23, 59, 59)  # of fields that do not lead
_PLACES = (0, 4, 6, 8, 10, 12, 14)  # where each field begins in yyyymmddhhmiss


@dataclass(frozen=True, slots=True)
class EmulatedQualifier:
    """The fields a DATETIME or INTERVAL column holds."""

    first: int
    last: int
    lead_digits: int
    fraction_digits: int

    @property
    def last_whole(self) -> int:
        """The last field that is not the fraction."""
        return min(self.last, _SECOND)

    @property
    def whole_digits(self) -> int:
        """How many decimal digits are before the fraction."""
        return self.lead_digits + 2 * (self.last_whole - self.first) if self.first < 6 else 0

    @property
    def packed_bytes(self) -> int:
        """The size of a value in a row."""
        return (self.whole_digits + 1) // 2 + (self.fraction_digits + 1) // 2 + 1

    @property
    def pairs_before_point(self) -> int:
        """How many base-100 digits are before the point, left-out fields included."""
        return (self.lead_digits + 1) // 2 + _SECOND - self.first if self.first < 6 else 0

    @property
    def collength(self) -> int:
        """The value of syscolumns.collength: digits, first field, last field."""
        last = 10 + self.fraction_digits if self.last == _FRACTION else 2 * self.last
        return (self.whole_digits + self.fraction_digits) << 8 | (2 * self.first) << 4 | last


def qualifier(text: TypeText) -> EmulatedQualifier:
    """Build the qualifier of a type as written; ValueError if it is none."""
    first, last = _field(text.first_field), _field(text.last_field)
    fraction = (text.fraction_digits or 3) if last == _FRACTION else 0
    lead = _lead_digits(text, first)
    years_and_days = text.name == "interval" and first < 2 <= last
    if first > last or years_and_days or fraction > 5 or not 0 <= lead <= 9:
        raise ValueError(f"{text.first_field} to {text.last_field} is not a qualifier")
    return EmulatedQualifier(first, last, lead, fraction)


def spelling(kind: str, fields: EmulatedQualifier) -> str:
    """Return the type as a TABSCHEMA record prints it."""
    lead = "" if fields.lead_digits == _usual_digits(fields.first) else f"({fields.lead_digits})"
    end = f"({fields.fraction_digits})" if fields.last == _FRACTION else ""
    return f"{kind} {_FIELDS[fields.first]}{lead} to {_FIELDS[fields.last]}{end}"


def datetime_encoder(fields: EmulatedQualifier) -> Encode:
    """Return the encoder of a DATETIME column: datetime, date or text in, bytes out."""
    parse = re.compile(_pattern(fields, [4, 2, 2, 2, 2, 2][fields.first : fields.last_whole + 1]))

    def encode(value: object) -> bytes:
        if isinstance(value, datetime.date):
            whole, fraction = _cut(value, fields)
        else:
            groups = _groups(parse, value)
            _check_ranges(groups[:-1], fields.first)
            whole, fraction = "".join(groups[:-1]), groups[-1]
        return _pack(fields, whole, fraction, negative=False)

    return encode


def interval_encoder(fields: EmulatedQualifier) -> Encode:
    """Return the encoder of an INTERVAL column: text such as `-3-07` or `12 03:04:05` in."""
    parse = re.compile("(-?)" + _pattern(fields, [0] + [2] * (fields.last_whole - fields.first)))
    lead_width = fields.lead_digits + (fields.lead_digits & 1)

    def encode(value: object) -> bytes:
        sign, *numbers, fraction = _groups(parse, value)
        limits = _INTERVAL_LIMITS[fields.first + 1 :]
        if any(int(number) > limit for number, limit in zip(numbers[1:], limits, strict=False)):
            raise ValueError(f"{value} has a field out of range")
        whole = "".join([number.zfill(lead_width) for number in numbers[:1]] + numbers[1:])
        return _pack(fields, whole, fraction, negative=sign == "-")

    return encode


def _pack(fields: EmulatedQualifier, whole: str, fraction: str, negative: bool) -> bytes:
    fraction = fraction.rstrip("0")
    if len(fraction) > fields.fraction_digits:
        raise ValueError(f"the fraction .{fraction} has more digits than the column holds")
    fraction += "0" * (len(fraction) & 1)
    return pack(whole + fraction, fields.pairs_before_point, negative, fields.packed_bytes)


def _cut(value: datetime.date, fields: EmulatedQualifier) -> tuple[str, str]:
    """Take a column's fields out of a date or a datetime; later ones must be zero."""
    digits, fraction = f"{value.year:04}{value.month:02}{value.day:02}", ""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            raise ValueError(f"{value} has a time zone, a DATETIME has none")
        digits += f"{value.hour:02}{value.minute:02}{value.second:02}"
        fraction = f"{value.microsecond:06}"
    digits = digits.ljust(14, "0")
    end = _PLACES[fields.last_whole + 1]
    if digits[end:].strip("0"):
        raise ValueError(f"{value} holds more than {_FIELDS[fields.last]}s")
    return digits[_PLACES[fields.first] : end] if fields.first < _FRACTION else "", fraction


def _groups(parse: re.Pattern[str], value: object) -> list[str]:
    match = parse.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not in the form of the column")
    return [group or "" for group in match.groups()]


def _check_ranges(numbers: list[str], first: int) -> None:
    values = [int(number) for number in numbers]
    for value, (low, high) in zip(values, _RANGES[first:], strict=False):
        if not low <= value <= high:
            raise ValueError(f"{value} is out of range {low}..{high}")
    if first == 0 and len(values) > 2:
        datetime.date(*values[:3])


def _pattern(fields: EmulatedQualifier, widths: list[int]) -> str:
    """Return a regular expression with a group per field and one for the fraction."""
    parts = [rf"(\d{{{width}}})" if width else rf"(\d{{1,{fields.lead_digits}}})" for width in widths]
    if fields.first == _FRACTION:
        return r"0?\.?(\d*)"
    separators = _SEPARATORS[fields.first : fields.last_whole]
    whole = "".join(part + mark for part, mark in zip(parts, [*separators, ""], strict=True))
    return whole + (r"(?:\.(\d*))?" if fields.last == _FRACTION else "()")


def _field(name: str) -> int:
    if name not in _FIELDS:
        raise ValueError(f"{name!r} is not a field of a qualifier")
    return _FIELDS.index(name)


def _lead_digits(text: TypeText, first: int) -> int:
    usual = _usual_digits(first)
    return usual if text.lead_digits is None or text.name == "datetime" else text.lead_digits


def _usual_digits(first: int) -> int:
    return {0: 4, _FRACTION: 0}.get(first, 2)
