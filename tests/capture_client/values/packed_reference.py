"""Packed decimals, DATETIME and INTERVAL decoded digit by digit, straight from their description.

The slow witness for the decoder, which reads eight digits at once: exact values, or None where the
bytes mean nothing that the column could hold.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Context, Decimal

EXACT = Context(prec=400, Emin=-999, Emax=999)
FIELDS = ("year", "month", "day", "hour", "minute", "second", "fraction")
LIMITS = {
    "year": (1, 9999),
    "month": (1, 12),
    "day": (1, 31),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
MARKS = {"month": "-", "day": "-", "hour": " ", "minute": ":", "second": ":", "fraction": "."}


class Refused(Exception):
    """The bytes are no value of the column."""


def number(packed: bytes) -> Decimal | None:
    """Return the number, or None for NULL."""
    head, digits = packed[0], packed[1:]
    if not any(packed):
        return None
    negative = head < 0x80
    if max(digits) > 99 or (negative and not any(digits)):
        raise Refused
    joined = int("".join(f"{digit:02d}" for digit in digits))
    joined = 100 ** len(digits) - joined if negative else joined
    exponent = ((head ^ 0xFF if negative else head) & 0x7F) - 64
    return Decimal(-joined if negative else joined).scaleb(2 * (exponent - len(digits)), EXACT)


def exact_decimal(packed: bytes, precision: int, scale: int) -> Decimal | None:
    """Return the number if DECIMAL(precision, scale) can hold it."""
    value = number(packed)
    if value is None:
        return None
    scaled = value.scaleb(scale, EXACT)
    if scaled != scaled.to_integral_value() or scaled.copy_abs() >= 10**precision:
        raise Refused
    return value.quantize(Decimal(1).scaleb(-scale), context=EXACT)


def plain(value: Decimal) -> str:
    """Return a number without exponent and needless zeros."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "0", "") else text


@dataclass(frozen=True)
class Fields:
    """A qualifier, and how its values are cut out of a number."""

    kind: str
    first: str
    last: str
    lead: int
    fraction: int

    @property
    def declaration(self) -> str:
        """The type as it is written."""
        is_leading = self.kind == "interval" and self.first != "fraction"
        lead = f"({self.lead})" if is_leading else ""
        end = f"({self.fraction})" if self.last == "fraction" else ""
        return f"{self.kind} {self.first}{lead} to {self.last}{end}"

    @property
    def names(self) -> tuple[str, ...]:
        """The fields, the largest first."""
        return FIELDS[FIELDS.index(self.first) : FIELDS.index(self.last) + 1]

    def values(self, packed: bytes) -> tuple[str, dict[str, int]] | None:
        """Return sign and fields of a value, the fraction in units of its last digit."""
        value = number(packed)
        if value is None:
            return None
        whole, _, fraction = f"{value.copy_abs():f}".partition(".")
        if fraction[self.fraction :].strip("0") or (value < 0 and self.kind == "datetime"):
            raise Refused
        width = 0 if self.first == "fraction" else self.lead + 2 * (5 - FIELDS.index(self.first))
        if len(whole.lstrip("0")) > width:
            raise Refused
        digits = whole.lstrip("0").zfill(width)
        found = self._cut(digits)
        if "fraction" in self.names:
            found["fraction"] = int(fraction[: self.fraction].ljust(self.fraction, "0") or 0)
        return "-" if value < 0 else "", found

    def _cut(self, digits: str) -> dict[str, int]:
        found, at = {}, 0
        for name in FIELDS[FIELDS.index(self.first) : 6]:
            size = self.lead if name == self.first else 2
            value, at = int(digits[at : at + size]), at + size
            if name not in self.names:
                if value:
                    raise Refused
                continue
            lowest, highest = self._limits(name)
            if not lowest <= value <= highest:
                raise Refused
            found[name] = value
        return found

    def _limits(self, name: str) -> tuple[int, int]:
        if self.kind == "datetime":
            return LIMITS[name]
        if name == self.first:
            return 0, 10**self.lead - 1
        return 0, 11 if name == "month" else LIMITS[name][1]

    def text(self, packed: bytes) -> str | None:
        """Return a value as Informix prints it."""
        found = self.values(packed)
        if found is None:
            return None
        sign, values = found
        text = sign
        for name, value in values.items():
            width = self.fraction if name == "fraction" else 2
            if name == self.first and name != "fraction":
                width = self.lead if self.kind == "datetime" else 1
            is_marked = name != self.first or name == "fraction"
            text += (MARKS[name] if is_marked else "") + f"{value:0{width}d}"
        return text

    def timestamp(self, packed: bytes) -> datetime.datetime | None:
        """Return a DATETIME YEAR TO DAY or finer as a moment."""
        found = self.values(packed)
        if found is None:
            return None
        micros = found[1].pop("fraction", 0) * 10 ** (6 - self.fraction)
        try:
            return datetime.datetime(**found[1], microsecond=micros)
        except ValueError:
            raise Refused from None

    def months(self, packed: bytes) -> int | None:
        """Return an INTERVAL of the YEAR TO MONTH family."""
        found = self.values(packed)
        if found is None:
            return None
        total = found[1].get("year", 0) * 12 + found[1].get("month", 0)
        if total >= 2**31:
            raise Refused
        return -total if found[0] else total

    def microseconds(self, packed: bytes) -> int | None:
        """Return an INTERVAL of the DAY TO FRACTION family."""
        found = self.values(packed)
        if found is None:
            return None
        units = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
        total = sum(value * units[name] for name, value in found[1].items() if name != "fraction")
        total = total * 10**6 + found[1].get("fraction", 0) * 10 ** (6 - self.fraction)
        if total >= 2**63:
            raise Refused
        return -total if found[0] else total


def qualifiers(kind: str, first: str, last: str, lead: int) -> list[Fields]:
    """Return the qualifiers from one field to another: five of them if the last is FRACTION."""
    fractions = range(1, 6) if last == "fraction" else [0]
    return [Fields(kind, first, last, lead, fraction) for fraction in fractions]


def every_datetime() -> list[Fields]:
    """Return DATETIME with every first and last field."""
    return [
        fields
        for begin, first in enumerate(FIELDS)
        for last in FIELDS[begin:]
        for fields in qualifiers("datetime", first, last, 4 if first == "year" else 2)
    ]


def every_interval() -> list[Fields]:
    """Return INTERVAL of both families with every first and last field and every leading precision."""
    families = (FIELDS[:2], FIELDS[2:])
    return [
        fields
        for family in families
        for begin, first in enumerate(family)
        for last in family[begin:]
        for lead in ([0] if first == "fraction" else range(1, 10))
        for fields in qualifiers("interval", first, last, lead)
    ]
