"""Batches that do not fit in memory: a transaction is one batch, however large it is.

Rule: rows wait in files on a local disk, and are mapped, so that the system may drop them from memory.
The changes of a table are split by their keys, because those of one key decide its row.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from informix_cdc.lake.table_changes import TableChanges
from informix_cdc.merge_on_read import hashes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LARGE_BYTES = 256 << 20  # of a batch, or of the changes of a table in it
_PART_BYTES = 64 << 20  # of a table's changes that are in memory at a time
_ALIGNED = 64  # bytes, as Arrow's buffers: they are not copied then
_SEED = 5  # of the hashes that split keys; those of an index are others


def collected(
    batch: DataFrame, folder: Path, min_partitions: int, partition_bytes: int
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a micro-batch; those of a large one wait in a file.

    Args:
        batch: of shape=arrow.
        folder: on a local disk.
        min_partitions: option minPartitions.
        partition_bytes: approximate number of spool bytes that a task reads.
    """
    # The public DataFrame.rdd takes 26 ms.
    partitions = batch._jdf.queryExecution().toRdd().getNumPartitions()
    if partitions > min_partitions and partitions * partition_bytes > LARGE_BYTES:
        rows = (row.asDict() for row in batch.toLocalIterator())  # one partition after the other
        return mapped(rows, folder)
    return delivered_rows(batch.toArrow())


def delivered_rows(batch: pa.Table) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a micro-batch; change streams are not copied."""
    streams = batch.column("arrow")
    for row, stream in zip(batch.drop_columns("arrow").to_pylist(), streams, strict=True):
        yield {**row, "arrow": stream.as_buffer()}


def mapped(rows: Iterable[Mapping[str, Any]], folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield delivered rows whose change streams are in a mapped file, which has no name."""
    found, bounds = list[Mapping[str, Any]](), list[tuple[int, int]]()
    with _file(folder) as file:
        for row in rows:
            first = file.tell()
            file.write(row["arrow"])
            bounds.append((first, file.tell() - first))
            file.write(bytes(-file.tell() % _ALIGNED))
            found.append({**row, "arrow": b""})
        whole = _mapped(file)
    for row, (first, length) in zip(found, bounds, strict=True):
        yield {**row, "arrow": whole.slice(first, length)}


def parts_by_key(changes: TableChanges, key: Sequence[str], folder: Path) -> Iterator[TableChanges]:
    """Yield changes in parts, each with all changes of some keys, in order.

    Args:
        changes: of rows only, without TRUNCATEs.
        key: the columns that identify a row.
        folder: on a local disk.
    """
    count = -(-changes.nbytes // _PART_BYTES)
    about, rows = changes.about.schema, changes.rows.schema
    schema = pa.schema([("about", pa.struct(list(about))), ("row", pa.struct(list(rows)))])
    with ExitStack() as files:
        parts = [files.enter_context(_file(folder)) for _ in range(count)]
        with ExitStack() as streams:
            writers = [streams.enter_context(pa.ipc.new_stream(each, schema)) for each in parts]
            for batch in _batches(changes, schema):
                keys = pa.Table.from_batches([pa.RecordBatch.from_struct_array(batch["row"])])
                (high, _), _ = hashes_of(keys.select(list(key)), _SEED)
                numbers = (high % np.uint64(count)).astype(np.int64)
                order = np.argsort(numbers, kind="stable")
                bounds = np.searchsorted(numbers[order], np.arange(count + 1))
                for number, writer in enumerate(writers):
                    places = order[bounds[number] : bounds[number + 1]]
                    if len(places):
                        writer.write_batch(batch.take(pa.array(places)))
        buffers = [_mapped(each) for each in parts]
    for buffer in buffers:
        part = pa.ipc.open_stream(buffer).read_all()
        if len(part):
            yield replace(
                changes,
                about=_flat(part.column("about"), about),
                rows=_flat(part.column("row"), rows),
                is_snapshot=False,
            )


def _batches(changes: TableChanges, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield changes and their metadata, without a copy."""
    most = max(len(changes) * _PART_BYTES // max(changes.nbytes, 1) // 4, 1)
    for first in range(0, len(changes), most):
        both = [
            pa.StructArray.from_arrays(
                [column.combine_chunks() for column in each.slice(first, most).columns],
                fields=list(each.schema),
            )
            for each in (changes.about, changes.rows)
        ]
        yield pa.RecordBatch.from_arrays(both, schema=schema)


def _flat(column: pa.ChunkedArray, schema: pa.Schema) -> pa.Table:
    parts = [pa.RecordBatch.from_struct_array(chunk) for chunk in column.chunks]
    return pa.Table.from_batches(parts).cast(schema).combine_chunks()


def _file(folder: Path) -> IO[bytes]:
    """Return a file that nobody else sees, and that is gone when it is no longer used."""
    folder.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryFile(dir=folder)


def _mapped(file: IO[bytes]) -> pa.Buffer:
    file.flush()
    is_empty = not file.tell()
    return pa.py_buffer(b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
