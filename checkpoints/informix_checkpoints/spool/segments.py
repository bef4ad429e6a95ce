"""A segment: an Arrow IPC file with rows of whole transactions, in commit order.

Rule: a segment is written once and never changed. Readers map it into memory. A range of its rows is
described by file and row numbers, which is all that is sent to an executor, and by the size and
checksum of the written file: another file of that name is rejected.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from informix_capture_client.errors import AccessRefused, DataLoss
from informix_capture_client.failpoints import failpoint
from informix_capture_client.positions import Position, RecordPlace, show
from informix_checkpoints.spool.durable_files import ChecksummedFile, new_file, sync
from informix_checkpoints.spool.stored_rows import (
    TransactionRows,
    commits,
    part,
    row_count,
    transaction_rows,
)

_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Segment:
    """The manifest's entry of a segment; `position` is valid once its rows are delivered.

    `copy_bytes` and `copy_checksum` describe its copy for executors, 0 without a copy. `chunk` is the
    number of its snapshot chunk, 0 if it has transactions; a chunk is never split.
    """

    file: str
    rows: int
    size_bytes: int
    checksum: int
    transactions: int
    first_commit: int
    position: Position
    copy_bytes: int = 0
    copy_checksum: int = 0
    chunk: int = 0

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
    """Rows `first` to `end` (exclusive) of a segment file with `rows` rows, and its identity."""

    path: str
    first: int
    end: int
    rows: int
    size_bytes: int
    checksum: int
    copy_bytes: int = 0
    copy_checksum: int = 0

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
    """A transaction of which a batch in real-time mode has delivered the first rows, and all before it.

    Attributes:
        commit: its COMMTX sequence number.
        rows: how many of its rows.
    """

    commit: int
    rows: int


@dataclass(frozen=True, slots=True)
class _Written:
    rows: int
    transactions: int
    first_commit: int


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
        chunk=chunk,
    )


@contextlib.contextmanager
def _arrow_writer(
    sink: ChecksummedFile, schema: pa.Schema, options: pa.ipc.IpcWriteOptions | None = None
) -> Iterator[pa.RecordBatchWriter]:
    # Arrow writes each buffer of a column by itself: thousands, if there are many tables.
    gathered = pa.BufferedOutputStream(pa.PythonFile(sink, "w"), _BUFFER_BYTES)
    with gathered as output, pa.ipc.new_file(output, schema, options=options) as writer:
        yield writer


def write_compressed(path: Path, segment: Segment, file: BinaryIO) -> Segment:
    """Write a compressed copy of a segment; return the segment with size and checksum of the copy.

    Buffers are compressed separately, so that the copy can be read batch by batch.

    Raises:
        AccessRefused: the segment's file does not exist, or differs from what was written.
    """
    sink = ChecksummedFile(file)
    reader = pa.ipc.open_file(_sound(path, segment))
    with _arrow_writer(sink, reader.schema, pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for number in range(reader.num_record_batches):
            writer.write_batch(reader.get_batch(number))
    return replace(segment, copy_bytes=sink.size_bytes, copy_checksum=sink.checksum)


def _write_all(writer: pa.RecordBatchWriter, batches: Iterable[pa.RecordBatch]) -> _Written:
    rows, transactions, first_commit, last_commit = 0, 0, 0, -1
    for batch in batches:
        writer.write_batch(batch)
        count = row_count(batch)
        if count == 0:
            continue
        found = transaction_rows([batch])
        first_commit = first_commit if rows else int(found.commits[0])
        transactions += len(found.commits) - int(found.commits[0] == last_commit)
        last_commit = int(found.commits[-1])
        rows += count
    return _Written(rows, transactions, first_commit)


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
        found = np.concatenate([commits(batch) for batch in _batches(folder, segment)])
        first, end = np.searchsorted(found, [after, up_to], side="right").tolist()
    return SegmentRange(
        str(folder / segment.file),
        first,
        end,
        segment.rows,
        segment.size_bytes,
        segment.checksum,
        segment.copy_bytes,
        segment.copy_checksum,
    )


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
                f"{cut.rows} rows of the transaction at {show(cut.commit)} were delivered, but the"
                f" spool has {found.counts[number]}.",
                "The options or the table's rows have changed since: restore them, or use a new"
                " checkpoint.",
            )
        first += cut.rows
    return wanted.part(max(wanted.first, first), wanted.end)


def transactions_of(folder: Path, segment: Segment) -> TransactionRows:
    """Return the transactions of a segment with their numbers of rows.

    Raises:
        AccessRefused: the file does not exist, or differs from what was written.
    """
    return transaction_rows(_batches(folder, segment))


def _batches(folder: Path, segment: Segment) -> Iterator[pa.RecordBatch]:
    reader = pa.ipc.open_file(_sound(folder / segment.file, segment))
    return (reader.get_batch(number) for number in range(reader.num_record_batches))


def stored_range(wanted: SegmentRange) -> Iterator[pa.RecordBatch]:
    """Return the stored rows of a range from the file; can be called again.

    Raises:
        AccessRefused: the file does not exist, or differs from what was written.
    """
    return rows_in(_sound(Path(wanted.path), wanted), wanted)


def _sound(path: Path, described: _Described) -> pa.MemoryMappedFile:
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


def rows_in(source: pa.NativeFile, wanted: SegmentRange) -> Iterator[pa.RecordBatch]:
    """Return the stored rows of a range from its opened segment.

    Raises:
        OtherBytes: Arrow cannot read it: it has changed since it was verified.
    """
    with _arrow_errors(wanted):  # now: another place may still have the rows
        reader = pa.ipc.open_file(source)
    return _cut(reader, wanted)


def _cut(reader: pa.RecordBatchFileReader, wanted: SegmentRange) -> Iterator[pa.RecordBatch]:
    at = 0
    for number in range(reader.num_record_batches):
        with _arrow_errors(wanted):
            batch = reader.get_batch(number)
            count = row_count(batch)
        first, end = max(wanted.first - at, 0), min(wanted.end - at, count)
        at += count
        if first < end:
            yield batch if end - first == count else part(batch, first, end)


@contextlib.contextmanager
def _arrow_errors(wanted: SegmentRange) -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as reason:
        raise OtherBytes(f"{wanted.file} is not a valid segment: {reason}.", _CAPTURED_AGAIN) from None
