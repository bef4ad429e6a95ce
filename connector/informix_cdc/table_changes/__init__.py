"""Tables join a stream and leave it while the others continue: one way, whatever the reason.

Rule: positions decide, never the time at which a query is started.
"""

from __future__ import annotations

from informix_cdc.table_changes.altered_tables import (
    UNFINISHED,
    AlteredTables,
    first_alters,
    leave_to_be_altered,
    why_not_altered,
)
from informix_cdc.table_changes.joining import Joining, Switched
from informix_cdc.table_changes.known_tables import (
    other_source,
    require_chunks,
    require_form_of_chunks,
    require_may_leave,
)
from informix_cdc.table_changes.wanted_tables import Steps, WantedTables, steps

__all__ = [
    "UNFINISHED",
    "AlteredTables",
    "Joining",
    "Steps",
    "Switched",
    "WantedTables",
    "first_alters",
    "leave_to_be_altered",
    "other_source",
    "require_chunks",
    "require_form_of_chunks",
    "require_may_leave",
    "steps",
    "why_not_altered",
]
