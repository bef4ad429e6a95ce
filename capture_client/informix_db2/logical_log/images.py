"""Where row images lie behind the header.

Rule: the page says of the length in front of an image both that it counts what follows and that it
counts itself, so a file is read in the one way that fits all its records; where two ways do, none is
taken.

    exclusive        u16 length of the image, image; for an update both images so
    inclusive        the same, the length with its own two bytes
    total_exclusive  u16 length of all with itself, then images as `exclusive`
    total_inclusive  u16 length of all with itself, then images as `inclusive`
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from informix_db2.changes import IntArray

_Bools = NDArray[np.bool_]


class LengthReading(NamedTuple):
    """A way to read lengths: whether a total precedes them, and what they include besides the image."""

    has_total: bool
    own: int


READINGS = {
    "exclusive": LengthReading(False, 0),
    "inclusive": LengthReading(False, 2),
    "total_exclusive": LengthReading(True, 0),
    "total_inclusive": LengthReading(True, 2),
}


class RecordImages(NamedTuple):
    """Of each record where its first image lies and its second one, and whether lengths fit."""

    starts: tuple[IntArray, IntArray]
    sizes: tuple[IntArray, IntArray]
    fits: _Bools


def images_at(
    data: NDArray[np.uint8],
    starts: IntArray,
    sizes: IntArray,
    is_update: _Bools,
    reading: LengthReading,
) -> RecordImages:
    """Read the lengths of images in one way.

    Args:
        data: all bytes.
        starts: where what follows the header begins.
        sizes: how many bytes follow the header.
        is_update: whether there are two images.
        reading: the way.
    """
    ends = starts + sizes
    fits = np.ones(len(starts), bool)
    at = starts
    if reading.has_total:
        fits = _halfword(data, at, ends) == sizes
        at = at + 2
    found: list[tuple[IntArray, IntArray]] = []
    for is_there in (np.ones(len(starts), bool), is_update):
        length = np.where(is_there, _halfword(data, at, ends), reading.own)
        size = length - reading.own
        first = at + 2
        fits = fits & (size >= 0)
        found.append((np.where(is_there, first, at), size))
        at = np.where(is_there, first + np.maximum(size, 0), at)
    fits = fits & (at == ends)
    (first, first_size), (second, second_size) = found
    return RecordImages((first, second), (first_size, second_size), fits)


def _halfword(data: NDArray[np.uint8], at: IntArray, ends: IntArray) -> IntArray:
    """Return two bytes as a number; -1 where they are not there."""
    is_there = at + 2 <= ends
    safe = np.where(is_there, at, 0)
    if len(data) < 2:
        return np.full(len(at), -1, np.int64)
    high, low = data[safe].astype(np.int64), data[safe + 1].astype(np.int64)
    return np.where(is_there, high << 8 | low, -1)


def readings_that_fit(
    data: NDArray[np.uint8], starts: IntArray, sizes: IntArray, is_update: _Bools
) -> list[str]:
    """Return the ways that fit most records."""
    counts = {
        name: int(images_at(data, starts, sizes, is_update, reading).fits.sum())
        for name, reading in READINGS.items()
    }
    most = max(counts.values())
    return [name for name, count in counts.items() if count == most and most > 0]
