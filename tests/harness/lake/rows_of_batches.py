"""Rows of shape=arrow made by hand: what a micro-batch has for one table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from informix_capture_client.positions import Position
from informix_capture_client.shapes import DEFINITION
from informix_cdc.server.table_definitions import DeclaredColumn, TableDefinition
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.table_states import SnapshotState, TableState

Change = tuple[str, int, dict[str, Any] | None]  # kind, commit, row


def batch_row(
    table: str,
    columns: dict[str, pa.DataType],
    changes: Sequence[Change],
    *,
    key: Sequence[str] = ("id",),
    is_snapshot: bool = False,
) -> dict[str, Any]:
    """Return a delivered row with changes of one table, in their order."""
    declared = tuple(DeclaredColumn(name, "TYPE", name not in key) for name in columns)
    definition = TableDefinition(table, declared, tuple(key), "" if key else "it has none")
    row_type = pa.struct(list(columns.items()))
    times = [datetime.fromtimestamp(1_700_000_000 + commit, UTC) for _, commit, _ in changes]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([kind for kind, _, _ in changes], pa.string()),
            pa.array([commit for _, commit, _ in changes], pa.int64()),
            pa.array(times, pa.timestamp("us", "UTC")),
            pa.array(range(len(changes)), pa.int32()),
            pa.array([is_snapshot] * len(changes), pa.bool_()),
            pa.array([row for _, _, row in changes], row_type),
        ],
        schema=pa.schema(
            [
                ("_change_type", pa.string()),
                ("_commit_version", pa.int64()),
                ("_commit_timestamp", pa.timestamp("us", "UTC")),
                ("_change_ordinal", pa.int32()),
                ("_snapshot", pa.bool_()),
                ("row", row_type),
            ],
            metadata={DEFINITION: definition.to_text().encode()},
        ),
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return {
        "_table": f"stores:{table}",
        "_commit_version": changes[0][1],
        "_change_ordinal": 0,
        "truncates": changes[0][0] == "truncate",
        "changes": len(changes),
        "arrow": bytes(sink.getvalue()),
    }


def end_at(commit: int, *tables: str, loading: Sequence[str] = ()) -> StreamOffset:
    """Return the offset at which a batch ends, of a stream with these tables.

    Snapshots of `loading` are still to begin; the others have none.
    """
    states = {
        name: TableState("d", snapshot=SnapshotState() if name in loading else None) for name in tables
    }
    return StreamOffset("a1", "5a", Position(commit, commit), tables=states)
