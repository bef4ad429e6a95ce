"""Two control tables besides the targets: the mirrored tables, and the versions of each commit.

Rule: written last in a batch, with the same transaction identifier as the targets. A batch depends on
them only for the list of stopped tables.

    _informix_cdc_tables    a row when a table is added, changes its columns, stops or is removed: the
                            latest row of a table has its state, all rows are its history
    _informix_cdc_batches   a row for each batch with changes: the Informix commit at its end, and the
                            versions of the targets that it wrote
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from informix_cdc.lake.mirrored_table import Target
from informix_cdc.lake.settings import CONTROL
from informix_cdc.server import TableDefinition

TABLES, BATCHES = f"{CONTROL}tables", f"{CONTROL}batches"
MIRRORED, STOPPED, LEFT = "mirrored", "stopped", "left"

_INSTANT = pa.timestamp("us", "UTC")
_BATCHES_A_FILE = 100
_OF_TABLES = pa.schema(
    [
        ("query", pa.string()),
        ("batch", pa.int64()),
        ("commit", pa.int64()),
        ("table", pa.string()),
        ("target", pa.string()),
        ("keep", pa.string()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("key", pa.list_(pa.string())),
        ("columns", pa.string()),
    ]
)
_OF_BATCHES = pa.schema(
    [
        ("query", pa.string()),
        ("batch", pa.int64()),
        ("commit", pa.int64()),
        ("commit_timestamp", _INSTANT),
        ("loading", pa.list_(pa.string())),
        ("versions", pa.list_(pa.struct([("target", pa.string()), ("version", pa.int64())]))),
    ]
)


@dataclass(frozen=True, slots=True)
class TableRecord:
    """The state of a mirrored table.

    Attributes:
        table: owner.table.
        status: mirrored, stopped or left.
        reason: why it is stopped.
        columns: their names with Informix and Arrow types, as JSON.
    """

    table: str
    target: str
    keep: str
    status: str
    reason: str = ""
    key: tuple[str, ...] = ()
    columns: str = "[]"

    @classmethod
    def of(cls, definition: TableDefinition, rows: pa.Schema, target: str, keep: str) -> TableRecord:
        """Return the record of a table that is mirrored with these columns."""
        columns = [
            [column.name, column.type, str(field.type)]
            for column, field in zip(definition.columns, rows, strict=True)
        ]
        shown = json.dumps(columns, separators=(",", ":"))
        return cls(definition.table, target, keep, MIRRORED, "", definition.key, shown)


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """The end of a batch.

    Attributes:
        commit: sequence number of its last commit.
        committed_at: time of that commit by the server's clock; None if the batch has no changes.
        loading: tables whose snapshot is not done at its end.
        versions: of the targets that it has changed.
    """

    batch: int
    commit: int
    committed_at: datetime | None
    loading: Sequence[str]
    versions: Mapping[str, int]


class ControlTables:
    """The control tables of a mirror.

    Args:
        query: id of the query.
        target: returns the target of a name.
    """

    def __init__(self, query: str, target: Callable[[str], Target]) -> None:
        self._query = query
        self._tables, self._batches = target(TABLES), target(BATCHES)

    def tables(self) -> dict[str, TableRecord]:
        """Return the latest record of each table of this query."""
        if not self._tables.is_there():
            return {}
        rows = [row for row in self._tables.rows().to_pylist() if row["query"] == self._query]
        return {
            row["table"]: TableRecord(
                row["table"],
                row["target"],
                row["keep"],
                row["status"],
                row["reason"],
                tuple(row["key"]),
                row["columns"],
            )
            for row in sorted(rows, key=lambda row: row["batch"])
        }

    def is_foreign(self, target: Target, name: str) -> bool:
        """Return whether a table exists that no mirror has created."""
        if not target.is_there() or target.is_empty():
            return False
        rows = self._tables.rows().to_pylist() if self._tables.is_there() else []
        return not target.is_numbered() and all(row["target"] != name for row in rows)

    def write(
        self, batch: BatchRecord, changed: Sequence[TableRecord], *, is_news: bool = False
    ) -> None:
        """Append the records of a batch if missing; `is_news` if the list of loading tables changes."""
        tables = [
            {
                "query": self._query,
                "batch": batch.batch,
                "commit": batch.commit,
                **{name: getattr(record, name) for name in TableRecord.__slots__},
            }
            for record in changed
        ]
        if tables:
            _append(self._tables, TABLES, pa.Table.from_pylist(tables, _OF_TABLES), batch.batch)
        if batch.versions or is_news:
            versions = [{"target": t, "version": v} for t, v in sorted(batch.versions.items())]
            row = {
                "query": self._query,
                "batch": batch.batch,
                "commit": batch.commit,
                "commit_timestamp": batch.committed_at,
                "loading": sorted(batch.loading),
                "versions": versions,
            }
            _append(self._batches, BATCHES, pa.Table.from_pylist([row], _OF_BATCHES), batch.batch)
            if batch.batch % _BATCHES_A_FILE == 0:
                self._batches.compact()


def _append(target: Target, name: str, rows: pa.Table, batch: int) -> None:
    if not target.is_there():
        target.create(rows.schema, name, "written by informix-cdc")
    if not target.has(batch):
        target.append(rows, batch)
