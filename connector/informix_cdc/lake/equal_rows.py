"""Whether rows are equal, value by value.

Rule: Arrow in, flags out, whole columns at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.object_readers import GONE, NOT_READ, is_content_type


def flags_of(values: pa.ChunkedArray) -> np.ndarray:
    """Return booleans; NULL is false."""
    return np.asarray(pc.fill_null(values, False).to_numpy(), bool)


def are_equal(left: pa.Table, right: pa.Table) -> np.ndarray:
    """Return which rows are equal, place by place; see `unequal_columns`."""
    found = np.ones(len(left), bool)
    for differs in unequal_columns(left, right).values():
        found &= ~differs
    return found


def unequal_columns(left: pa.Table, right: pa.Table, key: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Return for each column but those of the key which rows differ, place by place.

    NULL equals NULL, and NaN equals NaN. A large object that could not be read on the left equals any.
    """
    found = {}
    for field in left.schema:
        if field.name not in key:
            a, b = left.column(field.name), right.column(field.name)
            same = _same_contents if is_content_type(field.type) else _same
            found[field.name] = ~same(a, b)
    return found


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray:
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    same: np.ndarray = flags_of(pc.equal(left, right)) | flags_of(both_null)
    if pa.types.is_floating(left.type):
        same |= flags_of(pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return same


def _same_contents(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray:
    """Return which large objects are equal; one that could not be read on the left equals any."""
    a, b = ([pc.struct_field(side, place) for place in range(3)] for side in (left, right))
    same: np.ndarray = flags_of(pc.is_in(a[2], value_set=pa.array([GONE, NOT_READ])))
    content, size, status = (_same(*each) for each in zip(a, b, strict=True))
    # The size of a CLOB is that in the database's code set, which a store of contents does not know.
    same |= content & status & (size | flags_of(pc.is_valid(a[0])))
    return same


def places_in(numbers: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return for each number the index of its first occurrence in others; -1 if there is none."""
    order = np.argsort(others, kind="stable")
    places = np.append(order, -1)[np.searchsorted(others[order], numbers)]
    return np.where(np.isin(numbers, others), places, -1)
