"""A segment: an Arrow IPC file with the changes of whole transactions, in commit order.

Rule: a segment is written once and never changed. Readers map it into memory. A range of its changes is
described by file and numbers, which is all that is sent to an executor, and by the size and checksum of
the written file: another file of that name is rejected. Places, limits and sizes count stored changes,
not the rows that a reader makes of them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.errors import AccessRefused, DataLoss
from informix_capture_client.failpoints import failpoint
from informix_capture_client.positions import Position, RecordPlace, show
from informix_capture_client.shapes import (
    AFTER,
    BEFORE,
    TRUNCATE,
    ChangeGroup,
    change_count,
    transaction_counts,
)
from informix_checkpoints.spool.durable_files import ChecksummedFile, new_file, sync

_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Segment:
    """The manifest's entry of a segment; `position` is valid once its rows are delivered.

    `rows` counts changes, of which `truncates` are TRUNCATEs. `chunk` is the number of its snapshot
    chunk, 0 if it has transactions; a chunk is never split. `total_rows` and `total_bytes` are of all
    segments of a manifest up to this one, also of those that were trimmed; they are not in its file.
    """

    file: str
    rows: int
    size_bytes: int
    checksum: int
    transactions: int
    first_commit: int
    position: Position
    chunk: int = 0
    truncates: int = 0
    total_rows: int = field(default=0, compare=False)
    total_bytes: int = field(default=0, compare=False)

    @property
    def first_place(self) -> RecordPlace:
        """The place of its first rows."""
        return self.first_commit, self.position.chunk

    @property
    def place(self) -> RecordPlace:
        """The place of its last rows."""
        return self.position.place

    @property
    def last_commit(self) -> int:
        """The COMMTX sequence number of its last transaction."""
        return self.position.commit


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """Changes `first` to `end` (exclusive) of a segment file with `rows` changes, and its identity."""

    path: str
    first: int
    end: int
    rows: int
    size_bytes: int
    checksum: int

    @property
    def file(self) -> str:
        """The name of the file in its folder."""
        return Path(self.path).name

    @property
    def estimated_bytes(self) -> float:
        """Its share of the file's bytes, assuming rows of equal size."""
        return self.size_bytes * (self.end - self.first) / self.rows

    def part(self, first: int, end: int) -> SegmentRange:
        """Return a range of the same segment."""
        return replace(self, first=first, end=end)


class CutTransaction(NamedTuple):
    """A transaction within which a batch in real-time mode has ended; all before it are delivered.

    Attributes:
        commit: its COMMTX sequence number.
        rows: how many of its changes are delivered.
    """

    commit: int
    rows: int


class Transactions(NamedTuple):
    """The COMMTX sequence numbers of transactions, and the number of changes of each."""

    commits: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Written:
    rows: int
    transactions: int
    first_commit: int
    truncates: int


def write_segment(
    path: Path,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    position: Position,
    *,
    durable: bool,
    chunk: int = 0,
) -> Segment:
    """Write rows into a new file and return its entry for the manifest."""
    with new_file(path, _BUFFER_BYTES) as file:
        sink = ChecksummedFile(file)
        with _arrow_writer(sink, schema) as writer:
            written = _write_all(writer, batches)
        failpoint("segment.before_sync")
        if durable:
            sync(file)
    return Segment(
        path.name,
        written.rows,
        sink.size_bytes,
        sink.checksum,
        written.transactions,
        written.first_commit,
        position,
        chunk,
        written.truncates,
    )


@contextlib.contextmanager
def _arrow_writer(sink: ChecksummedFile, schema: pa.Schema) -> Iterator[pa.RecordBatchWriter]:
    # Arrow writes each buffer of a column by itself: thousands, if there are many tables.
    gathered = pa.BufferedOutputStream(pa.PythonFile(sink, "w"), _BUFFER_BYTES)
    with gathered as output, pa.ipc.new_file(output, schema) as writer:
        yield writer


