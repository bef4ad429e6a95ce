"""The fields of DATETIME and INTERVAL, and their positions in a packed decimal.

Rule: the point of the packed decimal is after SECOND, whatever the qualifier (captured rows:
`year to day` has exponent 7, `hour to minute` 07:05 is c3 07 05). So each field has a fixed place:

    pair      6 5      4       3     2      1        0    .  -1 -2 -3
    field     YEAR   MONTH    DAY  HOUR  MINUTE   SECOND  .  FRACTION

An interval's leading field may have up to nine digits and then extends to the left. A qualifier that
begins with FRACTION has no pair before the point; no source shows such a value (docs/assumptions.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from informix_capture_client.records import Bits, Integers
from informix_capture_client.values.arrow_arrays import refuse
from informix_capture_client.values.packed_words import (
    PAIRS,
    TOP_BITS,
    Number,
    PackedWords,
    Packing,
    aligned,
    every_byte,
    packing,
    pair,
)

FIELDS = ("year", "month", "day", "hour", "minute", "second", "fraction")
SEPARATOR = {"month": "-", "day": "-", "hour": " ", "minute": ":", "second": ":", "fraction": "."}
_PLACE = {"year": 5, "month": 4, "day": 3, "hour": 2, "minute": 1, "second": 0}
_TIME_RANGE = {"hour": (0, 23), "minute": (0, 59), "second": (0, 59)}
_DATETIME_RANGE = {"year": (1, 9999), "month": (1, 12), "day": (1, 31), **_TIME_RANGE}
_INTERVAL_RANGE = {"month": (0, 11), **_TIME_RANGE}  # of fields that do not lead
_MOST_FRACTION_DIGITS = 5
_NONE = np.zeros(0, np.int64)
_HIGHEST_BELOW_TOP = every_byte(0x7F)


@dataclass(frozen=True, slots=True)
class Qualifier:
    """From `first` to `last` field; `leading_digits` of the first, `fraction_digits` at the end."""

    first: str
    last: str
    leading_digits: int
    fraction_digits: int

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a value, largest first."""
        return FIELDS[FIELDS.index(self.first) : FIELDS.index(self.last) + 1]

    @property
    def leading_pairs(self) -> int:
        """The number of base-100 digits of the leading field."""
        return 0 if self.first == "fraction" else -(-self.leading_digits // 2)

    @property
    def whole_pairs(self) -> int:
        """The number of base-100 digits before the point, including implied trailing fields."""
        return 0 if self.first == "fraction" else _PLACE[self.first] + self.leading_pairs

    @property
    def fraction_pairs(self) -> int:
        """The number of base-100 digits after the point."""
        return -(-self.fraction_digits // 2)

    @property
    def width_bytes(self) -> int:
        """The bytes of a value in a row: only the fields up to `last` are stored."""
        whole = [name for name in self.fields[1:] if name != "fraction"]
        return self.leading_pairs + len(whole) + self.fraction_pairs + 1

    def pairs_of(self, field: str) -> range:
        """Return the base-100 digits of a field, counted from the left."""
        if field == "fraction":
            return range(self.whole_pairs, self.whole_pairs + self.fraction_pairs)
        last = self.whole_pairs - 1 - _PLACE[field]
        return range(0 if field == self.first else last, last + 1)


def make_qualifier(kind: str, first: str, lead: str | None, last: str, end: str | None) -> Qualifier:
    """Return the qualifier of a declaration such as `interval day(3) to fraction(2)`.

    Raises:
        ValueError: the qualifier is not valid.
    """
    is_interval = kind == "interval"
    backwards = first not in FIELDS or last not in FIELDS or FIELDS.index(first) > FIELDS.index(last)
    if backwards or (is_interval and first in ("year", "month") and last not in ("year", "month")):
        raise ValueError(f"{first} to {last} is not a qualifier")
    leading = int(lead) if lead and is_interval else 4 if first == "year" else 2
    fraction = int(end or (lead if first == "fraction" else None) or 3) if last == "fraction" else 0
    if fraction > _MOST_FRACTION_DIGITS:
        raise ValueError(f"a FRACTION has at most {_MOST_FRACTION_DIGITS} digits")
    if leading == 0 or (last == "fraction" and fraction == 0):
        raise ValueError("a field needs at least one digit")
    return Qualifier(first, last, leading, fraction)


class FieldReader:
    """Splits values of a qualifier into fields, and checks the range of each."""

    def __init__(self, kind: str, qualifier: Qualifier) -> None:
        self.qualifier = qualifier
        self.packing: Packing = packing(qualifier.width_bytes)
        self._is_datetime = kind == "datetime"
        self._places = {name: tuple(qualifier.pairs_of(name)) for name in qualifier.fields}
        self._ranges = {name: self._range(name) for name in qualifier.fields if name != "fraction"}
        pairs = qualifier.whole_pairs + qualifier.fraction_pairs
        self._word_count = -(-max(pairs, qualifier.width_bytes - 1) // PAIRS)
        self._lowest, highest = self._bounds()
        self._instead_of_null = self._some_value()
        self._room = tuple(_HIGHEST_BELOW_TOP - word for word in highest)

    def _range(self, name: str) -> tuple[int, int]:
        if self._is_datetime:
            return _DATETIME_RANGE[name]
        if name == self.qualifier.first:
            return 0, 10**self.qualifier.leading_digits - 1
        return _INTERVAL_RANGE[name]

    def _bounds(self) -> tuple[list[np.uint64], list[np.uint64]]:
        """Return the lowest and the highest digit of every position, as words."""
        lowest, highest = bytearray(self._word_count * PAIRS), bytearray(self._word_count * PAIRS)
        for place in self.qualifier.pairs_of("fraction"):
            highest[place] = 99
        for name, (low, high) in self._ranges.items():
            places = self.qualifier.pairs_of(name)
            lowest[places[-1]] = low if len(places) == 1 else 0
            for place in reversed(places):
                high, highest[place] = divmod(high, 100)
        return _as_words(lowest), _as_words(highest)

    def _some_value(self) -> list[np.uint64]:
        """Return a value that is in all ranges."""
        words = list(self._lowest)
        if self._is_datetime and self.qualifier.first == "year":  # 1, in the second of its two pairs
            words[0] |= np.uint64(1 << 8 * (PAIRS - 2))
        return words

    def read(self, raw: NDArray[Any]) -> tuple[Number, dict[str, Integers]]:
        """Return the numbers and the values of each field; those of a NULL are undefined.

        Raises:
            BadValue: a field is out of range, or has more digits than its type.
        """
        number = self.packing.unpack(raw)
        words = aligned(number, self.qualifier.whole_pairs, self._word_count)
        if np.count_nonzero(number.nulls):
            words = tuple(
                np.where(number.nulls, some, word)
                for word, some in zip(words, self._instead_of_null, strict=True)
            )
        values = {name: self._value(words, name) for name in self._places}
        if self._is_outside(words) or (
            self._is_datetime and np.count_nonzero(values.get("year", _NONE) == 0)
        ):
            self._name_what_is_outside(words, values, number.nulls)
        if self._is_datetime:
            refuse(number.negative, "is a negative DATETIME")
        return number, values

    def _value(self, words: tuple[PackedWords, ...], name: str) -> Integers:
        """Return a field's values, a FRACTION in microseconds."""
        first, *rest = self._places[name]
        value = pair(words, first)
        for place in rest:
            value *= 100
            value += pair(words, place)
        if name == "fraction":
            self._require_digits(value)
            value *= 100 ** (3 - self.qualifier.fraction_pairs)
        return value

    def _require_digits(self, fraction: Integers) -> None:
        if self.qualifier.fraction_digits % 2:  # the last pair holds one digit more, always 0
            surplus = fraction // 10 * 10 != fraction
            refuse(surplus, f"has more than {self.qualifier.fraction_digits} decimals")

    def _is_outside(self, words: tuple[PackedWords, ...]) -> bool:
        """Return whether any digit is outside the range of its position, eight positions at once."""
        for word, low, room in zip(words, self._lowest, self._room, strict=True):
            above = np.bitwise_or.reduce(word + room)
            not_below = np.bitwise_and.reduce((word | TOP_BITS) - low)
            if (above & TOP_BITS) or (not_below & TOP_BITS) != TOP_BITS:
                return True
        return False

    def _name_what_is_outside(
        self, words: tuple[PackedWords, ...], values: Mapping[str, Integers], nulls: Bits
    ) -> None:
        for name, (lowest, highest) in self._ranges.items():
            bad = (values[name] < lowest) | (values[name] > highest)
            refuse(bad & ~nulls, f"has a {name.upper()} outside {lowest} to {highest}")
        shown = {place for places in self._places.values() for place in places}
        below = np.zeros(len(nulls), np.bool_)
        for place in range(self._word_count * PAIRS):
            if place not in shown:
                below |= pair(words, place) != 0
        refuse(below, f"has digits below its {self.qualifier.last.upper()}")


def _as_words(digits: bytearray) -> list[np.uint64]:
    return [np.uint64(word) for word in np.frombuffer(bytes(digits), ">u8")]
