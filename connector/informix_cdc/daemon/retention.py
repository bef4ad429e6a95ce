"""Up to which place a shared capture removes stored rows.

Rule: rows that a registered reader needs are kept, and rows that nobody has read too, until they are
too old or too many; then the slowest readers are left behind.

Age is measured by a monotonic clock while the process runs. A wall clock that is set forward must not
remove rows, and one that is set back must not keep them for ever: of a segment from before the start
only the time that has certainly passed is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from informix_capture_client.positions import RecordPlace
from informix_checkpoints.readers import ReaderState
from informix_checkpoints.spool import Manifest, Segment


@dataclass(slots=True)
class Retention:
    """How long rows are kept that a reader has not read.

    Args:
        seconds: the maximum age of rows; 0: no limit.
        size_bytes: the maximum size of all rows; 0: no limit.
        clock: a monotonic clock.
        wall: UNIX time, as in the modification times of files.
    """

    seconds: float = 0.0
    size_bytes: int = 0
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _written_at: dict[str, float] = field(default_factory=dict)  # by file, by the monotonic clock
    _left_at: dict[Path, float] = field(default_factory=dict)  # the same of streams after a data loss
    _stream: str = ""
    _has_seen_rows: bool = False  # those from before the start, which are found first
    _has_seen_left: bool = False

    def removable(
        self, folder: Path, manifest: Manifest, readers: Iterable[ReaderState]
    ) -> RecordPlace:
        """Return the place up to which rows are removed; the start of the manifest if none are.

        Args:
            folder: of the stream.
            manifest: of the stream.
            readers: all that are registered.
        """
        start = manifest.start.place
        done = [each.done if each.stream == manifest.stream else start for each in readers]
        read = min(done, default=start)
        return max(read, start, self._too_old(folder, manifest), self._too_many(manifest))

    def too_old_streams(self, folders: Sequence[Path]) -> set[Path]:
        """Return which streams were left longer ago than the limit.

        Args:
            folders: of all streams that were left after a data loss.
        """
        is_first, self._has_seen_left = not self._has_seen_left, True
        for folder in folders:
            if folder not in self._left_at:
                age = self._age(folder) if is_first else 0.0
                self._left_at[folder] = self.clock() - age
        limit = self.clock() - self.seconds
        return {each for each in folders if self.seconds and self._left_at[each] <= limit}

    def _too_old(self, folder: Path, manifest: Manifest) -> RecordPlace:
        """Return the place of the last rows that are older than the limit."""
        self._record_ages(folder, manifest)
        place = manifest.start.place
        if not self.seconds:
            return place
        limit = self.clock() - self.seconds
        for segment in manifest.segments:  # in the order in which they were written
            if self._written_at[segment.file] > limit:
                break
            place = segment.place
        return place

    def _record_ages(self, folder: Path, manifest: Manifest) -> None:
        """Record when segments were written; only what is new is looked at, however many there are."""
        is_first, self._has_seen_rows = not self._has_seen_rows, True
        if self._stream != manifest.stream:  # whose files may have the same names
            self._stream, self._written_at = manifest.stream, {}
        if len(self._written_at) > 2 * len(manifest.segments):
            present = {segment.file for segment in manifest.segments}
            for gone in self._written_at.keys() - present:
                del self._written_at[gone]
        for segment in takewhile(self._is_new, reversed(manifest.segments)):
            age = self._age(folder / segment.file) if is_first else 0.0
            self._written_at[segment.file] = self.clock() - age

    def _is_new(self, segment: Segment) -> bool:
        return segment.file not in self._written_at

    def _age(self, path: Path) -> float:
        try:
            return max(0.0, self.wall() - path.stat().st_mtime)
        except FileNotFoundError:
            return 0.0

    def _too_many(self, manifest: Manifest) -> RecordPlace:
        """Return the place above which the rows are within the limit of bytes."""
        place, excess = manifest.start.place, manifest.size_bytes - self.size_bytes
        if not self.size_bytes:
            return place
        for segment in manifest.segments:
            if excess <= 0:
                break
            place, excess = segment.place, excess - segment.size_bytes
        return place
