"""Decode Informix's packed decimals, the encoding of DECIMAL, DATETIME and INTERVAL, as machine words.

Rule: a number is a few 64-bit words of eight base-100 digits each, and every step processes a whole
column of such words; no step processes single digits.

    byte 0          top bit 1 = positive; low 7 bits = exponent + 64, in base 100
    bytes 1, 2, ..  base-100 digits d0, d1, ..: value = sum of d[i] * 100 ** (exponent - 1 - i)

    negative        byte 0 is inverted; the last non-zero digit is 100 - d, those before it 99 - d
    NULL            all bytes zero; zero is 80 00 00 ..

Sources: captured rows (tests/golden), and J. Leffler's table of packed decimals. A first digit byte of
00 occurs in valid negative numbers, and so does a byte 0 of 00 (-1e124, the lowest exponent), but never
both followed by zeros only: NULL is recognised by all bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from informix_capture_client.records import Bits, Integers
from informix_capture_client.values.arrow_arrays import refuse

PackedWords = NDArray[np.uint64]

PAIRS = 8  # base-100 digits in a word, the first one in its highest byte
WORD_UNIT = 100**PAIRS


def every_byte(value: int) -> np.uint64:
    """Return a word with the same value in every byte."""
    return np.uint64(int.from_bytes(bytes([value]) * 8))


TOP_BITS = every_byte(0x80)
_SEVEN_ONES = every_byte(0x7F)
_NINETY_NINE = every_byte(99)
_ABOVE_99 = every_byte(0x80 - 100)  # added to a byte above 99 it sets the top bit

_JOINS = tuple(
    (np.uint64(bits), np.uint64((2**64 - 1) // (2**bits + 1)), np.uint64(2**bits - 100 ** (bits // 8)))
    for bits in (8, 16, 32)
)
_PAIR_SHIFTS = tuple(np.uint64(8 * (PAIRS - 1 - place)) for place in range(PAIRS))
_LAST_BYTE = np.uint64(0xFF)
_BYTES_SHIFT = np.uint64(3)
_WORD_BITS = np.uint64(64)


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A column of packed decimals; `words` has the digits, with complements resolved.

    `empty` marks values without a non-zero digit: NULL and zero.
    """

    nulls: Bits
    empty: Bits
    negative: Bits
    heads: NDArray[np.uint8]
    words: tuple[PackedWords, ...]

    def exponents(self) -> Integers:
        """Return how many base-100 digits are before each point."""
        return _EXPONENTS.take(self.heads)


_HEADS = np.arange(256)
_EXPONENTS = (np.where(_HEADS < 0x80, ~_HEADS, _HEADS) & 0x7F) - 64


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """The layout of packed decimals of one size in a row.

    `layout` has a field for byte 0 and overlapping big-endian integers over the digits; `pieces` says
    which of them form a word, and how far each is shifted to the left.
    """

    layout: np.dtype
    pieces: tuple[tuple[tuple[str, np.uint64], ...], ...]

    def unpack(self, raw: NDArray[Any]) -> Number:
        """Split values of `layout`.

        Raises:
            BadValue: a digit is above 99, or the bytes are not a number.
        """
        heads = np.ascontiguousarray(raw["head"])
        words = tuple(_joined(raw, pieces) for pieces in self.pieces)
        bad = [word | (word + _ABOVE_99) for word in words]
        if any(np.bitwise_or.reduce(tops) & TOP_BITS for tops in bad):
            refuse(_any_top_bit(bad), "has a base-100 digit above 99")
        empty: Bits = words[0] == 0
        for word in words[1:]:
            empty &= word == 0
        negative = heads < 0x80
        nulls = empty & (heads == 0)
        refuse(empty & (negative ^ nulls), "is a negative number without digits")
        negative &= ~empty
        if np.count_nonzero(negative):
            words = _uncomplemented(words, negative)
        return Number(nulls, empty, negative, heads, words)


def _joined(raw: NDArray[Any], pieces: tuple[tuple[str, np.uint64], ...]) -> PackedWords:
    word = np.zeros(0, np.uint64)
    for number, (name, shift) in enumerate(pieces):
        piece = raw[name].astype(np.uint64)
        if shift:
            piece <<= shift
        word = piece if number == 0 else word | piece
    return word


def _any_top_bit(words: list[PackedWords]) -> Bits:
    found = np.zeros(len(words[0]), np.bool_)
    for word in words:
        found |= word & TOP_BITS != 0
    return found


@cache
def packing(size: int) -> Packing:
    """Return the layout of packed decimals of `size` bytes."""
    words = [list(_pieces(size, first)) for first in range(1, size, PAIRS)]
    names, formats, offsets = ["head"], ["u1"], [0]
    for offset, width, _ in (piece for word in words for piece in word):
        names.append(f"d{offset}")
        formats.append(f">u{width}")
        offsets.append(offset)
    layout = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
    named = tuple(tuple((f"d{offset}", np.uint64(bits)) for offset, _, bits in word) for word in words)
    return Packing(layout, named)


def _pieces(size: int, first: int) -> Iterator[tuple[int, int, int]]:
    """Yield (offset, width, left shift) of the integers that cover one word from byte `first`.

    The last word may be short: it is read with bytes before it, which the shift pushes out, or as two
    narrower integers that overlap.
    """
    count = min(PAIRS, size - first)
    if size >= PAIRS:
        yield first + count - PAIRS, PAIRS, 8 * (PAIRS - count)
        return
    width = 1 << (count.bit_length() - 1)
    yield first, width, 8 * (PAIRS - width)
    if width < count:
        yield size - width, width, 8 * (PAIRS - count)


