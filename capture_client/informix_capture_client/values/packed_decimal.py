"""Decode DECIMAL, MONEY and floating DECIMAL from their words of base-100 digits.

Rule: a value is exact or rejected; decoding depends on the column's declaration, not on the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.records import Bits, Integers
from informix_capture_client.values.arrow_arrays import fixed_width, refuse
from informix_capture_client.values.packed_words import (
    PAIRS,
    WORD_UNIT,
    PackedWords,
    Packing,
    aligned,
    joined,
)

_LARGEST = np.uint64(0xFFFFFFFFFFFFFFFF)
_HALF, _HALF_BITS = np.uint64(0xFFFFFFFF), np.uint64(32)


def decode_decimal(raw: NDArray[Any], packing: Packing, precision: int, scale: int) -> pa.Array:
    """Decode numbers as DECIMAL(precision, scale) exactly.

    Raises:
        BadValue: a value has more digits than the type allows.
    """
    number = packing.unpack(raw)
    fraction_pairs = -(-scale // 2)
    word_count = max(len(number.words), -(-(precision + scale % 2) // (2 * PAIRS)))
    words = aligned(number, PAIRS * word_count - fraction_pairs, word_count)
    limbs, unit = [joined(word) for word in words], WORD_UNIT
    if scale % 2:  # the last pair carries one digit beyond the scale, and it must be 0
        limbs[-1], unit = _tenth(limbs[-1], scale), unit // 10
    make = _from_one if word_count == 1 else _from_several
    values = make(limbs, unit, precision, number.negative)
    return fixed_width(pa.decimal128(precision, scale), values, number.nulls)


def _tenth(limb: PackedWords, scale: int) -> PackedWords:
    ten = np.uint64(10)
    tenth: PackedWords = limb // ten
    refuse(tenth * ten != limb, f"has more than {scale} digits after the point")
    return tenth


def _from_one(limbs: list[PackedWords], unit: int, precision: int, negative: Bits) -> Integers:
    """Return 128-bit integers as pairs of 64-bit words, the lower one first."""
    value = limbs[0].view(np.int64)
    if 10**precision < unit:
        refuse(value >= 10**precision, f"has more than {precision} digits")
    words = np.empty((len(value), 2), np.int64)
    sign = -negative.astype(np.int64)
    words[:, 0] = (value ^ sign) - sign
    words[:, 1] = sign
    return words


def _from_several(limbs: list[PackedWords], unit: int, precision: int, negative: Bits) -> PackedWords:
    too_large = f"has more than {precision} digits"
    first, *middle, last = limbs
    # So much is certain before anything is multiplied: nothing below can leave 128 bits.
    most = 10**precision // (unit * WORD_UNIT ** len(middle))
    refuse(first > most, too_large)
    high, low = np.zeros(len(first), np.uint64), first
    for limb, factor in [*((limb, WORD_UNIT) for limb in middle), (last, unit)]:
        carry, low = _product(low, factor, limb)
        high = high * np.uint64(factor) + carry
    limit_high, limit_low = divmod(10**precision, 2**64)
    refuse((high > limit_high) | ((high == limit_high) & (low >= np.uint64(limit_low))), too_large)
    flip = np.where(negative, _LARGEST, np.uint64(0))
    words = np.stack([low ^ flip, high ^ flip], axis=1)
    words[:, 0] += negative
    words[:, 1] += negative & (words[:, 0] == 0)
    return words


def _product(value: PackedWords, factor: int, added: PackedWords) -> tuple[PackedWords, PackedWords]:
    """Return value * factor + added as its higher and its lower 64 bits."""
    f1, f0 = np.uint64(factor >> 32), np.uint64(factor & 0xFFFFFFFF)
    v1, v0 = value >> _HALF_BITS, value & _HALF
    middle = (v0 * f0 >> _HALF_BITS) + (v0 * f1 & _HALF) + (v1 * f0 & _HALF)
    low = (v0 * f0 & _HALF) | (middle << _HALF_BITS)
    high = v1 * f1 + (v0 * f1 >> _HALF_BITS) + (v1 * f0 >> _HALF_BITS) + (middle >> _HALF_BITS)
    low = low + added
    return high + (low < added), low
