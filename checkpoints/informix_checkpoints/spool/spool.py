"""The spool of a stream as a log: append at the end, read between positions, trim at the front.

Rule: one writer, the capture thread. Readers in the same process request ranges; executors read the
files. `append` returns after the commit point, so a reader that knows the new end finds its rows.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pyarrow as pa

from informix_capture_client.errors import AccessRefused, DataLoss
from informix_capture_client.failpoints import failpoint
from informix_capture_client.log_events import SPOOL_FOLDER_MADE_AGAIN
from informix_capture_client.positions import Position, RecordPlace
from informix_checkpoints.spool.copies import Copies, NoCopies
from informix_checkpoints.spool.durable_files import REMOVED, disk_errors
from informix_checkpoints.spool.manifest import Epoch, Manifest
from informix_checkpoints.spool.manifest_files import (
    JOURNALS,
    append_segment,
    journal_of,
    load_manifest,
    read_manifest,
    save_manifest,
)
from informix_checkpoints.spool.segments import (
    Segment,
    is_intact,
    write_segment,
)
from informix_checkpoints.spool.stored_stream import StoredStream
from informix_checkpoints.spool.writer_lock import WriterLock
from informix_checkpoints.table_states import ChangedStates, Tables, listed

logger = logging.getLogger("informix_cdc.checkpoints.spool")  # a name in logs, not a module


class Spool(StoredStream):
    """A stream's rows between two positions, as segment files in one folder.

    Args:
        folder: created if missing; it must contain nothing else.
        stream, source: the owner of the rows; a folder of another stream is rejected.
        start, tables: the position after which all commits will be appended, and the table states
            there.
        captured: the tables whose rows are delivered; stored rows with others are discarded. None: all.
        altering: tables that leave the stream and return to it for an ALTER; stored rows remain.
        rows: a digest of the row format; rows stored in another one are discarded.
        durable: whether the folder must survive a crash of the host (fsync).
        lock_wait_seconds: how long to wait for a previous writer to end.
        copies: of segments, written before the manifest names them.
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
        tables: Tables | None = None,
        captured: Collection[str] | None = None,
        altering: Collection[str] = (),
        left: Mapping[str, int] | None = None,
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
            known, gone = tables or {}, left or {}
            fresh = Manifest(stream, source, start, start, rows=rows, tables=known, left=gone)
            recovered = self._recovered(fresh, captured, altering)
            self._lock.take_number(above=recovered.fence)
            self._manifest = replace(recovered, fence=self._lock.fence)
            self._journal: Path | None = None  # of the manifest that this writer has written last
            self._remove_strangers()
            self._copies.match(folder, self._manifest.segments)
            on_error.pop_all()

    @property
    def folder(self) -> Path:
        """The folder of the segments."""
        return self._folder

    @property
    def manifest(self) -> Manifest:
        """The current manifest, as a value: read it once if several facts must be consistent."""
        return self._manifest

    def append(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], position: Position
    ) -> Segment:
        """Append the rows of whole transactions; they are visible once the manifest names them.

        Returns:
            The new segment; a segment without rows is not stored.
        """
        here = self._manifest.in_stream(position)
        segment = self._written(schema, batches, here)
        with disk_errors(self._folder), self._changing:
            if segment.rows:
                self._add(segment)
            else:  # nothing but truncates that the policy ignores, or a table before it joined
                self._manifest = replace(self._manifest, high_watermark=here)
        return segment

    def append_chunk(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], tables: ChangedStates
    ) -> Segment:
        """Append the rows of a snapshot chunk, encoded for `Manifest.next_chunk`.

        They are visible once the manifest names them.

        Args:
            schema: of the batches.
            batches: the rows; empty if the chunk has no rows left.
            tables: the new state of its table.

        Returns:
            The new segment; a chunk without rows only starts an epoch.
        """
        after, _ = self._manifest.next_chunk()
        segment = self._written(schema, batches, after, chunk=after.chunk)
        with disk_errors(self._folder), self._changing:
            manifest = self._manifest
            if segment.rows:
                self._replace(manifest.with_chunk(segment, tables))
            else:  # an offset may name it, and then it has to be there after a death
                self._replace(
                    manifest.with_epoch(Epoch(manifest.high_watermark.behind_chunk(), tables))
                )
        return segment

    def change_tables(self, tables: ChangedStates, at: Position | None = None) -> None:
        """Let tables join or leave here; durable when this returns.

        Args:
            tables: the states of tables that join, None for those that leave.
            at: a position that is valid here for all tables; the current one by default.
        """
        with disk_errors(self._folder), self._changing:
            self._make_again()
            manifest = self._manifest
            here = manifest.in_stream(at or manifest.high_watermark).behind_chunk()
            self._replace(manifest.with_epoch(Epoch(here, tables, ends_batch=True)))

    def _written(
        self,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        position: Position,
        chunk: int = 0,
    ) -> Segment:
        """Write a segment that no manifest names yet; one without rows has no file."""
        with disk_errors(self._folder):
            with self._changing:
                self._make_again()
            name = f"{self._manifest.fence:06d}-{self._manifest.next_number:012d}.arrow"
            path = self._folder / name
            segment = write_segment(path, schema, batches, position, durable=self._durable, chunk=chunk)
            if segment.rows:
                self._copies.put(path, segment)
            else:
                path.unlink()
            failpoint("spool.before_manifest")
        return segment

    def store(self) -> None:
        """Write the manifest for readers in other processes, unless they know all of it.

        A later restart position alone is published elsewhere (`Manifest.with_restart_of`), and the list
        of segments may be long.
        """
        with disk_errors(self._folder), self._changing:
            if self._journal is None or self._manifest.high_watermark.place != self._stored_place:
                self._replace(self._manifest)

    def advance(self, position: Position) -> None:
        """Advance the high watermark in memory; it is written with the next segment."""
        with self._changing:
            self._manifest = replace(self._manifest, high_watermark=self._manifest.in_stream(position))

    def trim(self, up_to: RecordPlace) -> None:
        """Remove the segments that Spark does not request again."""
        with self._changing, disk_errors(self._folder):
            kept, gone = self._manifest.trimmed(up_to)
            if kept is self._manifest or self._is_discarded:
                return
            self._make_again(kept)
            self._replace(replace(kept, fence=self._manifest.fence))
        failpoint("spool.before_unlink")
        for segment in gone:
            (self._folder / segment.file).unlink(missing_ok=True)
        self._copies.remove(gone)

    def close(self) -> None:
        """Release the lock of the folder."""
        self._lock.release()

    def discard(self) -> None:
        """Remove the folder and its content: the stream is no longer needed."""
        with self._changing:
            self._is_discarded = True
            self._copies.remove(self._manifest.segments)
            shutil.rmtree(self._folder, ignore_errors=True)
        self.close()

    def _make_again(self, manifest: Manifest | None = None) -> None:
        """Create a private folder again that was removed, if no rows were lost with it.

        Cleaners of temporary files remove it after some days without a change. A folder under spoolPath
        is not created again: it may have been moved. `manifest` is the remaining content, if not all.
        """
        if self._durable or self._lock.is_in_place:
            return
        wanted = manifest or self._manifest
        self._require_files(wanted.segments)
        self._lock.release()
        self._lock = WriterLock(self._folder, 0)
        self._lock.take_number(above=wanted.fence)
        self._manifest, self._journal = replace(self._manifest, fence=self._lock.fence), None
        SPOOL_FOLDER_MADE_AGAIN.log(logger, stream=self.stream, spool=self._folder)

    def _require_files(self, segments: Iterable[Segment]) -> None:
        """Check that the rows that Spark may request still exist in a private folder.

        Raises:
            AccessRefused: files of a private folder were removed; a restart captures them again.
        """
        if self._durable or all((self._folder / segment.file).exists() for segment in segments):
            return
        self.has_lost_rows = True
        raise AccessRefused(
            f"the spool {self._folder} or segments of it were removed, with rows that Spark has not"
            " read.",
            REMOVED,
            is_temporary=True,
            folder=str(self._folder),
        )

    def _add(self, segment: Segment) -> None:
        """Make a segment of transactions part of the stream."""
        manifest = self._manifest.appended(segment)
        if self._journal is None:
            self._replace(manifest)
            return
        self._lock.require_ours()
        try:
            append_segment(segment, self._journal, durable=self._durable)
        except OSError:
            # A part of the line may be there, or all of it: nobody may continue this journal.
            self._journal = None
            self._manifest = replace(self._manifest, next_number=manifest.next_number)
            raise
        self._manifest, self._stored_place = manifest, manifest.high_watermark.place

    def _replace(self, manifest: Manifest) -> None:
        self._lock.require_ours()
        save_manifest(manifest, self._folder, durable=self._durable)
        self._manifest, self._stored_place = manifest, manifest.high_watermark.place
        former, self._journal = self._journal, journal_of(self._folder, manifest)
        if former is not None and former != self._journal:
            former.unlink(missing_ok=True)

    def _recovered(
        self, fresh: Manifest, captured: Collection[str] | None, altering: Collection[str]
    ) -> Manifest:
        """Return the usable part of a previous writer's manifest, or a new one."""
        previous = intact_manifest(self._folder)
        if previous is None:
            return fresh
        if (previous.stream, previous.source) != (fresh.stream, fresh.source):
            raise DataLoss(
                f"{self._folder} belongs to stream {previous.stream} of source {previous.source},"
                f" not to {fresh.stream} of {fresh.source}.",
                "Use a separate spoolPath for this query.",
            )
        manifest = previous.before_leaving(fresh.start, set(captured or ()) - set(altering))
        delivered = None if captured is None else {*captured, *altering}
        # A shared capture begins at its own high watermark, which may be behind the last rows.
        end = max(manifest.reached.place, manifest.high_watermark.place)
        reaches = manifest.start.place <= fresh.start.place <= end
        if reaches and manifest.rows == fresh.rows and _has_no_others(manifest, fresh.start, delivered):
            return _with_later_restart(manifest, fresh.start)
        return replace(fresh, fence=previous.fence, next_number=previous.next_number)

    def _remove_strangers(self) -> None:
        known = {segment.file for segment in self._manifest.segments}
        for path in self._folder.glob("*.arrow"):
            if path.name not in known:
                path.unlink()
        stored = read_manifest(self._folder)
        for path in self._folder.glob(JOURNALS):
            if stored is None or path != stored.journal:
                path.unlink()


