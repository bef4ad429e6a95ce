"""Lake tables that are kept in sync with Informix tables.

    mirror          starts a query that keeps N lake tables in sync with N Informix tables
    run             shows the progress of a query, and stops it at Ctrl-C
    verify          compares them with Informix, while the mirror runs
    CutOver         makes PostgreSQL the primary
    as_of           reads all of them as they were at one commit of Informix
    net_changes     the net effect of changes on each key, for sinks of your own
    target_tables, definitions     the schema of such tables, for sinks that you write yourself

Rule: definitions are derived only from catalog and options, without Spark. Code that writes Delta
tables is loaded on use and needs the extra `delta`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.lazy_names import lazy_names
from informix_cdc.lake.definitions import DEFINITIONS, DELTA, ICEBERG, SPARK, definitions, type_in
from informix_cdc.lake.target_tables import TargetColumn, TargetTable, target_tables

if TYPE_CHECKING:
    from informix_cdc.lake.cutting_over import CutOver, NotCutOver, Receipt
    from informix_cdc.lake.identity import stopped_tables
    from informix_cdc.lake.large_batches import delivered_rows
    from informix_cdc.lake.mirror_states import (
        StateOfMirror,
        TableInMirror,
        state_of_mirror,
    )
    from informix_cdc.lake.mirrored_batch import Maintained, MirroredBatch
    from informix_cdc.lake.mirroring import (
        Mirror,
        begin_mirror,
        mirror,
        start_mirror,
    )
    from informix_cdc.lake.net_effect import net_changes
    from informix_cdc.lake.plan import (
        MirrorPlan,
        PlanProblem,
        checked_settings,
        plan_mirror,
        problems_by_kind,
        stream_options,
        texts_of,
    )
    from informix_cdc.lake.running import run, run_until, stopped_by_signals
    from informix_cdc.lake.sessions import session_settings, start_session, submitted_session
    from informix_cdc.lake.settings import MirrorSettings
    from informix_cdc.lake.tables_as_of import TablesAsOf, as_of
    from informix_cdc.lake.verifying import MirrorNotRunning, Verification, VerifiedTable, verify

__all__ = [
    "DEFINITIONS",
    "DELTA",
    "ICEBERG",
    "SPARK",
    "CutOver",
    "Maintained",
    "Mirror",
    "MirrorNotRunning",
    "MirrorPlan",
    "MirrorSettings",
    "MirroredBatch",
    "NotCutOver",
    "PlanProblem",
    "Receipt",
    "StateOfMirror",
    "TableInMirror",
    "TablesAsOf",
    "TargetColumn",
    "TargetTable",
    "Verification",
    "VerifiedTable",
    "as_of",
    "begin_mirror",
    "checked_settings",
    "definitions",
    "delivered_rows",
    "mirror",
    "net_changes",
    "plan_mirror",
    "problems_by_kind",
    "run",
    "run_until",
    "session_settings",
    "start_mirror",
    "start_session",
    "state_of_mirror",
    "stopped_by_signals",
    "stopped_tables",
    "stream_options",
    "submitted_session",
    "target_tables",
    "texts_of",
    "type_in",
    "verify",
]

_HOMES = {
    "cutting_over": ("CutOver", "NotCutOver", "Receipt"),
    "mirrored_batch": ("Maintained", "MirroredBatch"),
    "identity": ("stopped_tables",),
    "large_batches": ("delivered_rows",),
    "tables_as_of": ("TablesAsOf", "as_of"),
    "mirror_states": ("StateOfMirror", "TableInMirror", "state_of_mirror"),
    "mirroring": (
        "Mirror",
        "begin_mirror",
        "mirror",
        "start_mirror",
    ),
    "plan": (
        "MirrorPlan",
        "PlanProblem",
        "checked_settings",
        "plan_mirror",
        "problems_by_kind",
        "stream_options",
        "texts_of",
    ),
    "net_effect": ("net_changes",),
    "running": ("run", "run_until", "stopped_by_signals"),
    "sessions": ("session_settings", "start_session", "submitted_session"),
    "settings": ("MirrorSettings",),
    "verifying": ("MirrorNotRunning", "Verification", "VerifiedTable", "verify"),
}
__getattr__ = lazy_names(__name__, {name: home for home, names in _HOMES.items() for name in names})
