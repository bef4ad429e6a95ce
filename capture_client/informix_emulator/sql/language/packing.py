"""Encode columns of stored values, many values at a time.

The result equals `EmulatedType.encode(load(...))`, byte by byte, by a faster way for the types that
have one. A column is encoded at once: what depends on its type is computed once, and the texts of all
its values become bytes in one step.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache

from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from .families import CHARS, FLOATING, Family, digits_of, family_of, qualifier_of
from .values import COMPLEMENT, Stored, load

PackColumn = Callable[[Sequence[Stored]], Sequence[bytes | None]]
PackAll = Callable[[Sequence[Stored]], list[bytes]]  # of values without NULL

# two decimal digits read as a hexadecimal byte -> the base-100 digit they mean
_BASE_100 = bytes((byte >> 4) * 10 + (byte & 0xF) for byte in range(256))
_LENGTHS = [bytes((size,)) for size in range(256)]
_FORMS = {1: ">h", 2: ">i", 6: ">i", 52: ">q", 53: ">q", 3: ">d", 4: ">f", 7: ">i"}
_FIRST_DAY, _LAST_DAY = -693594, 2958464  # of what a DATE shows: years 1 to 9999
_BIAS = 500  # of the exponent in `decimal_key`
_FIRST_YEAR = "0100"  # of a DATETIME whose first pair of digits is not zero


def packer(kind: EmulatedType) -> PackColumn:
    """Return what packs a column of a type; SqlError for a value that the type does not show."""
    pack = _PACKERS.get(family_of(kind), _the_long_way)(kind)

    def pack_column(values: Sequence[Stored]) -> Sequence[bytes | None]:
        if None not in values:
            return pack(values)
        known = iter(pack([value for value in values if value is not None]))
        return [None if value is None else next(known) for value in values]

    return pack_column


def _the_long_way(kind: EmulatedType) -> PackAll:
    @lru_cache(maxsize=1024)
    def pack(value: Stored) -> bytes:
        try:
            return kind.encode(load(kind, value))
        except (ValueError, TypeError, struct.error):
            raise sql_error(-1213) from None

    return lambda values: list(map(pack, values))


def _number(kind: EmulatedType) -> PackAll:
    form = _FORMS.get(kind.coltype)
    if form is None:
        return _the_long_way(kind)
    pack = struct.Struct(form).pack
    return lambda values: list(map(pack, values))


def _date(kind: EmulatedType) -> PackAll:
    pack_days = struct.Struct(_FORMS[kind.coltype]).pack

    def pack(values: Sequence[Stored]) -> list[bytes]:
        days = [int(value or 0) for value in values]
        if days and not _FIRST_DAY <= min(days) <= max(days) <= _LAST_DAY:
            raise sql_error(-1210)
        return list(map(pack_days, days))

    return pack


def _text(kind: EmulatedType) -> PackAll:
    """Pack texts; those of ASCII are the same bytes in every code set that a server has."""
    slow, size = _the_long_way(kind), kind.size or 0
    if kind.coltype == 40:
        return slow

    def pack(values: Sequence[Stored]) -> list[bytes]:
        texts = "\0".join(map(str, values))
        pieces = texts.encode().split(b"\0") if texts.isascii() else []
        if len(pieces) != len(values):
            return slow(values)
        if kind.coltype in CHARS:
            return [piece.ljust(size) for piece in pieces]
        return [_LENGTHS[len(piece)] + piece for piece in pieces]

    return pack


def _boolean(kind: EmulatedType) -> PackAll:
    bits: dict[Stored, bytes] = {0: kind.encode(False), 1: kind.encode(True)}
    return lambda values: [bits[value] for value in values]


class _Heads(dict[str, tuple[bytes, str]]):
    """What the first four signs of a key mean: the first byte, and a digit that goes in front."""

    def __missing__(self, begin: str) -> tuple[bytes, str]:
        is_negative = begin[0] == "4"
        size = begin[1:].translate(COMPLEMENT) if is_negative else begin[1:]
        before_point = int(size) - _BIAS if begin != "5" else 0
        odd = before_point & 1
        head = 0x80 if begin == "5" else 0xC0 + (before_point + odd >> 1)
        self[begin] = found = bytes((head ^ 0xFF if is_negative else head,)), "0" * odd
        return found


def _decimal(kind: EmulatedType) -> PackAll:
    """Pack from `decimal_key`, whose digits are there as they are needed, or as complements to 9."""
    slow, most, heads = _the_long_way(kind), 2 * ((kind.size or 0) - 1), _Heads()
    whole = 10**most
    if digits_of(kind)[1] == FLOATING:
        return slow

    def pack(values: Sequence[Stored]) -> list[bytes]:
        keys = [str(value) for value in values]
        found = [heads[key[:4]] for key in keys]
        digits = [
            (pad + key[4:]).ljust(most, "0") if key >= "5" else below_zero(pad, key)
            for (_, pad), key in zip(found, keys, strict=True)
        ]
        pieces = _cut(digits, most)
        return [head + piece for (head, _), piece in zip(found, pieces, strict=True)]

    def below_zero(pad: str, key: str) -> str:
        digits = (pad + key[4:-1].translate(COMPLEMENT)).ljust(most, "0")
        return str(whole - int(digits)).zfill(most)

    return pack


def _datetime(kind: EmulatedType) -> PackAll:
    """Pack from texts of all digits, of a type that begins with the year."""
    slow, size, fields = _the_long_way(kind), kind.size or 0, qualifier_of(kind)
    if fields.first != 0:
        return slow
    head, most = bytes((0xC0 + fields.pairs_before_point,)), 2 * (size - 1)
    fill = "0" * (fields.fraction_digits & 1)

    def pack(values: Sequence[Stored]) -> list[bytes]:
        texts = [str(value) for value in values]
        if not texts or min(texts) < _FIRST_YEAR:
            return slow(values)
        digits = (fill.join(texts) + fill).replace("-", "").replace(":", "").replace(".", "")
        return [head + piece for piece in _cut([digits], most)]

    return pack


def _cut(digits: list[str], width: int) -> list[bytes]:
    """Return texts of decimal digits as base-100 digits, so many decimal ones for each value."""
    data, size = bytes.fromhex("".join(digits)).translate(_BASE_100), width // 2
    return [data[place : place + size] for place in range(0, len(data), size)]


_PACKERS: dict[Family, Callable[[EmulatedType], PackAll]] = {
    Family.INTEGER: _number,
    Family.FLOAT: _number,
    Family.DECIMAL: _decimal,
    Family.TEXT: _text,
    Family.DATE: _date,
    Family.DATETIME: _datetime,
    Family.BOOLEAN: _boolean,
}
