"""The changes that the decoders return: one entry per change, with images by table.

Rule: columns only. Values of all changes are arrays; a row is an index into an array of rows of its
table, or bytes for an undeclared table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

INSERT, DELETE, UPDATE = "insert", "delete", "update"


@dataclass(frozen=True, slots=True)
class Image:
    """Rows of one table, before or after a change.

    Attributes:
        changes: the change of each row, ascending.
        rows: the decoded rows: one struct per row, or the delivered value of an undeclared row.
    """

    changes: IntArray
    rows: pa.Array


@dataclass(frozen=True, slots=True)
class Db2Changes:
    """Changes in delivery order.

    Attributes:
        kinds: insert, delete, update, truncate, ...
        befores, afters: by index of the declared table; the last entry is for undeclared tables.
        about: the metadata of every change: `_commit_lsn`, `_transaction_id`, `_table` and more.
        values: the index of the input value of each change.
    """

    kinds: pa.Array
    befores: Sequence[Image]
    afters: Sequence[Image]
    about: dict[str, pa.Array]
    values: IntArray

    def __len__(self) -> int:
        return len(self.kinds)


def nothing(kind: pa.DataType) -> Image:
    """Return no rows."""
    return Image(np.empty(0, np.int64), pa.nulls(0, kind))


def only(
    images: tuple[Sequence[Image], Sequence[Image]], kept: IntArray, count: int
) -> tuple[list[Image], list[Image]]:
    """Return the rows of some of so many changes, which are numbered anew."""
    if len(kept) == count:
        return list(images[0]), list(images[1])
    moved = np.full(count, -1, np.int64)
    moved[kept] = np.arange(len(kept))
    befores, afters = ([_moved(image, moved) for image in side] for side in images)
    return befores, afters


def _moved(image: Image, moved: IntArray) -> Image:
    changes = moved[image.changes]
    stays = np.flatnonzero(changes >= 0)
    if len(stays) == len(changes):
        return Image(changes, image.rows)
    return Image(changes[stays], image.rows.take(pa.array(stays)))


def placed(image: Image, count: int) -> pa.Array:
    """Return one entry per change: its row, or NULL."""
    places = np.full(count, -1, np.int64)
    places[image.changes] = np.arange(len(image.changes))
    return image.rows.take(with_nulls(places))


def with_nulls(places: IntArray) -> pa.Array:
    """Return places as indices, with NULL for negative ones."""
    return pa.array(places, pa.int64(), mask=places < 0)
