"""The rows that were there before the stream: which tables, read by whom, and when they may go out.

Rule: what a snapshot decides is the client's room `snapshot`; here are the connections, the threads
that read, and the door through which the capture loop lets chunks into the stream.
"""

from __future__ import annotations

from informix_cdc.snapshots.awaited_ends import (
    AwaitedEnds,
    QuietTime,
    ServerSays,
    ask_server,
    has_passed,
)
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
