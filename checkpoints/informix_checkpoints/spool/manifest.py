"""The list of segments and positions of one stream.

Rule: a manifest is a value; `manifest_files.py` writes it, which is the commit point. A segment that it
does not list does not exist: an unlisted segment file was written by a process that crashed before.

    start -> segment -> segment -> ... -> end, and `high_watermark`: a position after the end

A snapshot chunk, with or without rows, and tables that join or leave start a new epoch of the stream.
Each has a number, and the states of its tables from there on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from informix_capture_client.positions import Position, RecordPlace
from informix_checkpoints.spool.segments import Segment
from informix_checkpoints.table_states import ChangedStates, Tables, changed


@dataclass(frozen=True, slots=True)
class Epoch:
    """A step of the stream that is not a transaction; `position` is after a chunk or a table change.

    Attributes:
        tables: the new states of the affected tables.
        ends_batch: whether tables join or leave here, so that a batch must end here.
    """

    position: Position
    tables: ChangedStates
    ends_batch: bool = False


_NOWHERE: RecordPlace = (-1, 0)


class AboveAPlace(NamedTuple):
    """How many segments, rows and bytes are above a place."""

    segments: int
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a spool: all commits above `start` and up to `end` are in `segments`.

    `rows` is a digest of the options that determine the rows; `fence` is the number of the writer that
    wrote the manifest: each new writer has a higher number.

    Attributes:
        tables: the states of the tables at `start`.
        left: the tables that had left the stream at `start`, with the commit.
        epochs: those after `start`.
        chunk_commit, chunk_rows: of the last chunk with rows, the version of its rows, and the number
            of rows that chunks have with this version.
    """

    stream: str
    source: str
    start: Position
    high_watermark: Position
    rows: str = ""
    fence: int = 0
    segments: tuple[Segment, ...] = field(default=())
    next_number: int = 0
    tables: Tables = field(default_factory=dict)
    epochs: tuple[Epoch, ...] = field(default=())
    chunk_commit: int = 0
    chunk_rows: int = 0
    left: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Totals answer how much waits for a reader whatever the number of segments.
        if self.segments and not self.segments[-1].total_rows:
            object.__setattr__(self, "segments", _totalled(self.segments, 0, 0))

    @property
    def end(self) -> Position:
        """The position of the last rows, or of a later table change."""
        ends = [self.start, *(s.position for s in self.segments[-1:])]
        return max([*ends, *(epoch.position for epoch in self.changes[-1:])], key=_place)

    @property
    def reached(self) -> Position:
        """The position of the last rows or of the last epoch; a chunk without rows starts one too."""
        return max([self.end, *(epoch.position for epoch in self.epochs[-1:])], key=_place)

    @property
    def changes(self) -> tuple[Epoch, ...]:
        """The epochs in which tables join or leave."""
        return tuple(epoch for epoch in self.epochs if epoch.ends_batch)

    @property
    def size_bytes(self) -> int:
        """The total bytes of the segments."""
        return self.waiting_above(_NOWHERE).size_bytes

    @property
    def row_count(self) -> int:
        """The number of rows in all segments."""
        return self.waiting_above(_NOWHERE).rows

    @property
    def present_tables(self) -> Tables:
        """The states of the tables once all segments are delivered."""
        return self.tables_at(self.high_watermark)

    @property
    def present_left(self) -> Mapping[str, int]:
        """The tables that have left the stream and not rejoined, with the commit."""
        return self.left_at(self.high_watermark)

    def tables_at(self, position: Position) -> Tables:
        """Return the states of the tables at a position."""
        tables = self.tables
        for epoch in self.epochs:
            if epoch.position.chunk <= position.chunk:
                tables = changed(tables, epoch.tables)
        return tables

    def left_at(self, position: Position) -> dict[str, int]:
        """Return the tables that have left and not rejoined at a position, with the commit."""
        left = dict(self.left)
        for epoch in self.epochs:
            if epoch.position.chunk <= position.chunk:
                for name, state in epoch.tables.items():
                    left.pop(name, None)
                    if state is None:
                        left[name] = epoch.position.commit
        return left

    def before_leaving(self, start: Position, captured: Collection[str]) -> Manifest:
        """Return the manifest up to where a captured table left the stream after `start`.

        A checkpoint at `start` still has the table; changes captured without it are captured again,
        unless the table has joined again since.
        """
        for number, epoch in enumerate(self.epochs):
            later = {name for each in self.epochs[number + 1 :] for name in each.tables}
            leaving = {name for name, state in epoch.tables.items() if state is None} - later
            if epoch.position.chunk > start.chunk and leaving & set(captured):
                chunk = epoch.position.chunk
                segments = tuple(s for s in self.segments if s.position.chunk < chunk)
                high_watermark = replace(epoch.position, chunk=chunk - 1)
                return replace(
                    self, segments=segments, epochs=self.epochs[:number], high_watermark=high_watermark
                )
        return self

    def in_stream(self, position: Position) -> Position:
        """Convert a position of the log into one of the stream, which may have passed chunks there.

        A chunk's version is above every commit before it; after the chunk, {C, R} is also valid with
        that version as C.
        """
        commit = max(position.commit, self.high_watermark.commit)
        return replace(position, commit=commit, chunk=self.high_watermark.chunk)

    def next_chunk(self) -> tuple[Position, int]:
        """Return the position after the next chunk, and how many rows already have its version.

        The version is above the last commit and below the next: records are longer than a byte. A
        second chunk at the same place has the same one.
        """
        is_same = self.high_watermark.commit == self.chunk_commit
        commit = self.chunk_commit if is_same else self.high_watermark.commit + 1
        after = replace(self.high_watermark.behind_chunk(), commit=commit)
        return after, self.chunk_rows if is_same else 0

    def with_epoch(self, epoch: Epoch) -> Manifest:
        """Return the manifest with one more epoch, without rows."""
        return replace(self, epochs=(*self.epochs, epoch), high_watermark=epoch.position)

    def with_chunk(self, segment: Segment, tables: ChangedStates) -> Manifest:
        """Return the manifest with one more chunk."""
        rows = self.next_chunk()[1] + segment.rows
        changed_here = self.appended(segment).with_epoch(Epoch(segment.position, tables))
        return replace(changed_here, chunk_commit=segment.last_commit, chunk_rows=rows)

    def appended(self, *segments: Segment) -> Manifest:
        """Return the manifest with more segments."""
        last = self.segments[-1] if self.segments else None
        before = (last.total_rows, last.total_bytes) if last else (0, 0)
        return replace(
            self,
            segments=(*self.segments, *_totalled(segments, *before)),
            high_watermark=segments[-1].position if segments else self.high_watermark,
            next_number=self.next_number + len(segments),
        )

    def segments_above(self, place: RecordPlace) -> tuple[Segment, ...]:
        """Return the segments with rows above a place."""
        return self.segments[bisect_right(self.segments, place, key=_place_of) :]

    def waiting_above(self, place: RecordPlace) -> AboveAPlace:
        """Return what waits in the segments with rows above a place."""
        first = bisect_right(self.segments, place, key=_place_of)
        if first == len(self.segments):
            return AboveAPlace(0, 0, 0)
        one, last = self.segments[first], self.segments[-1]
        rows = last.total_rows - one.total_rows + one.rows
        size_bytes = last.total_bytes - one.total_bytes + one.size_bytes
        return AboveAPlace(len(self.segments) - first, rows, size_bytes)

    def with_restart_of(self, published: Position) -> Manifest:
        """Return the manifest with a later restart position that is known for its high watermark."""
        here = self.high_watermark
        if published.place != here.place or published.restart <= here.restart:
            return self
        return replace(self, high_watermark=published)

    def beginning(self, count: int) -> Manifest:
        """Return the manifest with only its first `count` segments."""
        if count == len(self.segments):
            return self
        segments = self.segments[:count]
        end = segments[-1].position if segments else self.start
        epochs = tuple(epoch for epoch in self.epochs if epoch.position.chunk <= end.chunk)
        return replace(self, segments=segments, epochs=epochs, high_watermark=end)

    def trimmed(self, up_to: RecordPlace) -> tuple[Manifest, tuple[Segment, ...]]:
        """Return the manifest without the segments at or below a place, and those segments."""
        gone = self.segments[: bisect_right(self.segments, up_to, key=_place_of)]
        passed = [epoch.position for epoch in self.epochs if epoch.position.place <= up_to]
        if not gone and not passed:
            return self, ()
        start = max([*passed, *(s.position for s in gone[-1:])], key=_place)
        left = tuple(epoch for epoch in self.epochs if epoch.position.chunk > start.chunk)
        kept = self.segments[len(gone) :]
        tables, departed = self.tables_at(start), self.left_at(start)
        trimmed = replace(self, start=start, tables=tables, left=departed, epochs=left, segments=kept)
        return trimmed, gone


def _totalled(segments: Sequence[Segment], rows: int, size_bytes: int) -> tuple[Segment, ...]:
    """Return segments with their totals, after others with these."""
    found = []
    for segment in segments:
        rows, size_bytes = rows + segment.rows, size_bytes + segment.size_bytes
        found.append(replace(segment, total_rows=rows, total_bytes=size_bytes))
    return tuple(found)


def _place(position: Position) -> RecordPlace:
    return position.place


def _place_of(segment: Segment) -> RecordPlace:
    return segment.place