def intact_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder up to its first segment that is missing or damaged.

    A power failure may lose the name of the last segment but not the manifest.
    """
    found = load_manifest(folder)
    if found is None:
        return None
    intact = takewhile(lambda segment: is_intact(folder, segment), found.segments)
    return found.beginning(sum(1 for _ in intact))


def _has_no_others(manifest: Manifest, start: Position, captured: Collection[str] | None) -> bool:
    """Return whether a manifest has only captured tables above a position."""
    later = (epoch.tables for epoch in manifest.epochs if epoch.position.chunk > start.chunk)
    known = set(manifest.tables_at(start)).union(*later)
    return captured is None or known <= set(captured)


def _with_later_restart(manifest: Manifest, start: Position) -> Manifest:
    """Return a manifest whose high watermark has a restart position at or after that of `start`.

    `advance` does not write, so the high watermark on disk may have a restart position in a log file
    that has been overwritten. Every transaction that commits above it commits above `start` too, so the
    later restart position is valid for both, unless a table has joined in between.
    """
    is_same = listed(manifest.tables_at(start)) == listed(manifest.tables_at(manifest.high_watermark))
    if start.restart <= manifest.high_watermark.restart or not is_same:
        return manifest
    return replace(
        manifest,
        high_watermark=replace(manifest.high_watermark, restart=start.restart, unseen=start.unseen),
    )
