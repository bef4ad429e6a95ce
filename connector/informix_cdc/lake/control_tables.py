"""Control tables besides the targets: the mirrored tables, the versions of each commit, differences.

Rule: written last in a batch, with the same transaction identifier as the targets. A batch depends on
them only for the list of stopped tables.

    _informix_cdc_tables    a row when a table is added, changes its columns, stops or is removed: the
                            latest row of a table has its state, all rows are its history
    _informix_cdc_batches   a row for each batch with changes: the Informix commit at its end, and the
                            versions of the targets that it wrote
    _informix_cdc_differences  a row for each difference that a verification has found; written before
                            the targets, because a repair changes these
    _informix_cdc_verified  a row for each table whose verification has ended
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from informix_cdc.lake.intervals import Compared
from informix_cdc.lake.mirrored_table import Target
from informix_cdc.lake.settings import CONTROL
from informix_cdc.server import TableDefinition
from informix_checkpoints.table_states import SnapshotState

TABLES, BATCHES = f"{CONTROL}tables", f"{CONTROL}batches"
DIFFERENCES, VERIFIED = f"{CONTROL}differences", f"{CONTROL}verified"
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


_OF_DIFFERENCES = pa.schema(
    [
        ("query", pa.string()),
        ("batch", pa.int64()),
        ("request", pa.string()),
        ("table", pa.string()),
        ("target", pa.string()),
        ("commit", pa.int64()),
        ("what", pa.string()),
        ("key", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("repaired", pa.bool_()),
    ]
)
_OF_VERIFIED = pa.schema(
    [
        ("query", pa.string()),
        ("batch", pa.int64()),
        ("request", pa.string()),
        ("commit", pa.int64()),
        ("commit_timestamp", _INSTANT),
        ("table", pa.string()),
        ("target", pa.string()),
        ("rows", pa.int64()),
        ("missing", pa.int64()),
        ("extra", pa.int64()),
        ("different", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class TableRecord:
    """The state of a mirrored table.

    Attributes:
        table: owner.table.
        status: mirrored, stopped or left.
        reason: why it is stopped, or lacks rows although it is mirrored.
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
        self._differences, self._verified = target(DIFFERENCES), target(VERIFIED)

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

    def verified(self) -> dict[str, str]:
        """Return the request of the last verification of each table of this query."""
        if not self._verified.is_there():
            return {}
        rows = [row for row in self._verified.rows().to_pylist() if row["query"] == self._query]
        return {row["table"]: row["request"] for row in sorted(rows, key=lambda row: row["batch"])}

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

    def write_differences(
        self,
        batch: int,
        compared: Mapping[TableRecord, Compared],
        snapshots: Mapping[str, SnapshotState],
    ) -> None:
        """Append the differences of a batch if missing."""
        rows = [
            {
                "query": self._query,
                "batch": batch,
                "request": snapshots[record.table].request,
                "table": record.table,
                "target": record.target,
                "commit": each.commit,
                "what": each.what,
                "key": each.key,
                "columns": list(each.columns),
                "repaired": found.is_repaired and not each.is_repeated,
            }
            for record, found in compared.items()
            for each in found.differences
        ]
        if rows:
            _append(self._differences, DIFFERENCES, pa.Table.from_pylist(rows, _OF_DIFFERENCES), batch)

    def write_verified(self, batch: BatchRecord, ended: Mapping[str, SnapshotState]) -> dict[str, int]:
        """Append a row for each table whose verification has ended; return their differences.

        Args:
            batch: in which they ended.
            ended: by table.
        """
        if not ended:
            return {}
        targets = {name: record.target for name, record in self.tables().items()}
        counts = self._counts({snapshot.request for snapshot in ended.values()})
        rows = [
            {
                "query": self._query,
                "batch": batch.batch,
                "request": snapshot.request,
                "commit": batch.commit,
                "commit_timestamp": batch.committed_at,
                "table": table,
                "target": targets.get(table, ""),
                "rows": snapshot.rows,
                **{what: counts[snapshot.request, table, what] for what in _WHAT},
            }
            for table, snapshot in ended.items()
        ]
        _append(self._verified, VERIFIED, pa.Table.from_pylist(rows, _OF_VERIFIED), batch.batch)
        return {
            table: sum(counts[snapshot.request, table, what] for what in _WHAT)
            for table, snapshot in ended.items()
        }

    def _counts(self, requests: set[str]) -> Counter[tuple[str, str, str]]:
        if not self._differences.is_there():
            return Counter()
        rows = self._differences.rows().select(["request", "table", "what"]).to_pylist()
        return Counter(tuple(row.values()) for row in rows if row["request"] in requests)


_WHAT = ("missing", "extra", "different")


def _append(target: Target, name: str, rows: pa.Table, batch: int) -> None:
    if not target.is_there():
        target.create(rows.schema, name, "written by informix-cdc")
    if not target.has(batch):
        target.append(rows, batch)
