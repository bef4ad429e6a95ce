"""Build the delivered rows of groups in shape=arrow: each has changes of one table as an Arrow stream.

Rule: a table's changes keep their order, and a TRUNCATE starts a new row. The table's columns and its
definition are in the schema of its stream. `shapes/arrow_shape.py` of the client describes the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from informix_checkpoints.spool.delivered_tables import OpenedGroup, about, without_idle_bitmap
from informix_checkpoints.spool.groups import Int64Array, rows_at, table_numbers

DEFINITION = b"informix_cdc.definition"  # a name in streams, not a module
_ROW, _KIND, _TRUNCATE = "row", "_change_type", "truncate"
_MOST_CHANGES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Some changes of one table, in order."""

    table: str
    changes: pa.RecordBatch

    def delivered(self) -> dict[str, object]:
        """Return the delivered row, by column."""
        first, last = self.changes.slice(0, 1), self.changes.slice(len(self.changes) - 1)
        return {
            "_table": self.table,
            "_commit_version": first["_commit_version"][0],
            "_change_ordinal": first["_change_ordinal"][0],
            "_last_commit_version": last["_commit_version"][0],
            "_last_commit_timestamp": last["_commit_timestamp"][0],
            "_snapshot": first["_snapshot"][0],
            "truncates": first[_KIND][0].as_py() == _TRUNCATE,
            "changes": len(self.changes),
            "arrow": _serialized(self.changes),
        }


def arrow_pieces(group: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the delivered rows of a group, table by table.

    Args:
        group: as stored.
        schema: that of delivered rows.
    """
    opened = OpenedGroup.of(group)
    numbers = table_numbers(group)
    columns = about(opened, 0, len(numbers))
    for place, number in enumerate(opened.known.tables):
        mine = np.flatnonzero(numbers == number)
        if len(mine):
            changes = _changes(opened, place, columns, mine)
            pieces = [
                _Piece(opened.known.table_names[place], changes.slice(first, end - first)).delivered()
                for first, end in pairwise(_bounds(changes))
            ]
            yield pa.RecordBatch.from_pylist(pieces, schema=schema)


def _changes(
    group: OpenedGroup, place: int, columns: dict[str, pa.Array], mine: Int64Array
) -> pa.RecordBatch:
    """Return the changes of a table: metadata and row of each."""
    is_all = len(mine) == len(group.transactions)
    known = [
        columns[name] if is_all else without_idle_bitmap(columns[name].take(pa.array(mine)))
        for name in group.known.delivered
        if name is not None and name != _ROW
    ]
    rows, kinds = rows_at(group.batch, place), known[group.known.delivered.index(_KIND)]
    if len(rows) != len(mine):  # a TRUNCATE has none
        has_row = kinds.to_numpy(zero_copy_only=False) != _TRUNCATE
        rows = rows.take(pa.array(np.cumsum(has_row) - 1, mask=~has_row))
    definitions = group.known.definitions
    metadata = {DEFINITION: definitions[place].encode()} if definitions else None
    return pa.RecordBatch.from_arrays(
        [*known, rows],
        schema=pa.schema(
            [
                pa.field(str(name), values.type)
                for name, values in zip(group.known.delivered, [*known, rows], strict=True)
            ],
            metadata=metadata,
        ),
    )


def _bounds(changes: pa.RecordBatch) -> Sequence[int]:
    """Return the bounds of pieces: with a maximum number of changes, and TRUNCATE only at the start."""
    kinds = changes[_KIND].to_numpy(zero_copy_only=False)
    begins = {*range(0, len(changes), _MOST_CHANGES), *np.flatnonzero(kinds == _TRUNCATE).tolist()}
    return [*sorted(begins), len(changes)]


def _serialized(changes: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, changes.schema) as stream:
        stream.write_batch(changes)
    return bytes(sink.getvalue())
