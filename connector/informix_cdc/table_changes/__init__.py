"""Tables that join a stream, leave it, or come back altered, while the others go on.

Rule: positions decide, never the time at which somebody starts a query.
"""

from __future__ import annotations

from informix_cdc.table_changes.joining import Joining, Switched
from informix_cdc.table_changes.known_tables import (
    in_this_version,
    other_source,
    other_table,
    require_chunks,
    require_form_of_chunks,
    require_may_leave,
)
from informix_cdc.table_changes.returning import (
    NobodyWrote,
    Returning,
    altered_tables,
    explains,
    require_complete,
)

Absent = Joining | Returning  # tables that a session does not capture yet

__all__ = [
    "Absent",
    "Joining",
    "NobodyWrote",
    "Returning",
    "Switched",
    "altered_tables",
    "explains",
    "in_this_version",
    "other_source",
    "other_table",
    "require_chunks",
    "require_complete",
    "require_form_of_chunks",
    "require_may_leave",
]
