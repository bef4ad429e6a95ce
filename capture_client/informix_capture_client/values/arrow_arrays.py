"""Wrap NumPy values as Arrow arrays without copying them.

Rule: an array carries a validity bitmap only where there are NULLs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.records import Bits, Integers

_MAX_OFFSET = 2**31 - 1  # Spark's strings have 32-bit offsets


class BadValue(ValueError):
    """A value that is not valid for its column's type; `row` is its index in the batch.

    `remedy` is the advice for the user, if not to report the value.
    """

    def __init__(self, row: int, what: str, remedy: str = "") -> None:
        super().__init__(row, what, remedy)
        self.row = row
        self.what = what
        self.remedy = remedy


def refuse(bad: NDArray[Any], what: str) -> None:
    """Raise `BadValue` for the first value that is not zero or false, if any."""
    if np.count_nonzero(bad):  # half the cost of any(): this runs a dozen times per column
        raise BadValue(int(np.flatnonzero(bad)[0]), what)


def _validity(nulls: Bits) -> tuple[pa.Buffer | None, int]:
    count = int(np.count_nonzero(nulls))
    return (pa.py_buffer(np.packbits(~nulls, bitorder="little")) if count else None), count


def fixed_width(arrow_type: pa.DataType, values: NDArray[Any], nulls: Bits) -> pa.Array:
    """Return native-endian values of one width as an array of `arrow_type`."""
    validity, count = _validity(nulls)
    buffers = [validity, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(arrow_type, len(nulls), buffers, count)


def booleans(values: NDArray[Any], nulls: Bits) -> pa.Array:
    """Return bits, or integers that are zero for false, as a boolean array."""
    validity, count = _validity(nulls)
    packed = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [validity, packed], count)


def strings(offsets: Integers, content: bytes | NDArray[np.uint8], nulls: Bits) -> pa.Array:
    """Return the strings in `content`, which is UTF-8; there is one more offset than strings."""
    _require_32_bits(offsets)
    validity, count = _validity(nulls)
    buffers = [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.string(), len(nulls), buffers, count)


def retyped(values: pa.Array, arrow_type: pa.DataType, nulls: Bits) -> pa.Array:
    """Return an array of another type with the same buffers and other NULLs."""
    validity, count = _validity(nulls)
    return pa.Array.from_buffers(arrow_type, len(nulls), [validity, *values.buffers()[1:]], count)


def _require_32_bits(offsets: Integers) -> None:
    if len(offsets) and offsets[-1] > _MAX_OFFSET:
        refuse(offsets[1:] > _MAX_OFFSET, "exceeds 2 GiB in one column: decode fewer rows at once")


def pick(values: pa.Array, places: NDArray[Any] | pa.Array) -> pa.Array:
    """Return the values at the given places; Arrow's `take` alone leaves a bitmap without NULLs."""
    picked = values.take(places if isinstance(places, pa.Array) else pa.array(places))
    if picked.null_count:
        return picked
    return pa.Array.from_buffers(
        picked.type, len(picked), [None, *picked.buffers()[1:]], 0, picked.offset
    )


@lru_cache(maxsize=4)
def _every_second(count: int) -> pa.Array:
    return pa.array(np.arange(0, 2 * count, 2))


def byte_strings(
    data: NDArray[np.uint8],
    starts: Integers,
    lengths: Integers,
    nulls: Bits,
    arrow_type: pa.DataType = pa.binary(),  # noqa: B008 - a type is a value
) -> pa.Array:
    """Return byte strings at any positions in `data`; Arrow copies all of them in one call.

    An index per byte would cost ten times as much. Of the array `with_gaps` every second value is a
    result; those between are gaps of any length, also negative, and are never read.
    """
    if lengths.sum() > _MAX_OFFSET:
        _require_32_bits(np.append(0, np.cumsum(lengths)))
    is_small = len(data) <= _MAX_OFFSET
    bounds = np.zeros(2 * len(starts) + 1, np.int32 if is_small else np.int64)
    bounds[0:-1:2] = starts
    np.add(starts, lengths, out=bounds[1::2], casting="unsafe")
    bounds[-1] = bounds.max()  # Arrow sizes its first allocation by the first and the last bound
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    gapped_type = pa.binary() if is_small else pa.large_binary()
    with_gaps = pa.Array.from_buffers(gapped_type, 2 * len(starts), buffers, 0)
    picked = with_gaps.take(_every_second(len(starts)))
    return retyped(picked if is_small else picked.cast(pa.binary()), arrow_type, nulls)
