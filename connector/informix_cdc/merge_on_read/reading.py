"""The data files of a version of a Delta table, and the rows that are deleted in them."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from informix_cdc.merge_on_read.log import TableLog
from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.vectors import DamagedVector, Descriptor, file_of, rows_of

_FRAME_BYTES = 8  # of size and checksum


def files_at(place: TablePlace, version: int) -> Iterator[tuple[str, BitMap64]]:
    """Yield the path of each data file, as in the log, and its deleted rows.

    Raises:
        FileNotFoundError: the log no longer has the version.
        DamagedVector: a vector is not as its descriptor says.
    """
    for path, added in TableLog(place).at(version).files.items():
        vector = added.get("deletionVector")
        yield path, BitMap64() if vector is None else read_vector(place, vector)


def read_vector(place: TablePlace, descriptor: Descriptor) -> BitMap64:
    """Return the rows in a vector.

    Raises:
        DamagedVector: its bytes are not those of the descriptor.
    """
    content = b""
    if name := file_of(descriptor):
        first = int(descriptor.get("offset", 0))
        with place.files.open_input_file(name) as file:
            if first > file.size():
                raise DamagedVector(f"{name} is cut off")
            file.seek(first)
            content = bytes(file.read(int(descriptor["sizeInBytes"]) + _FRAME_BYTES))
    return rows_of(descriptor, content)


def in_table_schema(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    """Return rows with the columns of a table, in its order and types; missing columns are NULL."""
    columns = [
        rows.column(each.name).cast(each.type)
        if each.name in rows.column_names
        else pa.nulls(len(rows), each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def rows_left(place: TablePlace, path: str, gone: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a data file without deleted ones.

    Args:
        place: of the table.
        path: of the file, as in the log.
        gone: the deleted rows, as `BitMap64.serialize` returns them.
        schema: of the table.
    """
    deleted, first = np.array(BitMap64.deserialize(gone), np.int64), 0
    with pq.ParquetFile(unquote(path), filesystem=place.files) as file:
        for batch in file.iter_batches():
            low, high = np.searchsorted(deleted, (first, first + len(batch)))
            stays = np.ones(len(batch), bool)
            stays[deleted[low:high] - first] = False
            first += len(batch)
            rows = pa.Table.from_batches([batch.filter(pa.array(stays))])
            yield from in_table_schema(schema, rows).to_batches()


def rows_at(place: TablePlace, path: str, places: np.ndarray, schema: pa.Schema) -> pa.Table:
    """Return some rows of a data file; only the row groups that have them are read.

    Args:
        place: of the table.
        path: of the file, as in the log.
        places: of the rows, sorted.
        schema: of the table.
    """
    found, first = [schema.empty_table()], 0
    with pq.ParquetFile(unquote(path), filesystem=place.files) as file:
        for number in range(file.metadata.num_row_groups):
            end = first + file.metadata.row_group(number).num_rows
            low, high = np.searchsorted(places, (first, end))
            if low < high:
                group = in_table_schema(schema, file.read_row_group(number))
                found.append(group.take(pa.array(places[low:high] - first)))
            first = end
    return pa.concat_tables(found)
