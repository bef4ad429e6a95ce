"""The stored rows of a stream, as a reader sees them: a manifest, and the ranges of its segments.

Rule: it only reads. The writer is `Spool`; another process reads the same folder with `SharedSpool`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import Position, RecordPlace, show
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.spool.batch_ends import end_of_batch
from informix_checkpoints.spool.durable_files import reading_errors
from informix_checkpoints.spool.manifest import Manifest
from informix_checkpoints.spool.segments import (
    CutTransaction,
    Segment,
    SegmentRange,
    Truncate,
    first_truncate,
    rows_after_cut,
    rows_between,
    transactions_of,
)


class StoredStream(ABC):
    """The segments of one stream in a folder."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The folder of the segments."""

    @property
    @abstractmethod
    def manifest(self) -> Manifest:
        """The current manifest, as a value: read it once if several facts must be consistent."""

    @property
    def stream(self) -> str:
        """The stream's id."""
        return self.manifest.stream

    def between(
        self, after: RecordPlace, up_to: RecordPlace, cut: CutTransaction | None = None
    ) -> list[SegmentRange]:
        """Return the ranges of the rows above `after` and at or below `up_to`.

        Args:
            after: the place of the rows before.
            up_to: the place of the last rows.
            cut: what was delivered above `after` already; a snapshot chunk is delivered again.

        Raises:
            DataLoss: the spool does not contain the whole range.
            AccessRefused: a segment is corrupt, or was removed.
        """
        manifest = self.manifest
        if after < manifest.start.place or up_to > manifest.high_watermark.place:
            raise DataLoss(
                f"the spool contains commits above {_shown(manifest.start.place)} up to"
                f" {_shown(manifest.high_watermark.place)}, not {_shown(after)} to {_shown(up_to)}.",
                "Restart the query: the range is captured again.",
            )
        touched = [s for s in manifest.segments_above(after) if s.first_place <= up_to]
        self._require_files(touched)
        with reading_errors(self.folder):
            ranges = [rows_between(self.folder, s, after[0], up_to[0]) for s in touched]
            if cut is not None:
                ranges = [
                    rows_after_cut(wanted, self.folder, s, cut)
                    for wanted, s in zip(ranges, touched, strict=True)
                ]
        return [wanted for wanted in ranges if wanted.first < wanted.end]

    def end_of_batch(self, start: Position, limits: BatchLimits) -> Position:
        """Return the end of a batch that begins at `start`; `start` itself if there is nothing new.

        Raises:
            DataLoss: the next transaction has a TRUNCATE, and the limits end before it.
        """
        manifest = self.manifest
        refused = self._first_truncate(manifest, start) if limits.until_truncate else None
        if limits.are_none and refused is None and not manifest.epochs:
            return manifest.end if manifest.end.place > start.place else start
        with reading_errors(self.folder):
            transactions = partial(transactions_of, self.folder)
            end = end_of_batch(manifest, start, limits, transactions, refused)
        if refused is not None and end.place == start.place:
            raise DataLoss(
                f"table {refused.table} was truncated by the transaction that committed at"
                f" {show(refused.commit)}.",
                "Set option truncate to emit (a row on which the sink empties the table's copy, as"
                " examples/upsert.py does) or to ignore, and start again.",
                sequence_number=refused.sequence_number,
            )
        return end

    def _first_truncate(self, manifest: Manifest, start: Position) -> Truncate | None:
        """Return the first TRUNCATE above a position; those that begin snapshots are none."""
        with reading_errors(self.folder):
            above = manifest.segments_above(start.place)
            having = (each for each in above if each.truncates and not each.chunk)
            found = (first_truncate(self.folder, each, start.commit) for each in having)
            return next((each for each in found if each is not None), None)

    def bytes_above(self, place: RecordPlace) -> int:
        """Return the size of the segments with rows above a place."""
        return self.manifest.waiting_above(place).size_bytes

    def _require_files(self, segments: Iterable[Segment]) -> None:  # noqa: B027 - one class needs it
        """Check that the files of a range are there; otherwise reading them shows it."""


def _shown(place: RecordPlace) -> str:
    commit, chunk = place
    return f"{show(commit)}, chunk {chunk}," if chunk else show(commit)
