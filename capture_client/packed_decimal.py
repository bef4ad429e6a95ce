"""Decode Informix's packed decimal, the one encoding behind DECIMAL, MONEY, DATETIME and INTERVAL.

Rule: everything works on whole columns; a value is first unpacked, then aligned on its point.

    byte 0          top bit 1 = positive; low 7 bits = exponent + 64, in base 100
    bytes 1, 2, ..  base-100 digits d0, d1, ..: value = sum of d[i] * 100 ** (exponent - 1 - i)

    negative        byte 0 is inverted; the last non-zero digit is 100 - d, those before it 99 - d
    NULL            all bytes zero; zero is 80 00 00 ..

Sources: captured rows (tests/golden), and J. Leffler's table of packed decimals. A first digit byte
of 00 occurs in valid negative numbers, and so does a byte 0 of 00 (-1e124, the lowest exponent), but
never both with nothing behind: NULL is told by all bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_cdc.capture_client.arrow_arrays import Bits, fixed_width, pick, refuse
from informix_cdc.capture_client.framing import Integers

Bytes = NDArray[np.uint8]


_LIMB_PAIRS = 9  # nine base-100 digits, 10 ** 18, are what a 64-bit integer holds
_HUNDREDS = 100 ** np.arange(_LIMB_PAIRS + 1, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Unpacked:
    """A column of packed decimals with sign and complement resolved."""

    nulls: Bits
    negative: Bits
    exponents: Integers
    digits: Bytes


def unpack(raw: Bytes) -> Unpacked:
    """Take rows of packed bytes apart.

    Raises:
        BadValue: a digit is above 99, or the bytes are no number at all.
    """
    head, digits = raw[:, 0], raw[:, 1:].copy()
    has_digits = digits.any(axis=1)
    nulls = (head == 0) & ~has_digits
    negative = (head < 0x80) & ~nulls
    refuse(negative & ~has_digits, "is a negative number without digits")
    refuse((digits > 99).any(axis=1), "has a base-100 digit above 99")
    if negative.any():
        digits[negative] = _uncomplemented(digits[negative])
    exponents = (np.where(negative, ~head, head) & 0x7F).astype(np.int64) - 64
    return Unpacked(nulls, negative, exponents, digits)


def _uncomplemented(digits: Bytes) -> Bytes:
    width = digits.shape[1]
    last = width - 1 - (digits[:, ::-1] != 0).argmax(axis=1)[:, None]
    columns = np.arange(width)
    return np.where(columns < last, 99 - digits, np.where(columns == last, 100 - digits, 0)).astype(
        np.uint8
    )


def align(number: Unpacked, whole_pairs: int, fraction_pairs: int) -> Bytes:
    """Return the base-100 digits as columns with the point after column `whole_pairs`.

    Raises:
        BadValue: a digit lies outside; the value is too large or too fine for its type.
    """
    rows, width = number.digits.shape
    if width == whole_pairs + fraction_pairs and _is_aligned(number, whole_pairs):
        return number.digits
    places = (number.exponents - whole_pairs)[:, None] + np.arange(whole_pairs + fraction_pairs)
    inside = (places >= 0) & (places < width)
    aligned = np.take_along_axis(number.digits, np.clip(places, 0, width - 1), axis=1)
    aligned = np.where(inside, aligned, 0).astype(np.uint8)
    lost = np.count_nonzero(aligned, axis=1) != np.count_nonzero(number.digits, axis=1)
    refuse(lost, f"does not fit {whole_pairs} pairs before and {fraction_pairs} after the point")
    assert aligned.shape == (rows, whole_pairs + fraction_pairs)
    return aligned


def _is_aligned(number: Unpacked, whole_pairs: int) -> bool:
    """Tell whether every point already lies after column `whole_pairs`, as in most DATETIMEs."""
    return bool(((number.exponents == whole_pairs) | number.nulls).all())


def join_pairs(pairs: Bytes) -> Integers:
    """Read at most nine base-100 columns as one integer."""
    value = np.zeros(len(pairs), np.int64)
    for column in pairs.T:
        value *= 100
        value += column
    return value


def decode_decimal(raw: Bytes, precision: int, scale: int) -> pa.Array:
    """Decode DECIMAL(precision, scale) exactly.

    Raises:
        BadValue: a value has more digits than the type allows.
    """
    whole_pairs, fraction_pairs = -(-(precision - scale) // 2), -(-scale // 2)
    number = unpack(raw)
    low, high = _limbs(number, whole_pairs, fraction_pairs)
    unit = 10**18
    if scale % 2:  # the last pair carries one digit beyond the scale, and it must be 0
        refuse(low % 10 != 0, f"has more than {scale} digits after the point")
        low, unit = low // 10, unit // 10
    words = _wide(high, unit, low)
    _refuse_too_large(high, low, unit, precision)
    words[number.negative] = _negated(words[number.negative])
    return fixed_width(pa.decimal128(precision, scale), words, number.nulls)


def _limbs(number: Unpacked, whole_pairs: int, fraction_pairs: int) -> tuple[Integers, Integers]:
    """Return the digits as integers in units of the last pair, nine pairs in the first."""
    narrow = max(number.digits.shape[1], whole_pairs + fraction_pairs) <= _LIMB_PAIRS
    if narrow and (number.exponents <= whole_pairs).all():
        low = _shifted(number, fraction_pairs)
        return low, np.zeros(len(low), np.int64)
    pairs = align(number, whole_pairs, fraction_pairs)
    return join_pairs(pairs[:, -_LIMB_PAIRS:]), join_pairs(pairs[:, :-_LIMB_PAIRS])


def _shifted(number: Unpacked, fraction_pairs: int) -> Integers:
    """Join all digits at once and shift the point: quicker than moving digits row by row."""
    joined = join_pairs(number.digits)
    shift = np.where(joined == 0, 0, number.exponents - number.digits.shape[1] + fraction_pairs)
    refuse(shift < -_LIMB_PAIRS, f"does not fit {fraction_pairs} pairs after the point")
    divisor = _HUNDREDS[np.maximum(-shift, 0)]
    quotient = joined // divisor
    refuse(quotient * divisor != joined, f"does not fit {fraction_pairs} pairs after the point")
    return quotient * _HUNDREDS[np.maximum(shift, 0)]


def _refuse_too_large(high: Integers, low: Integers, unit: int, precision: int) -> None:
    limit_high, limit_low = divmod(10**precision, unit)
    too_large = (high > limit_high) | ((high == limit_high) & (low >= limit_low))
    refuse(too_large, f"has more than {precision} digits")


def _wide(high: Integers, unit: int, low: Integers) -> NDArray[np.uint64]:
    """Return high * unit + low as pairs of 64-bit words, the lower word first."""
    words = np.zeros((len(low), 2), np.uint64)
    words[:, 0] = low
    if high.any():
        half = np.uint64(0xFFFFFFFF)
        shift = np.uint64(32)
        h1, h0 = high.astype(np.uint64) >> shift, high.astype(np.uint64) & half
        m1, m0 = np.uint64(unit >> 32), np.uint64(unit & 0xFFFFFFFF)
        middle = (h0 * m0 >> shift) + (h0 * m1 & half) + (h1 * m0 & half)
        product = (h0 * m0 & half) | (middle << shift)
        words[:, 0] += product
        carried = words[:, 0] < product
        words[:, 1] = h1 * m1 + (h0 * m1 >> shift) + (h1 * m0 >> shift) + (middle >> shift) + carried
    return words


def _negated(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    low = ~words[:, 0] + np.uint64(1)
    return np.stack([low, ~words[:, 1] + (low == 0)], axis=1)


def decode_floating(raw: Bytes) -> pa.Array:
    """Decode floating DECIMAL(p) as exact text, without an exponent.

    Distinct values are few compared with rows, so each is printed once.
    """
    number = unpack(raw)
    packed = np.ascontiguousarray(raw)
    distinct, first, which = np.unique(
        packed.view(f"V{raw.shape[1]}").ravel(), return_index=True, return_inverse=True
    )
    texts = pa.array([_text(number, int(row)) for row in first], pa.string())
    assert len(texts) == len(distinct)
    return pick(texts, which)


def _text(number: Unpacked, row: int) -> str | None:
    if number.nulls[row]:
        return None
    digits = number.digits[row].tolist()
    unscaled = int("".join(f"{digit:02d}" for digit in digits))
    power = 2 * (int(number.exponents[row]) - len(digits))
    value = Decimal((int(number.negative[row]), tuple(map(int, str(unscaled))), power))
    text = f"{value:f}" if unscaled else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text
