"""Texts of hexadecimal digits to bytes, whole columns at a time.

Rule: two digits are one byte and nothing stands between them; no digits are no bytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from informix_db2.refused_bytes import BadDb2Value

NO_DIGITS = "is no even number of hexadecimal digits"
_NO_NIBBLE = 255
_NIBBLES = np.full(256, _NO_NIBBLE, np.uint8)
for _digits in ("0123456789abcdef", "0123456789ABCDEF"):
    _NIBBLES[np.frombuffer(_digits.encode(), np.uint8)] = np.arange(16)


def bytes_of_digits(texts: pa.Array) -> pa.Array:
    r"""Return the bytes that digits stand for.

    >>> bytes_of_digits(pa.array(["00fF", None, ""])).to_pylist()
    [b'\x00\xff', None, b'']

    Raises:
        BadValue: a text is no even number of digits.
    """
    if not len(texts):
        return pa.array([], pa.binary())
    _, bounds, held = texts.buffers()
    offsets = np.frombuffer(bounds, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    first, end = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(held, np.uint8)[first:end] if end > first else np.empty(0, np.uint8)
    nibbles = _NIBBLES[data]
    if ((offsets - first) & 1).any() or (nibbles == _NO_NIBBLE).any():
        raise BadDb2Value(NO_DIGITS)
    made = nibbles[0::2] << 4 | nibbles[1::2]
    validity = pa.array(np.asarray(texts.is_valid())).buffers()[1]
    return pa.Array.from_buffers(
        pa.binary(),
        len(texts),
        [validity, pa.py_buffer((offsets - first) // 2), pa.py_buffer(np.ascontiguousarray(made))],
    )
