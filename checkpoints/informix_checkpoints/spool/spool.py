"""The folder of a stream seen as a log: append at the end, read between positions, trim at the front.

Rule: one writer, the capture thread; readers of the same process ask it for ranges, executors read
the files. `append` returns after the commit point, so whoever sees the new end finds its rows.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pyarrow as pa

from informix_capture_client.errors import AccessRefused, DataLoss
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import SPOOL_FOLDER_MADE_AGAIN
from informix_capture_client.positions import Position, show
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.spool.batch_ends import end_of_batch
from informix_checkpoints.spool.copies import Copies, NoCopies
from informix_checkpoints.spool.durable_files import REMOVED, disk_errors, reading_errors
from informix_checkpoints.spool.manifest import Manifest, load_manifest, save_manifest
from informix_checkpoints.spool.segments import (
    Segment,
    SegmentRange,
    is_intact,
    rows_between,
    transactions_of,
    write_segment,
)
from informix_checkpoints.spool.writer_lock import WriterLock

logger = logging.getLogger("informix_cdc.checkpoints.spool")  # a name in logs, not a module


class Spool:
    """A stream's rows between two positions, as segment files in one folder.

    Args:
        folder: created if missing; nothing else may live in it.
        stream, source: what the rows belong to; a folder of another stream is refused.
        start: everything that commits above it will be appended.
        rows: a digest of what decides how rows look; what was stored under another one is left.
        durable: whether the folder shall survive a crash of the machine (fsync).
        lock_wait_seconds: how long to wait for a former writer to end.
        copies: where segments go besides the folder, before the manifest names them.
    """

    def __init__(
        self,
        folder: Path,
        stream: str,
        source: str,
        start: Position,
        *,
        durable: bool,
        rows: str = "",
        lock_wait_seconds: float = 10.0,
        copies: Copies | None = None,
    ) -> None:
        self._folder = folder
        self._copies = copies or NoCopies()
        self._durable = durable
        self._changing = threading.Lock()
        self._is_discarded = False
        self.has_lost_rows = False  # somebody has removed files: only a new spool helps
        with contextlib.ExitStack() as on_error, disk_errors(folder):
            self._lock = WriterLock(folder, lock_wait_seconds, durable=durable)
            on_error.callback(self.close)
            fresh = Manifest(stream, source, start, mark=start, rows=rows)
            recovered = self._recovered(fresh)
            self._lock.take_number(above=recovered.fence)
            self._manifest = replace(recovered, fence=self._lock.fence)
            self._remove_strangers()
            self._match_copies()
            on_error.pop_all()

    @property
    def folder(self) -> Path:
        """Where the segments are."""
        return self._folder

    @property
    def stream(self) -> str:
        """The stream's id."""
        return self._manifest.stream

    @property
    def source(self) -> str:
        """The digest of what the stream's positions belong to."""
        return self._manifest.source

    @property
    def start(self) -> Position:
        """The position above which everything is held."""
        return self._manifest.start

    @property
    def end(self) -> Position:
        """The position of the last transaction held."""
        return self._manifest.end

    @property
    def mark(self) -> Position:
        """The newest pair that is valid once everything held is delivered."""
        return self._manifest.mark

    @property
    def segment_count(self) -> int:
        """How many segments Spark has not yet let go of."""
        return len(self._manifest.segments)

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return sum(segment.rows for segment in self._manifest.segments)

    @property
    def size_bytes(self) -> int:
        """How many bytes the segments take."""
        return sum(segment.size_bytes for segment in self._manifest.segments)

    def append(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], position: Position
    ) -> Segment:
        """Add the rows of whole transactions; they exist once the manifest names them.

        Returns:
            What was added; a segment without rows is not kept.
        """
        with disk_errors(self._folder):
            with self._changing:
                self._make_again()
            name = f"{self._manifest.fence:06d}-{self._manifest.next_number:012d}.arrow"
            segment = write_segment(
                self._folder / name, schema, batches, position, durable=self._durable
            )
            if segment.rows:
                segment = self._copies.put(self._folder / name, segment)
            failpoint("spool.before_manifest")
            with self._changing:
                if segment.rows:
                    self._replace(self._manifest.appended(segment))
                else:  # nothing but truncates that the policy ignores
                    (self._folder / name).unlink()
                    self._manifest = replace(self._manifest, mark=position)
        return segment

    def note(self, position: Position) -> None:
        """Remember a newer valid pair; it reaches the disk with the next segment."""
        with self._changing:
            self._manifest = replace(self._manifest, mark=position)

    def between(self, after: int, upto: int) -> list[SegmentRange]:
        """Return where the rows with `after` < commit <= `upto` lie.

        Raises:
            DataLoss: the spool does not hold the whole range.
            AccessRefused: a segment is damaged, or was removed.
        """
        held = self._manifest
        if after < held.start.commit or upto > held.mark.commit:
            raise DataLoss(
                f"the spool holds commits above {show(held.start.commit)} up to"
                f" {show(held.mark.commit)}, not {show(after)} to {show(upto)}.",
                "Restart the query: the range is captured again.",
            )
        touched = [s for s in held.segments if s.last_commit > after and s.first_commit <= upto]
        self._require_files(touched)
        with reading_errors(self._folder):
            ranges = [rows_between(self._folder, segment, after, upto) for segment in touched]
        return [wanted for wanted in ranges if wanted.first < wanted.end]

    def end_of_batch(self, start: Position, limits: BatchLimits) -> Position:
        """Return how far a batch that begins at `start` may go; `start` itself if nothing is new."""
        held = self._manifest
        if limits.are_none:
            return held.end if held.end.commit > start.commit else start
        with reading_errors(self._folder):
            return end_of_batch(
                held, start, limits, lambda segment: transactions_of(self._folder, segment)
            )

    def bytes_above(self, commit: int) -> int:
        """Return the size of the segments that hold something above a commit."""
        size_bytes = 0
        for segment in reversed(self._manifest.segments):  # what Spark has taken lies in front
            if segment.last_commit <= commit:
                break
            size_bytes += segment.size_bytes
        return size_bytes

    def trim(self, commit: int) -> None:
        """Let go of what Spark will not ask for again."""
        with self._changing, disk_errors(self._folder):
            kept, gone = self._manifest.trimmed(commit)
            if not gone or self._is_discarded:
                return
            self._make_again(kept)
            self._replace(replace(kept, fence=self._manifest.fence))
        failpoint("spool.before_unlink")
        for segment in gone:
            (self._folder / segment.file).unlink(missing_ok=True)
        self._copies.remove(gone)

    def close(self) -> None:
        """Let the next writer in."""
        self._lock.release()

    def discard(self) -> None:
        """Remove the folder and everything in it: nobody will ask for this stream again."""
        with self._changing:
            self._is_discarded = True
            self._copies.remove(self._manifest.segments)
            shutil.rmtree(self._folder, ignore_errors=True)
        self.close()

    def _make_again(self, manifest: Manifest | None = None) -> None:
        """Take a private folder again that somebody has removed, if no rows went with it.

        Cleaners of temporary files do so after some days without a change. A folder under spoolPath is
        left alone: somebody may have moved it. `manifest` is what is still wanted, if not all.
        """
        if self._durable or self._lock.is_in_place:
            return
        wanted = manifest or self._manifest
        self._require_files(wanted.segments)
        self._lock.release()
        self._lock = WriterLock(self._folder, 0)
        self._lock.take_number(above=wanted.fence)
        self._manifest = replace(self._manifest, fence=self._lock.fence)
        SPOOL_FOLDER_MADE_AGAIN.log(logger, stream=self.stream, spool=self._folder)

    def _require_files(self, segments: Iterable[Segment]) -> None:
        """Refuse to go on without rows that Spark may ask for.

        Raises:
            AccessRefused: files of a private folder are gone; a restart captures them again.
        """
        if self._durable or all((self._folder / segment.file).exists() for segment in segments):
            return
        self.has_lost_rows = True
        raise AccessRefused(
            f"the spool {self._folder} was removed, or segments of it, with rows that Spark has not"
            " taken.",
            REMOVED,
            is_temporary=True,
            folder=str(self._folder),
        )

    def _replace(self, manifest: Manifest) -> None:
        self._lock.require_ours()
        save_manifest(manifest, self._folder, durable=self._durable)
        self._manifest = manifest

    def _recovered(self, fresh: Manifest) -> Manifest:
        """Return what a former writer left, as far as it serves, or start afresh."""
        former = load_manifest(self._folder)
        if former is None:
            return fresh
        if (former.stream, former.source) != (fresh.stream, fresh.source):
            raise DataLoss(
                f"{self._folder} belongs to stream {former.stream} of source {former.source},"
                f" not to {fresh.stream} of {fresh.source}.",
                "Give this query a spoolPath of its own.",
            )
        # Of a segment that was added last the name may be lost with the power, and not the manifest.
        intact = takewhile(lambda segment: is_intact(self._folder, segment), former.segments)
        held = former.beginning(sum(1 for _ in intact))
        reaches = held.start.commit <= fresh.start.commit <= held.end.commit
        if reaches and held.rows == fresh.rows:
            return _with_later_restart(held, fresh.start)
        return replace(fresh, fence=former.fence, next_number=former.next_number)

    def _remove_strangers(self) -> None:
        known = {segment.file for segment in self._manifest.segments}
        for path in self._folder.glob("*.arrow"):
            if path.name not in known:
                path.unlink()

    def _match_copies(self) -> None:
        """Make copies those of the segments held; what they hold is known before anybody reads them."""
        copied = self._copies.match(self._folder, self._manifest.segments)
        if copied != self._manifest.segments:
            self._replace(replace(self._manifest, segments=copied))


def _with_later_restart(held: Manifest, start: Position) -> Manifest:
    """Return a manifest whose mark begins no earlier than where Spark says that a session may.

    `note` does not write, so that the mark on the disk may lie in a log that is gone by now. Whatever
    commits above the mark commits above `start` too, so that its restart is valid for both.
    """
    if start.restart <= held.mark.restart:
        return held
    return replace(held, mark=replace(held.mark, restart=start.restart, unseen=start.unseen))
