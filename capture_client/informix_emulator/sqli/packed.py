"""Packed decimals as clients send them: a number, or the fields of a DATETIME or an INTERVAL.

The layout is that of `column_types/decimals.py`. A qualifier is the encoded length of a description:
digits << 8 | first field << 4 | last field, where a year is 0, a second 10 and fractions are 11 to 15.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal

_SECOND = 10
_SEPARATORS = {0: "-", 2: "-", 4: " ", 6: ":", 8: ":"}  # after year, month, ..
_MAX_BYTES = 18  # DECIMAL(32) and a half digit on either side


def unpack(data: bytes) -> Decimal | None:
    """Return the number of exponent and base-100 digits; ValueError if they are none."""
    if not any(data):  # of -1E+124, as IBM's JDBC driver binds it, the first byte alone is 0
        return None
    negative = not data[0] & 0x80
    exponent = ((data[0] ^ 0xFF if negative else data[0]) & 0x7F) - 64
    if len(data) > _MAX_BYTES or any(digit > 99 for digit in data[1:]):
        raise ValueError(f"{data.hex()} is no packed decimal")
    number = 0
    for digit in data[1:]:
        number = number * 100 + digit
    if negative:
        number = 100 ** (len(data) - 1) - number
    value = Decimal(number).scaleb(2 * (exponent - len(data) + 1))
    return -value if negative else value


@dataclass(frozen=True, slots=True)
class QualifierFields:
    """The fields that a qualifier names."""

    digits: int
    first: int
    last: int

    @classmethod
    def of(cls, qualifier: int) -> QualifierFields:
        """Take a qualifier apart; ValueError if it is none."""
        fields = cls(qualifier >> 8, qualifier >> 4 & 0xF, qualifier & 0xF)
        if fields.first % 2 or fields.first > _SECOND + 2 or fields.last < fields.first:
            raise ValueError(f"{qualifier:#x} is not a qualifier")
        return fields

    @property
    def fraction_digits(self) -> int:
        """How many digits follow the seconds."""
        return max(self.last - _SECOND, 0)


def datetime_of(data: bytes, qualifier: int) -> datetime.datetime | str | None:
    """Return a packed DATETIME: a datetime if it begins with a year, else its text."""
    number, fields = unpack(data), QualifierFields.of(qualifier)
    if number is None:
        return None
    pairs = _pairs(number)
    if fields.first == 0:
        year = pairs[0] * 100 + pairs[1]
        month, day, hour, minute, second = pairs[2:7]
        microsecond = int(number % 1 * 1_000_000)
        return datetime.datetime(year, month or 1, day or 1, hour, minute, second, microsecond)
    return _text(fields, [f"{pair:02}" for pair in pairs[1 + fields.first // 2 : 7]], number)


def in_fields(value: datetime.datetime, qualifier: int) -> datetime.datetime | str:
    """Return a datetime in the fields of a parameter, without what comes after them."""
    fields = QualifierFields.of(qualifier)
    if fields.first == 0 and fields.last >= _SECOND:
        kept = 10 ** (6 - fields.fraction_digits)
        return value.replace(microsecond=value.microsecond // kept * kept)
    numbers = [f"{value.year:04}", *value.strftime("%m %d %H %M %S").split()]
    seconds = Decimal(value.microsecond).scaleb(-6)
    return _text(fields, numbers[fields.first // 2 :], seconds)


def _pairs(number: Decimal) -> list[int]:
    """Return century, year, month, day, hour, minute and second."""
    digits = f"{int(number):014}"
    if len(digits) > 14:
        raise ValueError("a DATETIME of more than 14 digits before the fraction")
    return [int(digits[place : place + 2]) for place in range(0, 14, 2)]


def interval_of(data: bytes, qualifier: int) -> str | None:
    """Return a packed INTERVAL as text such as `-3-07` or `12 03:04:05.5`."""
    number, fields = unpack(data), QualifierFields.of(qualifier)
    if number is None:
        return None
    rest, pairs = int(abs(number)), list[str]()
    for _ in range((_SECOND - min(fields.first, _SECOND)) // 2):
        rest, pair = divmod(rest, 100)
        pairs.insert(0, f"{pair:02}")
    sign = "-" if number < 0 else ""
    return sign + _text(fields, [str(rest), *pairs], abs(number))


def _text(fields: QualifierFields, numbers: list[str], number: Decimal) -> str:
    """Join fields from the first to the last of a qualifier, then the fraction."""
    places = range(fields.first, min(fields.last, _SECOND) + 1, 2)
    text = ""
    for place, value in zip(places, numbers, strict=False):
        text += value + (_SEPARATORS[place] if place + 2 <= min(fields.last, _SECOND) else "")
    if not fields.fraction_digits:
        return text
    fraction = int(number % 1 * 10**fields.fraction_digits)
    return f"{text}.{fraction:0{fields.fraction_digits}}"
