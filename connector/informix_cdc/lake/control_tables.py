"""Control tables besides the targets: the mirrored tables, the versions of each commit, differences.

Rule: written last in a batch, with the same transaction identifier as the targets. A batch depends on
them only for the list of stopped tables.

    _informix_cdc_mirror    a row for each epoch: the mirror's id and settings, and why the epoch began
    _informix_cdc_tables    a row when a table is added, changes its columns, stops or is removed: the
                            latest row of a table has its state, all rows are its history
    _informix_cdc_batches   a row for each batch with changes: the Informix commit at its end, and the
                            versions of the targets that it wrote, with the ids of these tables
    _informix_cdc_differences  a row for each difference that a verification has found; written before
                            the targets, because a repair changes these
    _informix_cdc_verified  a row for each table whose verification has ended
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa

from informix_cdc.lake.identity import BatchEnd, Identity, batch_of, epoch_of, number_of
from informix_cdc.lake.intervals import Compared
from informix_cdc.lake.mirrored_table import Target
from informix_cdc.lake.settings import CONTROL
from informix_cdc.server import TableDefinition
from informix_checkpoints.table_states import SnapshotState

MIRRORS, TABLES, BATCHES = f"{CONTROL}mirror", f"{CONTROL}tables", f"{CONTROL}batches"
DIFFERENCES, VERIFIED = f"{CONTROL}differences", f"{CONTROL}verified"
MIRRORED, STOPPED, LEFT = "mirrored", "stopped", "left"

_INSTANT = pa.timestamp("us", "UTC")
_LATER = datetime.max.replace(tzinfo=UTC)
_VERSION = pa.struct([("target", pa.string()), ("version", pa.int64()), ("table_id", pa.string())])
_BATCH = [("mirror", pa.string()), ("epoch", pa.int64()), ("batch", pa.int64())]
_OF_MIRRORS = pa.schema(
    [
        ("mirror", pa.string()),
        ("epoch", pa.int64()),
        ("begun", _INSTANT),
        ("reason", pa.string()),
        *(
            (name, pa.string())
            for name in ("into", "server", "database", "format", "keep", "table_name")
        ),
        ("request", pa.string()),
        ("applied", pa.string()),
    ]
)
_OF_TABLES = pa.schema(
    [
        *_BATCH,
        ("commit", pa.int64()),
        ("table", pa.string()),
        ("target", pa.string()),
        ("keep", pa.string()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("key", pa.list_(pa.string())),
        ("columns", pa.string()),
        ("compared", pa.int64()),
    ]
)
_OF_BATCHES = pa.schema(
    [
        *_BATCH,
        ("commit", pa.int64()),
        ("chunk", pa.int64()),
        ("commit_timestamp", _INSTANT),
        ("loading", pa.list_(pa.string())),
        ("stream", pa.string()),
        ("versions", pa.list_(_VERSION)),
        ("written_at", _INSTANT),
    ]
)


_OF_DIFFERENCES = pa.schema(
    [
        *_BATCH,
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
        *_BATCH,
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
        compared: the epoch in which it was compared with Informix, or began; if that is an earlier
            one than the mirror's, it is still to be compared.
    """

    table: str
    target: str
    keep: str
    status: str
    reason: str = ""
    key: tuple[str, ...] = ()
    columns: str = "[]"
    compared: int = 0

    @classmethod
    def of(
        cls, definition: TableDefinition, rows: pa.Schema, target: str, keep: str, epoch: int
    ) -> TableRecord:
        """Return the record of a table that is mirrored with these columns."""
        shown = _columns_text(definition, rows)
        return cls(definition.table, target, keep, MIRRORED, "", definition.key, shown, epoch)


