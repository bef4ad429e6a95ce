"""Escape texts for JSON, a column at once.

Rule: Python looks at the few texts with a quote, a backslash or a control character in them, and at
no other; a text is not changed otherwise, so that it stays UTF-8 as it came.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_IS_SPECIAL = np.zeros(256, bool)
_IS_SPECIAL[:0x20] = True
_IS_SPECIAL[[ord('"'), ord("\\")]] = True


def escaped(values: pa.Array) -> pa.Array:
    """Escape the few texts that have signs of JSON in them."""
    first, end = values.offset, values.offset + len(values) + 1
    offsets = np.frombuffer(values.buffers()[1], np.int32)[first:end]
    content = np.frombuffer(values.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    places: NDArray[np.int64] = np.flatnonzero(_IS_SPECIAL[content])
    if not len(places):
        return values
    rows = np.unique(np.searchsorted(offsets - offsets[0], places, side="right") - 1)
    texts = (values[row].as_py() or "" for row in rows.tolist())
    return with_others(values, rows, [json.dumps(text, ensure_ascii=False)[1:-1] for text in texts])


def with_others(texts: pa.Array, rows: NDArray[np.int64], others: list[str]) -> pa.Array:
    """Return texts with others in the place of some."""
    if not others:
        return texts
    order = np.arange(len(texts))
    order[rows] = len(texts) + np.arange(len(rows))
    return pa.concat_arrays([texts, pa.array(others, pa.string())]).take(pa.array(order))
