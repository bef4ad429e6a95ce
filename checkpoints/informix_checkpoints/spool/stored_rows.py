"""Convert stored rows into delivered rows.

Rule: independent of shapes: dictionaries are decoded, the runs of the last column are expanded into its
fields, and the schema's metadata lists the delivered columns in order. Written by
`capture_client/informix_capture_client/shapes/stored_form.py`; rows of several tables by
`grouped_form.py` in the same package. This module handles both formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from informix_checkpoints.spool.arrow_pieces import arrow_pieces
from informix_checkpoints.spool.delivered_tables import (
    DeliveredTables,
    without_codes,
    without_idle_bitmap,
)
from informix_checkpoints.spool.groups import (
    Int64Array,
    changes_in,
    is_delivered_as_arrow,
    is_group,
    part_of_group,
    transactions_of_group,
)

_DELIVERED = b"informix_cdc.delivered"  # a name in files, not a module
_COMMIT = "_commit_version"


def in_row_form(batch: pa.RecordBatch, schema: pa.Schema | None = None) -> pa.RecordBatch:
    """Return the rows of a stored batch as delivered, in one batch.

    Args:
        batch: as stored, or a part of it.
        schema: of delivered rows, which a group does not contain, as it names only its own tables; a
            table may have more columns than when the batch was stored.
    """
    if is_group(batch):
        return DeliveredTables(_required(schema)).whole(batch)
    names = json.loads(batch.schema.metadata[_DELIVERED])
    *rows, runs = batch.columns
    columns = dict(zip(batch.schema.names, map(without_codes, rows), strict=False))
    columns |= _expanded(runs)
    if schema is None or schema.names == names:
        return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)
    # The table has other columns by now: those that came later are NULL, those that went are left out.
    late = {field.name: pa.nulls(batch.num_rows, field.type) for field in schema}
    found = {**late, **columns}
    return pa.RecordBatch.from_arrays([found[name] for name in schema.names], schema=schema)


def _expanded(runs: pa.RunEndEncodedArray) -> Iterator[tuple[str, pa.Array]]:
    """Yield the fields of runs of structs, one value for each row.

    PyArrow's `run_end_decode` has no structs before 26.
    """
    rows = np.arange(runs.offset, runs.offset + len(runs))
    places = pa.array(np.searchsorted(runs.run_ends.to_numpy(), rows, side="right"))
    for field, values in zip(runs.values.type, runs.values.flatten(), strict=True):
        yield field.name, without_idle_bitmap(values.take(places))


def delivered(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of stored batches as delivered; groups in small batches."""
    tables: DeliveredTables | None = None
    for batch in batches:
        if is_group(batch) and is_delivered_as_arrow(batch):
            yield from arrow_pieces(batch, _required(schema))
        elif is_group(batch):
            tables = tables or DeliveredTables(_required(schema))
            yield from tables.pieces(batch)
        else:
            yield in_row_form(batch, schema)


def _required(schema: pa.Schema | None) -> pa.Schema:
    if schema is None:
        raise ValueError("rows of several tables are delivered by a schema that names them all")
    return schema


def row_count(batch: pa.RecordBatch) -> int:
    """Return the number of rows in a stored batch."""
    return changes_in(batch) if is_group(batch) else int(batch.num_rows)


def part(batch: pa.RecordBatch, first: int, end: int) -> pa.RecordBatch:
    """Return some rows of a stored batch, in stored form."""
    if not is_group(batch):
        return batch.slice(first, end - first)
    return part_of_group(batch, first, end)


class TransactionRows(NamedTuple):
    """The COMMTX sequence numbers of transactions, and the number of rows of each."""

    commits: Int64Array
    counts: Int64Array


def transaction_rows(batches: Iterable[pa.RecordBatch]) -> TransactionRows:
    """Return the transactions of stored batches; one that spans two of them is one."""
    parts = [_runs(batch) for batch in batches]
    if not parts:
        return TransactionRows(np.zeros(0, np.int64), np.zeros(0, np.int64))
    commits = np.concatenate([part.commits for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    firsts = np.flatnonzero(np.diff(commits, prepend=commits[:1] - 1))
    return TransactionRows(commits[firsts], np.add.reduceat(counts, firsts))


def commits(batch: pa.RecordBatch) -> Int64Array:
    """Return the COMMTX sequence number of every row of a stored batch."""
    return np.repeat(*_runs(batch))


def _runs(batch: pa.RecordBatch) -> TransactionRows:
    """Return the runs of a batch; a slice of one shares its run ends with the whole."""
    if is_group(batch):
        return TransactionRows(*transactions_of_group(batch))
    runs = batch.columns[-1]
    first, end = runs.find_physical_offset(), runs.find_physical_offset() + runs.find_physical_length()
    ends = np.clip(runs.run_ends.to_numpy()[first:end].astype(np.int64) - runs.offset, 0, len(runs))
    values = runs.values.field(_COMMIT).to_numpy()[first:end]
    return TransactionRows(values, np.diff(ends, prepend=0))
