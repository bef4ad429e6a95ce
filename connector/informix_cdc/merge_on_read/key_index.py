"""Where the rows of a table are, by the hashes of their keys.

Rule: entries are never changed. A row that is deleted, or whose file the table no longer has, is found
and left out by the caller, and goes when levels are merged. Levels up to some thousand rows are in
memory, larger ones are mapped files; none is larger than a part, so that merging is bounded.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from informix_cdc.merge_on_read.key_hashes import Hashes

_MOST_ROWS_IN_MEMORY = 1 << 16
_MOST_ROWS = 1 << 22  # of a level: 96 MiB
_MOST_OF_A_SIZE = 8  # levels before they are merged
_ROW_BITS = np.uint64(32)  # of a place: the file's number above, the row's below
_ROW = (np.uint64(1) << _ROW_BITS) - np.uint64(1)
_HIGH, _LOW, _PLACE = range(3)  # the arrays of a level; contiguous, so that they are searched in place


class KeyIndex:
    """Entries in levels, each sorted by hash.

    Args:
        folder: of large levels.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._levels: list[np.ndarray] = []
        self._unswept = 0  # rows that were added since a level was swept

    def add(self, hashes: Hashes, file: int, rows: np.ndarray) -> None:
        """Add rows of a file.

        Args:
            hashes: of their keys.
            file: number of the file.
            rows: their places in it.
        """
        self.keep(self.levels(hashes, file, rows))

    def levels(self, hashes: Hashes, file: int, rows: np.ndarray) -> list[np.ndarray]:
        """Return rows of a file as levels, for `keep`; the arguments are those of `add`.

        Sorting takes time. The index is not looked at, so that another thread may use it meanwhile.
        """
        found = []
        for first in range(0, len(rows), _MOST_ROWS):
            part = slice(first, first + _MOST_ROWS)
            places = (np.uint64(file) << _ROW_BITS) | rows[part].astype(np.uint64)
            found += self._level(np.stack([hashes[0][part], hashes[1][part], places]))
        return found

    def keep(self, levels: Iterable[np.ndarray]) -> None:
        """Add levels."""
        for each in levels:
            self._levels.append(each)
            self._unswept += each.shape[1]

    def _level(self, entries: np.ndarray) -> list[np.ndarray]:
        entries = np.take(entries, np.argsort(entries[_HIGH], kind="stable"), axis=1)
        if (count := entries.shape[1]) > _MOST_ROWS_IN_MEMORY:
            with tempfile.TemporaryFile(dir=self._folder) as file:  # other tables have the same folder
                entries.tofile(file)
                file.flush()
                entries = np.memmap(file, np.uint64, "r", shape=(3, count))
        return [entries] if count else []

    def merge_levels(self, is_live: Callable[[np.ndarray], np.ndarray]) -> None:
        """Merge levels of about the same size, without entries of files that are no longer there.

        Large levels are not merged. One after the other is swept, each after as many rows were added
        as it has: the cost follows what is added, and so does the number of entries without a file.

        Args:
            is_live: returns which of some file numbers the table has.
        """
        by_size: dict[int, list[np.ndarray]] = {}
        for each in self._levels:
            by_size.setdefault(each.shape[1].bit_length() // 3, []).append(each)
        for _, levels in sorted(by_size.items()):
            levels.sort(key=lambda each: each.shape[1])
            ends = np.cumsum([each.shape[1] for each in levels])
            fitting = int(np.searchsorted(ends, _MOST_ROWS, "right"))
            if len(levels) >= _MOST_OF_A_SIZE and fitting > 1:
                self._replace(levels[:fitting], is_live)
        oldest = self._levels[0] if self._levels else None  # what is replaced goes to the end
        if oldest is not None and self._unswept >= oldest.shape[1]:
            self._unswept -= oldest.shape[1]
            self._replace([oldest], is_live)

    def _replace(
        self, levels: Sequence[np.ndarray], is_live: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        gone = {id(each) for each in levels}
        self._levels = [each for each in self._levels if id(each) not in gone]
        merged = np.concatenate(levels, axis=1) if len(levels) > 1 else levels[0]
        live = is_live(merged[_PLACE] >> _ROW_BITS)
        is_same = len(levels) == 1 and live.all()
        self._levels += levels if is_same else self._level(merged[:, live])

    def find(self, hashes: Hashes) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of all entries of keys, in order, and for each the index of its key.

        `rows_by_file` reads the places.
        """
        order = np.argsort(hashes[0])  # searched in order, each page of a level is read once
        high, low = (each[order] for each in hashes)
        found, of = [np.array([], np.uint64)], [np.array([], np.int64)]
        for level in self._levels:
            first = np.searchsorted(level[_HIGH], high)
            keys = np.flatnonzero(level[_HIGH].take(first, mode="clip") == high)  # most levels have few
            if len(keys):
                # Entries with one first half follow each other.
                first = first[keys]
                counts = np.searchsorted(level[_HIGH], high[keys], side="right") - first
                keys = np.repeat(keys, counts)
                skipped = np.repeat(np.cumsum(counts) - counts, counts)
                at = np.repeat(first, counts) + np.arange(len(keys)) - skipped
                is_same = level[_LOW][at] == low[keys]
                found.append(level[_PLACE][at[is_same]])
                of.append(order[keys[is_same]])
        places, keys = np.concatenate(found), np.concatenate(of)
        order = np.argsort(places)
        return places[order], keys[order]


def distinct(hashes: Hashes) -> np.ndarray:
    """Return the place of the last row with each hash."""
    order = np.lexsort((hashes[1], hashes[0]))
    high, low = hashes[0][order], hashes[1][order]
    is_last = np.ones(len(order), bool)
    is_last[:-1] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return np.sort(order[is_last])


def rows_by_file(places: np.ndarray) -> Iterable[tuple[int, np.ndarray, slice]]:
    """Yield the number of each file, its rows, and where they are in `places`, which is sorted."""
    files = places >> _ROW_BITS
    bounds = [0, *(np.flatnonzero(files[1:] != files[:-1]) + 1).tolist(), len(places)]
    for first, end in pairwise(bounds if len(places) else []):
        yield int(files[first]), places[first:end] & _ROW, slice(first, end)
