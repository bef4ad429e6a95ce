"""Make delivered rows of stored ones.

Rule: generic over shapes: dictionaries are decoded, the runs of the last column are spread into its
fields, and the schema's metadata says which columns readers get, in which order. Written by
`capture_client/informix_capture_client/shapes/stored_form.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DELIVERED = b"informix_cdc.delivered"  # a name in files, not a module
_COMMIT = "_commit_version"
Integers = np.ndarray[tuple[int], np.dtype[np.int64]]


def in_row_form(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a stored batch as readers get them."""
    names = json.loads(batch.schema.metadata[_DELIVERED])
    *rows, runs = batch.columns
    shared = pc.run_end_decode(runs)
    columns = dict(zip(batch.schema.names, map(_plain, rows), strict=False))
    columns |= zip(shared.type.names, shared.flatten(), strict=True)
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


class TransactionRows(NamedTuple):
    """The COMMTX sequence numbers of transactions, and how many rows each has."""

    commits: Integers
    counts: Integers


def transaction_rows(batches: Iterable[pa.RecordBatch]) -> TransactionRows:
    """Return the transactions of stored batches; one that spans two of them is one."""
    parts = [_runs(batch) for batch in batches]
    if not parts:
        return TransactionRows(np.zeros(0, np.int64), np.zeros(0, np.int64))
    commits = np.concatenate([part.commits for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    firsts = np.flatnonzero(np.diff(commits, prepend=commits[:1] - 1))
    return TransactionRows(commits[firsts], np.add.reduceat(counts, firsts))


def commits(batch: pa.RecordBatch) -> Integers:
    """Return the COMMTX sequence number of every row of a stored batch."""
    return np.repeat(*_runs(batch))


def _runs(batch: pa.RecordBatch) -> TransactionRows:
    """Return the runs of a batch; a slice of one shares its run ends with the whole."""
    runs = batch.columns[-1]
    first, end = runs.find_physical_offset(), runs.find_physical_offset() + runs.find_physical_length()
    ends = np.clip(runs.run_ends.to_numpy()[first:end].astype(np.int64) - runs.offset, 0, len(runs))
    values = runs.values.field(_COMMIT).to_numpy()[first:end]
    return TransactionRows(values, np.diff(ends, prepend=0))


def _plain(column: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(column.type):
        return column
    texts = column.dictionary_decode()
    if texts.null_count:
        return texts
    _, *buffers = texts.buffers()  # Arrow adds a bitmap that says nothing
    return pa.Array.from_buffers(texts.type, len(texts), [None, *buffers], 0, texts.offset)
