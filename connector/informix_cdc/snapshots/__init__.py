"""Initial snapshots: the tables, the threads that read them, and their chunks in the stream.

Rule: the client's room `snapshot` has the logic; this room has connections, threads, and the only place
where the capture loop inserts chunks into the stream.
"""

from __future__ import annotations

from informix_cdc.snapshots.awaited_ends import (
    AwaitedEnds,
    QuietTime,
    ServerSays,
    ask_server,
    has_passed,
)
from informix_cdc.snapshots.connection import SnapshotConnection
from informix_cdc.snapshots.plan import (
    PlannedTable,
    look_up_snapshots,
    not_yet_delivered,
    plan_snapshots,
    states_at_first,
    wanted_tables,
    with_keys,
)
from informix_cdc.snapshots.snapshots import NoSnapshots, SnapshotFigures, Snapshots, TableProgress

__all__ = [
    "AwaitedEnds",
    "NoSnapshots",
    "PlannedTable",
    "QuietTime",
    "ServerSays",
    "SnapshotConnection",
    "SnapshotFigures",
    "Snapshots",
    "TableProgress",
    "ask_server",
    "has_passed",
    "look_up_snapshots",
    "not_yet_delivered",
    "plan_snapshots",
    "states_at_first",
    "wanted_tables",
    "with_keys",
]
