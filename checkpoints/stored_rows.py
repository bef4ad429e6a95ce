"""Make delivered rows of stored ones.

Rule: generic over shapes: dictionaries are decoded, the runs of the last column are spread into its
fields, and the schema's metadata says which columns readers get, in which order. Written by
`capture_client/stored_form.py`.
"""

from __future__ import annotations

import json
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DELIVERED = b"informix_cdc.delivered"
_COMMIT = "_commit_version"


def delivered(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a stored batch as readers get them."""
    names = json.loads(batch.schema.metadata[_DELIVERED])
    *rows, runs = batch.columns
    shared = pc.run_end_decode(runs)
    columns = dict(zip(batch.schema.names, map(_plain, rows), strict=False))
    columns |= zip(shared.type.names, shared.flatten(), strict=True)
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def commits(batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the COMMTX sequence number of every row of a stored batch."""
    runs = batch.columns[-1]
    lengths = np.diff(runs.run_ends.to_numpy(), prepend=0)
    values = runs.values.field(_COMMIT).to_numpy()
    return cast("np.ndarray[tuple[int], np.dtype[np.int64]]", np.repeat(values, lengths))


def _plain(column: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(column.type):
        return column
    texts = column.dictionary_decode()
    if texts.null_count:
        return texts
    _, *buffers = texts.buffers()  # Arrow adds a bitmap that says nothing
    return pa.Array.from_buffers(texts.type, len(texts), [None, *buffers], 0, texts.offset)