def _write_all(writer: pa.RecordBatchWriter, batches: Iterable[pa.RecordBatch]) -> _Written:
    rows, transactions, first_commit, last_commit, truncates = 0, 0, 0, -1, 0
    for batch in batches:
        writer.write_batch(batch)
        group = ChangeGroup.of(batch)
        if not len(group):
            continue
        commits, _ = transaction_counts(batch)
        first_commit = first_commit if rows else int(commits[0])
        transactions += len(commits) - int(commits[0] == last_commit)
        last_commit = int(commits[-1])
        truncates += int(np.count_nonzero(group.kinds == TRUNCATE))
        rows += len(group)
    return _Written(rows, transactions, first_commit, truncates)


def is_intact(folder: Path, segment: Segment) -> bool:
    """Return whether a segment's file exists with the written bytes."""
    path = folder / segment.file
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(facts.st_mode) or facts.st_size != segment.size_bytes:
        return False
    return _checksum_of_file(path, facts) == segment.checksum


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def checksum_of(file: _Readable) -> int:
    """Return the checksum of the rest of a file, with bounded memory."""
    checksum = 0
    while piece := file.read(_BUFFER_BYTES):
        checksum = zlib.crc32(piece, checksum)
    return checksum


class OtherBytes(AccessRefused):
    """A segment's file exists, but differs from what was written."""