@lru_cache(maxsize=4096)
def _columns_text(definition: TableDefinition, rows: pa.Schema) -> str:
    """Return the columns of a table as JSON: every batch of it has the same ones."""
    columns = [
        [column.name, column.type, str(field.type)]
        for column, field in zip(definition.columns, rows, strict=True)
    ]
    return json.dumps(columns, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """The end of a batch.

    Attributes:
        number: of the batch, in its epoch: `number_of`.
        stream: that the batch is of.
        commit, chunk: the place of its end in the stream.
        committed_at: time of that commit by the server's clock; None if the batch has no changes.
        loading: tables whose snapshot is not done at its end.
        versions: of the targets that it has changed, with the ids of these tables.
    """

    number: int
    stream: str
    commit: int
    chunk: int
    committed_at: datetime | None
    loading: Sequence[str]
    versions: Mapping[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """An epoch of a mirror.

    Attributes:
        identity: of the mirror.
        reason: why it began; empty for the first.
        request: id of the request by which its tables are compared.
        applied: the last commit that a table has, by stream, by owner.table.
    """

    identity: Identity
    epoch: int
    reason: str = ""
    request: str = ""
    applied: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


class ControlTables:
    """The control tables of a mirror.

    Args:
        mirror: id of the mirror.
        target: returns the target of a name.
    """

    def __init__(self, mirror: str, target: Callable[[str], Target]) -> None:
        self._mirror = mirror
        self._mirrors = target(MIRRORS)
        self._tables, self._batches = target(TABLES), target(BATCHES)
        self._differences, self._verified = target(DIFFERENCES), target(VERIFIED)
        self._written: dict[str, Target] = {}  # since `written` was asked for

    def epochs(self) -> list[EpochRecord]:
        """Return the epochs of all mirrors in the lake, oldest first."""
        rows = self._mirrors.rows().to_pylist() if self._mirrors.is_there() else []
        return [
            EpochRecord(
                Identity(id=row["mirror"], **{name: row[name] for name in _OF_IDENTITY}),
                row["epoch"],
                row["reason"],
                row["request"],
                json.loads(row["applied"]),
            )
            for row in sorted(rows, key=lambda row: row["epoch"])
        ]

    def write_epoch(self, record: EpochRecord) -> None:
        """Append the record of an epoch that begins."""
        row = {
            "mirror": record.identity.id,
            "epoch": record.epoch,
            "begun": datetime.now(UTC),
            "reason": record.reason,
            **{name: getattr(record.identity, name) for name in _OF_IDENTITY},
            "request": record.request,
            "applied": json.dumps(record.applied),
        }
        rows = pa.Table.from_pylist([row], _OF_MIRRORS)
        self._append(self._mirrors, MIRRORS, rows, number_of(record.epoch, 0))

    def tables(self) -> dict[str, TableRecord]:
        """Return the latest record of each table of this mirror."""
        return {
            row["table"]: TableRecord(
                row["table"],
                row["target"],
                row["keep"],
                row["status"],
                row["reason"],
                tuple(row["key"]),
                row["columns"],
                row["compared"],
            )
            for row in self.records()
        }

    def records(self) -> list[dict[str, Any]]:
        """Return all rows about tables, in the order of batches."""
        return self._rows(self._tables)

    def batches(self) -> list[dict[str, Any]]:
        """Return a row for each batch with changes, in their order."""
        return self._rows(self._batches)

    def collapse(self, before: datetime) -> None:
        """Make one row of the records of batches up to the last one that was written before a time.

        It is the row of that batch, with the last version of each target.
        """
        rows = self.batches()
        ends = states_of(rows)
        old = [at for at, row in enumerate(ends) if (row.get("written_at") or _LATER) <= before]
        if not old or rows[0] is ends[old[-1]]:
            return
        last = ends[old[-1]]
        versions = {each["target"]: each for row in ends[: old[-1] + 1] for each in row["versions"]}
        row = {**last, "versions": [versions[name] for name in sorted(versions)]}
        later = rows[next(at for at, row in enumerate(rows) if row is last) + 1 :]
        kept = pa.Table.from_pylist([row, *later], _OF_BATCHES)
        self._batches.replace(kept, None, _OF_BATCHES)

    def verified(self) -> dict[str, str]:
        """Return the request of the last verification of each table of this mirror."""
        return {row["table"]: row["request"] for row in self._rows(self._verified)}

    def end_of(self, number: int) -> BatchEnd | None:
        """Return where a batch ended; None if it has no record."""
        wanted = (epoch_of(number), batch_of(number))
        for row in self.batches():
            if (row["epoch"], row["batch"]) == wanted:
                return BatchEnd(row["stream"], row["commit"], row["chunk"])
        return None

    def _rows(self, target: Target) -> list[dict[str, Any]]:
        """Return the rows of this mirror, in the order of batches."""
        rows = target.rows().to_pylist() if target.is_there() else []
        mine = [row for row in rows if row["mirror"] == self._mirror]
        return sorted(mine, key=lambda row: (row["epoch"], row["batch"]))

    def last_verified(self) -> Iterator[tuple[str, datetime, int]]:
        """Yield table, time and number of differences of the last verification of each table."""
        for row in {each["table"]: each for each in self._rows(self._verified)}.values():
            at = row["commit_timestamp"] or datetime.now(UTC)
            yield row["table"], at, sum(row[what] for what in _WHAT)

    def differences(self) -> list[dict[str, Any]]:
        """Return the differences that verifications have found."""
        return self._rows(self._differences)

    def verifications(self) -> list[dict[str, Any]]:
        """Return a row for each table whose verification has ended, in the order of batches."""
        return self._rows(self._verified)

    def is_foreign(self, target: Target, name: str) -> bool:
        """Return whether a table exists that no mirror has created."""
        if not target.is_there() or target.is_empty():
            return False
        rows = self._tables.rows().to_pylist() if self._tables.is_there() else []
        return target.number() is None and all(row["target"] != name for row in rows)

    def targets(self) -> dict[str, Target]:
        """Return the control tables that each batch may change, by name."""
        return {
            TABLES: self._tables,
            BATCHES: self._batches,
            DIFFERENCES: self._differences,
            VERIFIED: self._verified,
        }

    def written(self) -> dict[str, Target]:
        """Return the control tables that were written since the last call."""
        found, self._written = self._written, {}
        return found

    def write(
        self, batch: BatchRecord, changed: Sequence[TableRecord], *, is_news: bool = False
    ) -> None:
        """Append the records of a batch if missing; `is_news` if the list of loading tables changes."""
        about = self._about(batch.number)
        tables = [
            {
                **about,
                "commit": batch.commit,
                **{name: getattr(record, name) for name in TableRecord.__slots__},
            }
            for record in changed
        ]
        if tables:
            rows = pa.Table.from_pylist(tables, _OF_TABLES)
            self._append(self._tables, TABLES, rows, batch.number)
        if batch.versions or is_news:
            versions = [
                {"target": target, "version": version, "table_id": table_id}
                for target, (version, table_id) in sorted(batch.versions.items())
            ]
            row = {
                **about,
                "stream": batch.stream,
                "commit": batch.commit,
                "chunk": batch.chunk,
                "commit_timestamp": batch.committed_at,
                "loading": sorted(batch.loading),
                "versions": versions,
                "written_at": datetime.now(UTC),
            }
            rows = pa.Table.from_pylist([row], _OF_BATCHES)
            if self._batches.is_there() and not self._batches.keeps_versions:
                self._written[BATCHES] = self._batches
                if not self._batches.has(batch.number):
                    self._batches.replace(rows, batch.number, rows.schema)
            else:
                self._append(self._batches, BATCHES, rows, batch.number)

    def _about(self, number: int) -> dict[str, object]:
        return {"mirror": self._mirror, "epoch": epoch_of(number), "batch": batch_of(number)}

    def _append(self, target: Target, name: str, rows: pa.Table, number: int) -> None:
        if not target.is_there():
            target.create(rows.schema, name, "written by informix-cdc")
        elif missing := [each for each in rows.schema if each.name not in target.schema().names]:
            target.add_columns(missing)  # an earlier version has created it
        if not target.has(number):
            target.append(rows, number)
        self._written[name] = target

    def write_differences(
        self,
        number: int,
        compared: Mapping[TableRecord, Compared],
        snapshots: Mapping[str, SnapshotState],
    ) -> None:
        """Append the differences of a batch if missing."""
        rows = [
            {
                **self._about(number),
                "request": snapshots[record.table].request,
                "table": record.table,
                "target": record.target,
                "commit": each.commit,
                "what": each.what,
                "key": each.key,
                "columns": list(each.columns),
                "repaired": found.is_repaired,
            }
            for record, found in compared.items()
            for each in found.differences
        ]
        if rows:
            self._append(
                self._differences, DIFFERENCES, pa.Table.from_pylist(rows, _OF_DIFFERENCES), number
            )

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
                **self._about(batch.number),
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
        self._append(self._verified, VERIFIED, pa.Table.from_pylist(rows, _OF_VERIFIED), batch.number)
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
_OF_IDENTITY = ("into", "server", "database", "format", "keep", "table_name")


def states_of(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of batches at whose ends the tables were a state of Informix, in order.

    Where an older checkpoint was put back, the first batches of the next epoch end before commits that
    the tables already had.
    """
    reached: dict[str, tuple[int, int]] = {}  # epoch and commit, by stream
    found = []
    for row in rows:
        epoch, commit = reached.get(row["stream"], (row["epoch"], 0))
        if row["epoch"] > epoch and row["commit"] < commit:
            continue
        reached[row["stream"]] = (row["epoch"], max(row["commit"], commit))
        found.append(row)
    return found
