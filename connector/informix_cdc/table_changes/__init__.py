"""Tables that join a stream, leave it, or return after an ALTER, while the others continue.

Rule: positions decide, never the time at which a query is started.
"""

from __future__ import annotations

from informix_cdc.table_changes.absent import Absent, Switched
from informix_cdc.table_changes.known_tables import (
    other_source,
    require_chunks,
    require_form_of_chunks,
    require_may_leave,
)
from informix_cdc.table_changes.plan import named_receipt, plan_joining, watch_writers
from informix_cdc.table_changes.returning import (
    altered_tables,
    explains,
    require_complete,
    to_record,
)

__all__ = [
    "Absent",
    "Switched",
    "altered_tables",
    "explains",
    "named_receipt",
    "other_source",
    "plan_joining",
    "require_chunks",
    "require_complete",
    "require_form_of_chunks",
    "require_may_leave",
    "to_record",
    "watch_writers",
]
