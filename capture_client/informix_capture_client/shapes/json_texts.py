"""Texts that lie end to end, made of pieces.

Rule: no text is made by itself. All pieces of all texts are put in order by one call, and a text is the
stretch from one of its bounds to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from informix_capture_client.records import Bits, Integers


class JsonTexts(NamedTuple):
    """Texts that lie back to back: where each begins in `content`, and where the last one ends."""

    bounds: Integers
    content: memoryview

    def part(self, first: int, end: int, where: Bits) -> pa.StringArray:
        """Return texts `first` to `end`, one for each set bit; NULL where no bit is set."""
        begin, upto = int(self.bounds[first]), int(self.bounds[end])
        lengths = np.zeros(len(where) + 1, np.int64)
        lengths[1:][where] = np.diff(self.bounds[first : end + 1])
        validity = None if where.all() else pa.py_buffer(np.packbits(where, bitorder="little"))
        offsets = pa.py_buffer(np.cumsum(lengths).astype(np.int32))
        content = pa.py_buffer(self.content[begin:upto])
        return pa.Array.from_buffers(
            pa.string(), len(where), [validity, offsets, content], int(np.count_nonzero(~where))
        )


def laid(pieces: Sequence[pa.Array], order: Integers, begins: Integers) -> JsonTexts:
    """Return texts of pieces.

    Args:
        pieces: the pieces there are, numbered through all arrays.
        order: the numbers of all pieces of all texts, text after text.
        begins: where in `order` each text begins.
    """
    whole = pa.concat_arrays(pieces).take(pa.array(order))
    offsets = np.frombuffer(whole.buffers()[1], np.int32)[: len(order) + 1]
    bounds = offsets[np.append(begins, len(order))].astype(np.int64)
    return JsonTexts(bounds, memoryview(whole.buffers()[2] or b"")[: int(bounds[-1])])


def joined(parts: Sequence[JsonTexts]) -> JsonTexts:
    """Return all texts of several as one."""
    if len(parts) == 1:
        return parts[0]
    sizes = [len(part.content) for part in parts]
    bases = np.repeat(np.cumsum([0, *sizes])[: len(parts)], [len(part.bounds) - 1 for part in parts])
    ends = np.concatenate([np.zeros(0, np.int64), *(part.bounds[1:] for part in parts)]) + bases
    return JsonTexts(np.append(0, ends), memoryview(b"".join(part.content for part in parts)))
