"""Families of types, and the types of results when two types are combined.

A type is identified by its number in the catalogue; what SQL does with it depends only on its family.
Sources: Guide to SQL: Reference, "Data Types" and "Numeric arithmetic"; the type of a count is our
choice where a comment says so.
"""

from __future__ import annotations

from enum import IntEnum, auto
from functools import lru_cache

from ...column_types.column_list import TypeText, parse_column_list
from ...column_types.datetimes import EmulatedQualifier
from ...column_types.encoding import EmulatedType, column_type
from ...sql_errors import sql_error

MOST_DIGITS = 32
FLOATING = 255  # the scale of a DECIMAL without one


class Family(IntEnum):
    """How a value is kept and compared; its hash is asked for with each value."""

    INTEGER = auto()
    FLOAT = auto()
    DECIMAL = auto()
    TEXT = auto()
    DATE = auto()
    DATETIME = auto()
    INTERVAL = auto()
    BOOLEAN = auto()
    OBJECT = auto()


NUMBERS = (Family.INTEGER, Family.DECIMAL, Family.FLOAT)
_FAMILIES = {
    **dict.fromkeys((1, 2, 6, 17, 18, 52, 53), Family.INTEGER),
    **dict.fromkeys((3, 4), Family.FLOAT),
    **dict.fromkeys((5, 8), Family.DECIMAL),
    **dict.fromkeys((0, 13, 15, 16, 40), Family.TEXT),
    7: Family.DATE,
    10: Family.DATETIME,
    14: Family.INTERVAL,
}
_BOOLEAN_ID = 5
SERIALS = (6, 18, 53)
CHARS = (0, 15)
_BITS = {1: 15, 2: 31, 6: 31}
INTEGER_ERRORS = {1: -1214, 2: -1215, 6: -1215}  # the others: -1284


def family_of(kind: EmulatedType) -> Family:
    """Return the family of a type."""
    if kind.coltype == 41 and kind.extended_id == _BOOLEAN_ID:
        return Family.BOOLEAN
    return _FAMILIES.get(kind.coltype, Family.OBJECT)


def largest(kind: EmulatedType) -> int:
    """Return the largest number that an integer type holds."""
    return int((1 << _BITS.get(kind.coltype, 63)) - 1)


@lru_cache(maxsize=4096)
def named_type(spelling: str, codec: str = "utf-8") -> EmulatedType:
    """Return the type of a spelling such as `decimal(10,2)`."""
    return build_type(parse_column_list(f"x {spelling}")[0].type, codec)


def build_type(text: TypeText, codec: str) -> EmulatedType:
    """Return a type as written; a syntax error if there is none of that name."""
    try:
        return column_type(text, codec)
    except ValueError:
        raise sql_error(-201) from None


INTEGER = named_type("integer")
BIGINT = named_type("bigint")
FLOAT = named_type("float")
DATE = named_type("date")
BOOLEAN = named_type("boolean")
EXACT = named_type(f"decimal({MOST_DIGITS})")
COUNT = named_type("decimal(15,0)")  # what COUNT returns; our choice
MOMENT = named_type("datetime year to fraction(5)")
DAY = named_type("datetime year to day")
SERIAL_TO_PLAIN = {6: INTEGER, 18: BIGINT, 53: BIGINT}


def text_type(length: int, codec: str = "utf-8", name: str = "varchar") -> EmulatedType:
    """Return the type of a text of at most so many bytes in a code set."""
    if length > 255 and name == "varchar":
        return named_type(f"lvarchar({min(length, 32739)})", codec)
    return named_type(f"{name}({max(1, length)})", codec)


def decimal_type(precision: int, scale: int) -> EmulatedType:
    """Return a DECIMAL; one without scale where it would have too many digits."""
    if scale >= FLOATING or precision > MOST_DIGITS or scale > precision:
        return EXACT
    return named_type(f"decimal({precision},{scale})")


