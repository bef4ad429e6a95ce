"""Decode floating DECIMAL(p), whose decimal point may be anywhere.

Rule: values are decoded to exact text without an exponent; a double is parsed from it.

    sheet row    -  0 0 0 1 2 3 4  .  5 0 0 0      whole pairs, the point, pairs of the fraction
    cut out         ^ begins here: -1234.5
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.records import Integers
from informix_capture_client.values.arrow_arrays import byte_strings, pick
from informix_capture_client.values.field_text import TWO_DIGITS
from informix_capture_client.values.packed_words import (
    PAIRS,
    Number,
    PackedWords,
    Packing,
    aligned,
    last_digit,
    pair,
)

_USUAL_PAIRS = 12  # before and after the point: batches with numbers beyond are printed value by value


def decode_floating(raw: NDArray[Any], packing: Packing) -> pa.Array:
    """Decode floating DECIMAL(p) as exact text, without an exponent."""
    number = packing.unpack(raw)
    exponents = np.where(number.empty, 0, number.exponents())
    count, last = last_digit(number.words)
    whole = int(exponents.max(initial=1))
    fraction = int((count - exponents).max(initial=0))
    is_normal = bool(((pair(number.words, 0) > 0) | number.empty).all())
    if not is_normal or max(whole, fraction) > _USUAL_PAIRS:
        return _value_by_value(raw, packing)
    shown = np.maximum(2 * (count - exponents) - (last % 10 == 0), 0)  # digits of the fraction
    word_count = max(-(-(whole + fraction) // PAIRS), len(number.words))
    sheet = _sheet(aligned(number, whole, word_count), whole, fraction)
    point = 2 * whole + 1
    leading = np.maximum(2 * exponents - (pair(number.words, 0) < 10), 1)
    starts = point - leading - number.negative
    sheet[number.negative, starts[number.negative]] = ord("-")
    lengths = np.where(number.nulls, 0, point + np.where(shown > 0, shown + 1, 0) - starts)
    starts += np.arange(len(raw)) * sheet.shape[1]
    return byte_strings(sheet.reshape(-1), starts, lengths, number.nulls, pa.string())


def _sheet(words: tuple[PackedWords, ...], whole: int, fraction: int) -> NDArray[np.uint8]:
    """Write every digit, with a column for the sign in front."""
    sheet = np.empty((len(words[0]), 2 * (whole + fraction) + 2), np.uint8)
    point = 2 * whole + 1
    sheet[:, point] = ord(".")
    for place in range(whole + fraction):
        at = 2 * place + 1 + (place >= whole)
        sheet[:, at : at + 2] = TWO_DIGITS[pair(words, place)]
    return sheet


def decode_double(raw: NDArray[Any], packing: Packing) -> pa.Array:
    """Decode floating DECIMAL(p) as the nearest double.

    All values are in a double's range: DECIMAL ranges from 1e-130 to 1e126.
    """
    return decode_floating(raw, packing).cast(pa.float64())


def _value_by_value(raw: NDArray[Any], packing: Packing) -> pa.Array:
    size = packing.layout.itemsize
    content = pa.py_buffer(raw.view(f"V{size}").copy())
    packed = pa.Array.from_buffers(pa.binary(size), len(raw), [None, content], 0).dictionary_encode()
    distinct = np.frombuffer(b"".join(packed.dictionary.to_pylist()), packing.layout)
    number = packing.unpack(distinct)
    exponents = number.exponents()
    texts = [_text(number, exponents, row) for row in range(len(distinct))]
    return pick(pa.array(texts, pa.string()), packed.indices)


def _text(number: Number, exponents: Integers, row: int) -> str | None:
    if number.nulls[row]:
        return None
    digits = b"".join(int(word[row]).to_bytes(PAIRS) for word in number.words)
    unscaled = int("".join(f"{digit:02d}" for digit in digits))
    power = 2 * (int(exponents[row]) - len(digits))
    value = Decimal((int(number.negative[row]), tuple(map(int, str(unscaled))), power))
    text = f"{value:f}" if unscaled else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text
