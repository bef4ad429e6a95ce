"""Arrays of numbers that every step from records to columns speaks of, and how bytes are read as such.

Rule: NumPy only; no record and no column is known here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Bits = NDArray[np.bool_]


def gather(data: bytes, layout: np.dtype, starts: Integers) -> NDArray[np.void]:
    """Return one structured value per start, read at that offset of `data`.

    The caller has checked that each start plus the layout's size lies within `data`.
    """
    if len(starts) == 0:
        return np.empty(0, layout)
    places = len(data) - layout.itemsize + 1
    # As plain bytes, then viewed: picking structured values copies them field by field.
    everywhere = np.ndarray((places,), f"V{layout.itemsize}", data, 0, (1,))
    return everywhere[starts].view(layout)


def ragged_places(starts: Integers, lengths: Integers) -> Integers:
    """Return the indices start, start + 1, ... of every range, one range after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    places: Integers = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return places


def joined_bytes(
    data: bytes | bytearray, starts: Integers, ends: Integers, margin: bytes = b""
) -> bytes:
    """Return ranges of `data`, at least one, back to back; those side by side are copied at once."""
    if len(starts) == 1:
        return bytes(data[starts[0] : ends[0]]) + margin
    is_apart = starts[1:] != ends[:-1]
    firsts = starts[np.append(True, is_apart)].tolist()
    lasts = ends[np.append(is_apart, True)].tolist()
    pieces = [data[first:last] for first, last in zip(firsts, lasts, strict=True)]
    return b"".join([*pieces, margin])
