"""The rows that were there before the stream: which tables, read by whom, and when they may go out.

Rule: what a snapshot decides is the client's room `snapshot`; here are the connections, the threads
that read, and the door through which the capture loop lets chunks into the stream.
"""

from __future__ import annotations

from informix_cdc.snapshots.awaited_ends import AwaitedEnds, QuietTime, ServerSays, has_passed
from informix_cdc.snapshots.figures import SnapshotFigures, TableProgress
from informix_cdc.snapshots.plan import (
    PlannedTable,
    not_yet_delivered,
    plan_snapshots,
    states_at_first,
    wanted_tables,
    with_keys,
)
from informix_cdc.snapshots.snapshots import Snapshots

__all__ = [
    "AwaitedEnds",
    "PlannedTable",
    "QuietTime",
    "ServerSays",
    "SnapshotFigures",
    "Snapshots",
    "TableProgress",
    "has_passed",
    "not_yet_delivered",
    "plan_snapshots",
    "states_at_first",
    "wanted_tables",
    "with_keys",
]
