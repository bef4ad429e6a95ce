"""Convert packed decimals (DECIMAL, MONEY, DATETIME and INTERVAL) to text.

Rule: each value has one text, in SQL syntax; nothing is rounded.

    NULL  all bytes zero; not by its first: -1E+124 begins with 0, too
    u8  0x80 | 64 + exponent of 100, all of it flipped where negative
    u8  base-100 digits, a negative number's as 100 to their power less the number

Sources: the layout of rows in the CDC guide and of tuples that IBM's JDBC driver reads are the same;
the seconds of a DATETIME are the unit, also where it ends before them (seen with that driver, which
binds -1E+124 as 00 63).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

_POSITIVE, _EXPONENT = 0x80, 0x7F
_BIAS = 64
_MOST_FRACTION_PAIRS = 3
FLOATING = 255  # the scale of a DECIMAL(p) without one


@dataclass(frozen=True, slots=True)
class Packed:
    """`digits` with a point `places` pairs before their end."""

    is_negative: bool
    digits: int
    places: int

    def scaled(self, pairs: int) -> int:
        """Return the number with so many pairs behind the point moved before it; ValueError if more."""
        shift = pairs - self.places
        if shift >= 0:
            return self.digits * int(100**shift)
        whole, rest = divmod(self.digits, int(100**-shift))
        if rest:
            raise ValueError(f"more than {2 * pairs} digits behind the point")
        return whole


def unpack(raw: bytes) -> Packed | None:
    """Decode a packed decimal; None is NULL. ValueError if it is not valid."""
    if not any(raw):
        return None
    digits = 0
    for pair in raw[1:]:
        if pair > 99:
            raise ValueError(f"{pair} as a digit to base 100")
        digits = digits * 100 + pair
    is_negative = not raw[0] & _POSITIVE
    if is_negative:
        digits = 100 ** (len(raw) - 1) - digits
    exponent = (raw[0] ^ (_EXPONENT if is_negative else 0)) & _EXPONENT
    return Packed(is_negative, digits, len(raw) - 1 - (exponent - _BIAS))


def packed_size(precision: int, scale: int) -> int:
    """Return the bytes of a DECIMAL(precision, scale)."""
    return (precision + (scale & 1) + 3) // 2


def decimal_text(raw: bytes, scale: int) -> str | None:
    """Return a DECIMAL as text with the digits of its scale; a floating one with its own digits."""
    number = unpack(raw)
    if number is None:
        return None
    sign = int(number.is_negative and number.digits != 0)
    exact = Decimal((sign, tuple(map(int, str(number.digits))), -2 * number.places))
    if scale == FLOATING:
        text = f"{exact:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    text = f"{exact:.{scale}f}"
    if Decimal(text) != exact:
        raise ValueError(f"more than {scale} digits behind the point")
    return text


_SECOND = 5  # years, months, days, hours, minutes, seconds
_FRACTION_CODE = 10  # what is above counts digits of a fraction
_FIRST_FIELDS = range(0, 13, 2)  # years to a fraction
_MARKS_BEFORE = ("", "-", "-", " ", ":", ":")


@dataclass(frozen=True, slots=True)
class SqliQualifier:
    """The fields of a DATETIME or INTERVAL."""

    first: int
    last: int
    leading_digits: int
    fraction_digits: int

    @property
    def size(self) -> int:
        """The bytes of a value: each field in pairs of digits, and the exponent."""
        whole = 0
        if self.first <= _SECOND:
            whole = (self.leading_digits + 1) // 2 + min(self.last, _SECOND) - self.first
        return whole + (self.fraction_digits + 1) // 2 + 1


def qualifier(length: int) -> SqliQualifier:
    """Decode a length: number of digits, first field, last field. ValueError if it is not valid."""
    digits, first, last = length >> 8, length >> 4 & 15, length & 15
    fraction = max(last - _FRACTION_CODE, 0)
    last_whole = min(last, _FRACTION_CODE) // 2
    leading = digits - fraction - 2 * (last_whole - first // 2)
    if (
        first not in _FIRST_FIELDS
        or first > last
        or fraction > 5
        or (first <= _FRACTION_CODE and not 1 <= leading <= 9)
    ):
        raise ValueError(f"0x{length:04x} as a qualifier")
    return SqliQualifier(first // 2, last_whole + (1 if fraction else 0), leading, fraction)


def fields_text(raw: bytes, fields: SqliQualifier, *, is_interval: bool) -> str | None:
    """Return a DATETIME or INTERVAL in Informix's format, without leading blanks."""
    number = unpack(raw)
    if number is None:
        return None
    if number.is_negative and not is_interval:
        raise ValueError("a negative DATETIME")
    whole, fraction = divmod(number.scaled(_MOST_FRACTION_PAIRS), 100**_MOST_FRACTION_PAIRS)
    text = _whole_text(whole, fields, is_interval=is_interval)
    if fields.fraction_digits:
        text += "." + f"{fraction:06}"[: fields.fraction_digits]
    return "-" * (number.is_negative and number.digits != 0) + text


def _whole_text(whole: int, fields: SqliQualifier, *, is_interval: bool) -> str:
    last = min(fields.last, _SECOND)
    whole //= 100 ** (_SECOND - last)
    parts: list[str] = []
    for field in range(last, fields.first, -1):
        whole, value = divmod(whole, 100)
        parts.append(f"{_MARKS_BEFORE[field]}{value:02}")
    if fields.first <= _SECOND:
        width = 1 if is_interval else fields.leading_digits
        parts.append(f"{whole:0{width}}")
    return "".join(reversed(parts))