class _Described(Protocol):
    """A description of the bytes that a file must have."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def checksum(self) -> int: ...


def rows_between(folder: Path, segment: Segment, after: int, up_to: int) -> SegmentRange:
    """Return the rows of a segment with `after` < commit <= `up_to`, or all rows of a chunk.

    Raises:
        AccessRefused: the file does not exist, or differs from what was written.
    """
    first, end = 0, segment.rows
    is_part = after >= segment.first_commit or up_to < segment.last_commit
    if is_part and not segment.chunk:
        found = transactions_of(folder, segment)
        ends = np.append(0, np.cumsum(found.counts))
        first, end = ends[np.searchsorted(found.commits, [after, up_to], side="right")].tolist()
    path = str(folder / segment.file)
    return SegmentRange(path, first, end, segment.rows, segment.size_bytes, segment.checksum)


def rows_after_cut(
    wanted: SegmentRange, folder: Path, segment: Segment, cut: CutTransaction
) -> SegmentRange:
    """Return the part of a range that a cut leaves: without the rows that were delivered before it.

    Raises:
        DataLoss: the segment has the transaction with fewer rows.
        AccessRefused: the file does not exist, or differs from what was written.
    """
    if segment.chunk or segment.first_commit > cut.commit:
        return wanted
    found = transactions_of(folder, segment)
    number = int(np.searchsorted(found.commits, cut.commit))
    first = int(found.counts[:number].sum())
    if number < len(found.commits) and found.commits[number] == cut.commit:
        if found.counts[number] < cut.rows:
            raise DataLoss(
                f"{cut.rows} changes of the transaction at {show(cut.commit)} were delivered, but the"
                f" spool has {found.counts[number]}.",
                "The captured tables have changed since: restore option table, or use a new"
                " checkpoint.",
            )
        first += cut.rows
    return wanted.part(max(wanted.first, first), wanted.end)


def transactions_of(folder: Path, segment: Segment) -> Transactions:
    """Return the transactions of a segment; one that spans two groups is one.

    Raises:
        AccessRefused: the file does not exist, or differs from what was written.
    """
    parts = [transaction_counts(batch) for batch in _batches(folder, segment)]
    commits = np.concatenate([commits for commits, _ in parts])
    counts = np.concatenate([counts for _, counts in parts])
    firsts = np.flatnonzero(np.diff(commits, prepend=commits[:1] - 1))
    return Transactions(commits[firsts], np.add.reduceat(counts, firsts))


class Truncate(NamedTuple):
    """A TRUNCATE in a segment: its table, as database:owner.table, its commit and its own number."""

    table: str
    commit: int
    sequence_number: int


def first_truncate(folder: Path, segment: Segment, after: int) -> Truncate | None:
    """Return the first TRUNCATE of a segment that commits above `after`.

    Raises:
        AccessRefused: the file does not exist, or differs from what was written.
    """
    for batch in _batches(folder, segment):
        group = ChangeGroup.of(batch)
        found = np.flatnonzero(group.kinds == TRUNCATE)
        commits = group.column("_commit_version", found).to_numpy()
        for place, commit in zip(found.tolist(), commits.tolist(), strict=True):
            if commit > after:
                (number,) = group.column("_change_seq", np.array([place])).to_pylist()
                return Truncate(group.tables[group.places[place]], commit, number or commit)
    return None


def _batches(folder: Path, segment: Segment) -> Iterator[pa.RecordBatch]:
    reader = pa.ipc.open_file(sound(folder / segment.file, segment))
    return (reader.get_batch(number) for number in range(reader.num_record_batches))


def stored_range(wanted: SegmentRange, *, whole_updates: bool = False) -> Iterator[pa.RecordBatch]:
    """Return the stored changes of a range from the file; can be called again.

    Args:
        wanted: the range.
        whole_updates: whether an update that the range cuts belongs to it with both images, if it has
            the second one, or with none; for shapes in which an update is one row.

    Raises:
        AccessRefused: the file does not exist, or differs from what was written.
    """
    return changes_in(sound(Path(wanted.path), wanted), wanted, whole_updates=whole_updates)


def sound(path: Path, described: _Described) -> pa.MemoryMappedFile:
    """Map a file into memory after verifying its checksum.

    Arrow does not check what it maps: a flipped bit is another value, or a read beyond the file. So
    every byte is checked, once per process and again after a change, even by a program that restores
    the previous modification time: 0.05 µs of CPU per row of ten columns, compared to 0.16 for reading
    it (decision 0010).
    """
    try:
        facts = path.lstat()
        if not stat.S_ISREG(facts.st_mode):
            raise OtherBytes(f"{path} is a link, or not a file.", _CAPTURED_AGAIN)
        if facts.st_size != described.size_bytes:
            told = f"has {facts.st_size} bytes instead of {described.size_bytes}"
            raise OtherBytes(f"{path} {told}.", _CAPTURED_AGAIN)
        if _checksum_of_file(path, facts) != described.checksum:
            raise OtherBytes(f"{path} differs from what was written.", _CAPTURED_AGAIN)
        return pa.memory_map(str(path))
    except OSError as reason:
        raise AccessRefused(f"{path}: {reason.strerror or reason}.") from None


_CAPTURED_AGAIN = "Start the query again: changes that the server's log still has are captured again."


def _checksum_of_file(path: Path, facts: os.stat_result) -> int:
    return _file_checksum(str(path), facts.st_ino, facts.st_ctime_ns, facts.st_size)


@functools.lru_cache(maxsize=1 << 14)  # a process that captures for readers checks all twice
def _file_checksum(path: str, _inode: int, _changed_ns: int, _size_bytes: int) -> int:
    with pa.memory_map(path) as source:
        return zlib.crc32(memoryview(source.read_buffer()))


def changes_in(
    source: pa.NativeFile, wanted: SegmentRange, *, whole_updates: bool
) -> Iterator[pa.RecordBatch]:
    """Return the stored changes of a range from its opened segment, as `stored_range` does.

    Raises:
        OtherBytes: Arrow cannot read it: it has changed since it was verified.
    """
    with _arrow_errors(wanted):  # now: another place may still have the rows
        reader = pa.ipc.open_file(source)
    return _cut(reader, wanted, whole_updates)


def _cut(
    reader: pa.RecordBatchFileReader, wanted: SegmentRange, whole_updates: bool
) -> Iterator[pa.RecordBatch]:
    at = 0
    for number in range(reader.num_record_batches):
        if at >= wanted.end:
            return
        with _arrow_errors(wanted):
            batch = reader.get_batch(number)
            count = change_count(batch)
        first, end = max(wanted.first - at, 0), min(wanted.end - at, count)
        at += count
        if end - first == count:
            yield batch
        elif first < end:
            group = ChangeGroup.of(batch)
            if whole_updates:
                first -= int(group.kinds[first] == AFTER)
                end -= int(group.kinds[end - 1] == BEFORE)
            if first < end:
                yield group.part(first, end)


@contextlib.contextmanager
def _arrow_errors(wanted: SegmentRange) -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as reason:
        raise OtherBytes(f"{wanted.file} is not a valid segment: {reason}.", _CAPTURED_AGAIN) from None
