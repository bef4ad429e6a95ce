"""The arrow shape, for any number of tables: a row has typed changes of one table, as Arrow.

Rule: the delivered schema is the same for every set of tables; a table's columns and its definition are
in the schema of the Arrow stream with its changes. They keep their order, and a TRUNCATE starts a row.

    _table                    database:owner.table
    _commit_version           of the first change, and its index among the changes of that transaction:
    _change_ordinal           the rows of a table are applied in this order
    _last_commit_version      of the last change
    _last_commit_timestamp
    _snapshot                 whether all changes are snapshot rows
    truncates                 whether the first change is a TRUNCATE; the others never are
    changes                   the number of changes; an update has two, before and after
    arrow                     an Arrow IPC stream: metadata of each change, and `row`, a struct of the
                              table's columns, NULL for a TRUNCATE
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.choices import RowForm
from informix_capture_client.records import Integers
from informix_capture_client.shapes.metadata import METADATA, metadata_columns
from informix_capture_client.shapes.row_shape import DeliveredTable, delivered_changes
from informix_capture_client.shapes.stored_changes import TRUNCATE, ChangeGroup

DEFINITION = b"informix_cdc.definition"  # a name in streams, not a module
_MOST_CHANGES = 1 << 16
_ALWAYS = ("_change_type", "_commit_version", "_commit_timestamp", "_change_ordinal", "_snapshot")
_SCHEMA = pa.schema(
    [
        ("_table", pa.string()),
        ("_commit_version", pa.int64()),
        ("_change_ordinal", pa.int32()),
        ("_last_commit_version", pa.int64()),
        ("_last_commit_timestamp", pa.timestamp("us", "UTC")),
        ("_snapshot", pa.bool_()),
        ("truncates", pa.bool_()),
        ("changes", pa.int32()),
        ("arrow", pa.binary()),
    ]
)


def arrow_schema(_tables: Sequence[DeliveredTable], _form: RowForm) -> pa.Schema:
    """Return the schema of shape=arrow."""
    return _SCHEMA


class ArrowShape:
    """Makes rows of `schema`, which is that of `arrow_schema`."""

    def __init__(self, form: RowForm, schema: pa.Schema) -> None:
        self._form, self._schema = form, schema
        every = [name for name in METADATA.names if name != "_table"]
        self._metadata = every if form.metadata == "full" else [n for n in every if n in _ALWAYS]

    def batches(self, group: ChangeGroup) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a group, table by table."""
        chosen = delivered_changes(group, self._form)
        for place, mine in group.by_table(chosen):
            changes = self._changes(group, place, chosen[mine])
            bounds = _bounds(group.kinds[chosen[mine]])
            rows = [
                _row(group.tables[place], changes.slice(first, end - first))
                for first, end in pairwise(bounds)
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=self._schema)

    def _changes(self, group: ChangeGroup, place: int, mine: Integers) -> pa.RecordBatch:
        """Return changes of a table: metadata and row of each."""
        has_row = group.kinds[mine] != TRUNCATE
        rows = group.rows_of(place, mine[has_row])
        if len(rows) != len(mine):
            rows = rows.take(pa.array(np.cumsum(has_row) - 1, mask=~has_row))
        about = metadata_columns(group, mine, self._metadata)
        definition = group.definitions[place].encode() if group.definitions else None
        fields = [METADATA.field(name) for name in self._metadata]
        schema = pa.schema(
            [*fields, ("row", rows.type)],
            metadata=None if definition is None else {DEFINITION: definition},
        )
        return pa.RecordBatch.from_arrays([*about, rows], schema=schema)


def _row(table: str, changes: pa.RecordBatch) -> dict[str, object]:
    first, last = changes.slice(0, 1), changes.slice(len(changes) - 1)
    return {
        "_table": table,
        "_commit_version": first["_commit_version"][0],
        "_change_ordinal": first["_change_ordinal"][0],
        "_last_commit_version": last["_commit_version"][0],
        "_last_commit_timestamp": last["_commit_timestamp"][0],
        "_snapshot": first["_snapshot"][0],
        "truncates": first["_change_type"][0].as_py() == "truncate",
        "changes": len(changes),
        "arrow": _serialized(changes),
    }


def _bounds(kinds: NDArray[np.int8]) -> Sequence[int]:
    """Return the bounds of rows: with a maximum number of changes, and TRUNCATE only at the start."""
    begins = {*range(0, len(kinds), _MOST_CHANGES), *np.flatnonzero(kinds == TRUNCATE).tolist()}
    return [*sorted(begins), len(kinds)]


def _serialized(changes: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, changes.schema) as stream:
        stream.write_batch(changes)
    return bytes(sink.getvalue())