def _uncomplemented(words: tuple[PackedWords, ...], negative: Bits) -> tuple[PackedWords, ...]:
    """Return digits with the complement of negative numbers resolved."""
    chosen = -negative.astype(np.uint64)  # all ones or none: cheaper than a branch per row
    true: list[PackedWords] = []
    ended = np.zeros(len(negative), np.bool_)  # whether a later word has the last non-zero digit
    for word in reversed(words):
        filled = (word + _SEVEN_ONES) & TOP_BITS
        one = (filled & -filled) >> np.uint64(7)  # a 1 in the last byte that is not zero, or nothing
        below = _NINETY_NINE - word
        last = (below + one) & -one
        digits = np.where(ended, below, last) if true else last
        true.insert(0, word ^ ((word ^ digits) & chosen))
        ended |= word != 0
    return tuple(true)


def aligned(number: Number, whole_pairs: int, word_count: int) -> tuple[PackedWords, ...]:
    """Return the digits with every point after `whole_pairs` base-100 digits, in `word_count` words.

    Raises:
        BadValue: a digit is outside the words.
    """
    added = word_count - len(number.words)
    words = (*number.words, *[np.zeros(len(number.heads), np.uint64)] * added)
    shifts = (whole_pairs - _EXPONENTS).take(number.heads)
    shifts *= ~number.empty
    if not np.count_nonzero(shifts):
        return words
    lost = "does not fit: it has more digits before or after the point than its column"
    begin_with_zeros = shifts.min() < 0  # not normal, and exact all the same
    right = (np.maximum(shifts, 0) if begin_with_zeros else shifts).astype(np.uint64)
    moved = _right(words, right)
    refuse(_differ(_left(moved, right), words), lost)
    if begin_with_zeros:
        left = np.maximum(-shifts, 0).astype(np.uint64)
        moved, words = _left(moved, left), moved
        refuse(_differ(_right(moved, left), words), lost)
    return moved


def _right(words: tuple[PackedWords, ...], pairs: PackedWords) -> tuple[PackedWords, ...]:
    """Move digits to the right; those that leave the last word are lost."""
    none = np.zeros(1, np.uint64)
    for _ in words[1:]:
        whole = pairs >= PAIRS
        words = tuple(
            np.where(whole, before, word) for before, word in zip((none, *words), words, strict=False)
        )
        pairs = pairs - np.where(whole, np.uint64(PAIRS), np.uint64(0))
    bits = pairs << _BYTES_SHIFT
    moved = [word >> bits for word in words]
    for place in range(1, len(words)):
        moved[place] |= words[place - 1] << (_WORD_BITS - bits)
    return tuple(moved)


def _left(words: tuple[PackedWords, ...], pairs: PackedWords) -> tuple[PackedWords, ...]:
    """Move digits to the left; those that leave the first word are lost."""
    none = np.zeros(1, np.uint64)
    for _ in words[1:]:
        whole = pairs >= PAIRS
        words = tuple(
            np.where(whole, after, word) for word, after in zip(words, (*words[1:], none), strict=True)
        )
        pairs = pairs - np.where(whole, np.uint64(PAIRS), np.uint64(0))
    bits = pairs << _BYTES_SHIFT
    moved = [word << bits for word in words]
    for place in range(len(words) - 1):
        moved[place] |= words[place + 1] >> (_WORD_BITS - bits)
    return tuple(moved)


def _differ(these: tuple[PackedWords, ...], those: tuple[PackedWords, ...]) -> Bits:
    found: Bits = these[0] != those[0]
    for one, other in zip(these[1:], those[1:], strict=True):
        found |= one != other
    return found


def joined(word: PackedWords) -> PackedWords:
    """Read the eight base-100 digits of a word as one integer.

    Neighbouring lanes become one of twice the width: `high << bits | low` is made `high * unit + low`
    by taking `high` away as often as `1 << bits` is more than `unit`.
    """
    for shift, high_lanes, surplus in _JOINS:
        word = word - ((word >> shift) & high_lanes) * surplus
    return word


def pair(words: tuple[PackedWords, ...], place: int) -> Integers:
    """Return one base-100 digit of every number."""
    word, within = divmod(place, PAIRS)
    digit: Integers = ((words[word] >> _PAIR_SHIFTS[within]) & _LAST_BYTE).view(np.int64)
    return digit


def last_digit(words: tuple[PackedWords, ...]) -> tuple[Integers, Integers]:
    """Return the number of base-100 digits up to the last non-zero digit, and that digit."""
    count = np.zeros(len(words[0]), np.int64)
    digit = np.zeros(len(words[0]), np.int64)
    for number, word in enumerate(words):
        filled = (word + _SEVEN_ONES) & TOP_BITS
        top_bit = (filled & -filled).astype(np.float64)  # a power of two, or 0
        behind = np.frexp(top_bit)[1] // 8 - 1  # bytes behind the last one that is not zero
        found = (word >> (8 * np.maximum(behind, 0)).astype(np.uint64)) & np.uint64(0xFF)
        count = np.where(word != 0, (number + 1) * PAIRS - behind, count)
        digit = np.where(word != 0, found.view(np.int64), digit)
    return count, digit
