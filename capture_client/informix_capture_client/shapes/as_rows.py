"""Read delivered batches change by change, for programs that process single rows.

Rule: metadata and row are separate, and the row is the same for one captured table or several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.shapes.metadata import METADATA
from informix_capture_client.shapes.row_shape import struct_names


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One delivered row; `row` is empty for a TRUNCATE."""

    change_type: str
    table: str
    row: dict[str, Any]
    metadata: dict[str, Any]

    @property
    def commit(self) -> int:
        """The sequence number of the transaction's COMMTX record."""
        return int(self.metadata["_commit_version"])


def structs_of(tables: Sequence[Table]) -> dict[str, str]:
    """Return the name of each table's struct column; empty for one table, whose rows are flat."""
    if len(tables) == 1:
        return {}
    names = [str(table.name) for table in tables]
    return dict(zip(names, struct_names(names), strict=True))


def changes_in(batch: pa.RecordBatch | pa.Table, structs: Mapping[str, str]) -> Iterator[ChangeRow]:
    """Yield the rows of a batch in order."""
    for delivered in batch.to_pylist():
        metadata = {name: delivered.pop(name) for name in METADATA.names}
        kind, table = metadata["_change_type"], metadata["_table"]
        row = delivered[structs[table]] if structs else delivered
        yield ChangeRow(kind, table, {} if kind == "truncate" else row or {}, metadata)
