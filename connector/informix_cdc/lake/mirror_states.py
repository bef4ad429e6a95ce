"""The state of each table of a mirror, also of one that is not running.

Rule: it reads checkpoint, control tables and logs of Delta tables, changes nothing, and needs no Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from informix_capture_client.errors import BadOption
from informix_cdc.lake.control_tables import LEFT, MIRRORED, STOPPED, ControlTables, TableRecord
from informix_cdc.lake.identity import known_identity
from informix_cdc.lake.lakes import open_lake
from informix_cdc.lake.places import BRIEF, Lake
from informix_cdc.lake.postgres_lake import PostgresLake
from informix_cdc.lake.refused_writes import coded_errors
from informix_cdc.lake.settings import DELTA, MirrorSettings, is_url
from informix_cdc.merge_on_read import LoggedState, TableLog, TablePlace

_AT_ONCE = 8  # tables that are read at the same time
LOADING = "loading"


@dataclass(frozen=True, slots=True)
class TableInMirror:
    """A table of a mirror.

    Attributes:
        table: owner.table.
        state: mirrored, loading or stopped.
        reason: why it has stopped, or lacks rows.
        rows: in the target; None if its log does not say.
        changed_at: when a batch last changed the target; None if unknown.
        verified_at: commit time up to which it was last compared with Informix; None if never.
        differences: number of differences of that comparison.
    """

    table: str
    target: str
    state: str
    reason: str
    rows: int | None
    changed_at: datetime | None
    verified_at: datetime | None
    differences: int

    @property
    def is_stopped(self) -> bool:
        """Whether the mirror no longer writes it."""
        return self.state == STOPPED


@dataclass(frozen=True, slots=True)
class StateOfMirror:
    """A mirror: its tables, and the last commit that it has applied, with the server's time."""

    tables: tuple[TableInMirror, ...]
    commit: int | None
    committed_at: datetime | None


def state_of_mirror(settings: MirrorSettings) -> StateOfMirror:
    """Return the state of a mirror.

    Raises:
        BadOption: it has not begun, or its tables are those of Iceberg, which only Spark reads.
        TargetUnavailable: the lake cannot be read now.
    """
    identity = known_identity(settings.checkpoint)
    if not Lake.can_open(settings, None):
        raise BadOption(
            "tables of Iceberg are read by Spark only.",
            "Query _informix_cdc_tables and _informix_cdc_batches in the schema of the mirror.",
        )
    if is_url(settings.into) and settings.format == DELTA:  # who looks does not wait for minutes
        settings = replace(settings, storage_options={**BRIEF, **settings.storage_options})
    with coded_errors(settings.into):
        lake = open_lake(settings, identity.application)
        control = ControlTables(identity.id, lake.target)
        batches = control.batches()
        last: Mapping[str, Any] = batches[-1] if batches else {}
        verified = {name: (at, count) for name, at, count in control.last_verified()}
        records = [each for each in control.tables().values() if each.status != LEFT]

        def found(record: TableRecord) -> TableInMirror:
            rows, changed_at = _rows_and_time(settings, lake, record, last)
            is_loading = record.status == MIRRORED and record.table in last.get("loading", ())
            verified_at, differences = verified.get(record.table, (None, 0))
            return TableInMirror(
                record.table,
                record.target,
                LOADING if is_loading else record.status,
                record.reason,
                rows,
                changed_at,
                verified_at,
                differences,
            )

        with ThreadPoolExecutor(_AT_ONCE, "informix-cdc states") as pool:
            tables = sorted(pool.map(found, records), key=lambda each: each.table)
    return StateOfMirror(tuple(tables), last.get("commit"), last.get("commit_timestamp"))


def _rows_and_time(
    settings: MirrorSettings, lake: Lake, record: TableRecord, last: Mapping[str, Any]
) -> tuple[int | None, datetime | None]:
    """Return the number of rows in a target, and when a batch last changed it; None: not known."""
    if isinstance(lake, PostgresLake):
        table = lake.batches.table(record.target)
        is_in_last = any(each["target"] == record.target for each in last.get("versions", ()))
        rows = table.rows if table is not None and table.rows >= 0 else None  # as of the last ANALYZE
        return rows, last["written_at"] if is_in_last else None
    place = f"{settings.into.rstrip('/')}/{record.target}"
    logged = _logged(TablePlace(place, settings.storage_options))
    if logged is None:
        return None, None
    at = logged.numbered_at.get(lake.application, 0)
    return _rows(logged.files.values()), datetime.fromtimestamp(at / 1000, UTC) if at else None


def _logged(place: TablePlace) -> LoggedState | None:
    try:
        return TableLog(place).at()
    except FileNotFoundError:
        return None


def _rows(files: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the number of rows in files without deleted ones; some writers leave statistics out."""
    count = 0
    for file in files:
        rows = json.loads(file.get("stats") or "{}").get("numRecords")
        if rows is None:
            return None
        count += rows - ((file.get("deletionVector") or {}).get("cardinality") or 0)
    return count