def digits_of(kind: EmulatedType) -> tuple[int, int]:
    """Return precision and scale of a number's type; integers have none behind the point."""
    if family_of(kind) is Family.DECIMAL:
        return kind.collength >> 8, kind.collength & 0xFF
    return (5, 0) if kind.coltype == 1 else (10, 0) if kind.coltype in (2, 6) else (19, 0)


def qualifier_of(kind: EmulatedType) -> EmulatedQualifier:
    """Return the fields of a DATETIME or INTERVAL, read from syscolumns.collength."""
    digits, first, end = kind.collength >> 8, (kind.collength >> 4 & 0xF) // 2, kind.collength & 0xF
    fraction = max(0, end - 10)
    last = 6 if fraction else end // 2
    lead = digits - fraction - 2 * (min(last, 5) - first) if first < 6 else 0
    return EmulatedQualifier(first, last, lead, fraction)


def result_of_arithmetic(sign: str, left: EmulatedType, right: EmulatedType) -> EmulatedType:
    """Return the type of a sum, difference, product or quotient of two numbers."""
    families = {family_of(left), family_of(right)}
    if Family.FLOAT in families:
        return FLOAT
    if families == {Family.INTEGER} and sign != "/":
        is_small = {left.coltype, right.coltype} <= {1, 2, 6}
        return INTEGER if is_small else BIGINT
    (p1, s1), (p2, s2) = digits_of(left), digits_of(right)
    if sign == "/" or FLOATING in (s1, s2):
        return EXACT
    if sign == "*":
        return decimal_type(p1 + p2, s1 + s2)
    scale = max(s1, s2)
    return decimal_type(max(p1 - s1, p2 - s2) + scale + 1, scale)


def common_type(left: EmulatedType, right: EmulatedType) -> EmulatedType:
    """Return the type in which two values are compared or joined in a column."""
    one, two = family_of(left), family_of(right)
    if one is two:
        return _WIDER.get(one, lambda first, _second: first)(left, right)
    if one in NUMBERS and two in NUMBERS:
        return EXACT if Family.DECIMAL in (one, two) else FLOAT
    if Family.TEXT in (one, two):
        other = right if one is Family.TEXT else left
        return EXACT if family_of(other) in NUMBERS else other
    if {one, two} == {Family.DATE, Family.DATETIME}:
        return _wider_datetime(DAY, right if one is Family.DATE else left)
    raise sql_error(-1260)


def _wider_integer(left: EmulatedType, right: EmulatedType) -> EmulatedType:
    kinds = [SERIAL_TO_PLAIN.get(kind.coltype, kind) for kind in (left, right)]
    return max(kinds, key=largest)


def _wider_decimal(left: EmulatedType, right: EmulatedType) -> EmulatedType:
    if left.spelling == right.spelling:
        return left
    (p1, s1), (p2, s2) = digits_of(left), digits_of(right)
    if FLOATING in (s1, s2):
        return EXACT
    scale = max(s1, s2)
    return decimal_type(max(p1 - s1, p2 - s2) + scale, scale)


def _wider_text(left: EmulatedType, right: EmulatedType) -> EmulatedType:
    if left.spelling == right.spelling:
        return left
    return text_type(max(width(left), width(right)))


def width(kind: EmulatedType) -> int:
    """Return the most bytes of a text type."""
    return kind.collength & 0xFF if kind.coltype in (13, 16) else kind.collength


def _wider_datetime(left: EmulatedType, right: EmulatedType) -> EmulatedType:
    one, two = qualifier_of(left), qualifier_of(right)
    if (one.first, one.last, one.fraction_digits) == (two.first, two.last, two.fraction_digits):
        return left
    if one.first != two.first:
        raise sql_error(-1266)
    return max((left, right), key=lambda kind: (qualifier_of(kind).last, kind.collength))


def _same_interval(left: EmulatedType, right: EmulatedType) -> EmulatedType:
    if left.spelling != right.spelling:
        raise sql_error(-1266)
    return left


_WIDER = {
    Family.INTEGER: _wider_integer,
    Family.DECIMAL: _wider_decimal,
    Family.TEXT: _wider_text,
    Family.DATETIME: _wider_datetime,
    Family.INTERVAL: _same_interval,
}
