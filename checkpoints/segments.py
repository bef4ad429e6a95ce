"""One segment: an Arrow IPC file of rows of whole transactions, in commit order.

Rule: a segment is written once and never changed. Readers map it into memory; a stretch of its rows
is named by file and row numbers, which is all that travels to an executor.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa

from informix_cdc.capture_client.errors import DataLoss
from informix_cdc.capture_client.failpoints import failpoint
from informix_cdc.capture_client.positions import Position
from informix_cdc.checkpoints.durable_files import ChecksummedFile, sync
from informix_cdc.checkpoints.stored_rows import TransactionRows, commits, delivered, transaction_rows

_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Segment:
    """What the manifest knows of a segment; `position` is valid once its rows are delivered."""

    file: str
    rows: int
    size_bytes: int
    checksum: int
    transactions: int
    first_commit: int
    position: Position

    @property
    def last_commit(self) -> int:
        """The COMMTX sequence number of its last transaction."""
        return self.position.commit


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """Rows `first` to `end` (exclusive) of a segment file, which must have `size_bytes`."""

    path: str
    first: int
    end: int
    size_bytes: int


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
) -> Segment:
    """Write rows into a new file and return its description; nothing refers to it yet."""
    with path.open("wb", buffering=_BUFFER_BYTES) as file:
        sink = ChecksummedFile(file)
        with pa.PythonFile(sink, "w") as output, pa.ipc.new_file(output, schema) as writer:
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
    )


def _write_all(writer: pa.RecordBatchWriter, batches: Iterable[pa.RecordBatch]) -> _Written:
    rows, transactions, first_commit, last_commit = 0, 0, 0, -1
    for batch in batches:
        writer.write_batch(batch)
        if batch.num_rows == 0:
            continue
        found = transaction_rows([batch])
        first_commit = first_commit if rows else int(found.commits[0])
        transactions += len(found.commits) - int(found.commits[0] == last_commit)
        last_commit = int(found.commits[-1])
        rows += batch.num_rows
    return _Written(rows, transactions, first_commit)


def is_intact(folder: Path, segment: Segment) -> bool:
    """Tell whether a segment's file is there with the bytes that were written."""
    checksum, size_bytes = 0, 0
    try:
        with (folder / segment.file).open("rb") as file:
            while piece := file.read(_BUFFER_BYTES):
                checksum, size_bytes = zlib.crc32(piece, checksum), size_bytes + len(piece)
    except FileNotFoundError:
        return False
    return (size_bytes, checksum) == (segment.size_bytes, segment.checksum)


def rows_between(folder: Path, segment: Segment, after: int, upto: int) -> SegmentRange:
    """Return the rows of a segment with `after` < commit <= `upto`."""
    first, end = 0, segment.rows
    if after >= segment.first_commit or upto < segment.last_commit:
        commits = _commits(folder / segment.file)
        first, end = np.searchsorted(commits, [after, upto], side="right").tolist()
    return SegmentRange(str(folder / segment.file), first, end, segment.size_bytes)


def _commits(path: Path) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        parts = [commits(reader.get_batch(n)) for n in range(reader.num_record_batches)]
        return cast("np.ndarray[tuple[int], np.dtype[np.int64]]", np.concatenate(parts))


def transactions_of(path: Path) -> TransactionRows:
    """Return the transactions of a segment's file with their numbers of rows."""
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        return transaction_rows(reader.get_batch(n) for n in range(reader.num_record_batches))


def read_range(wanted: SegmentRange) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range; asking again yields them again.

    Raises:
        DataLoss: the file is gone or is not the one that was written.
    """
    path = Path(wanted.path)
    if not path.exists() or path.stat().st_size != wanted.size_bytes:
        raise DataLoss(
            f"spool segment {path} is missing or cut on this host.",
            "Set option spoolPath to a folder that the driver and every executor mount.",
        )
    reader = pa.ipc.open_file(pa.memory_map(wanted.path))
    at = 0
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        first, end = max(wanted.first - at, 0), min(wanted.end - at, batch.num_rows)
        at += batch.num_rows
        if first < end:
            yield delivered(batch.slice(first, end - first))
