"""A session's bytes to events: session, records and transactions joined.

Rule: joins the rooms before it and decides nothing itself.
"""

from __future__ import annotations

from informix_capture_client.stream.event_stream import (
    Answer,
    Begun,
    ChangeStream,
    MakeReader,
    Read,
    Silence,
    Starting,
)
from informix_capture_client.stream.older_transactions import transactions_older_than_start
from informix_capture_client.stream.undelivered_changes import (
    ChangeCount,
    UndeliveredChanges,
    find_undelivered_changes,
)

__all__ = [
    "Answer",
    "Begun",
    "ChangeCount",
    "ChangeStream",
    "MakeReader",
    "Read",
    "Silence",
    "Starting",
    "UndeliveredChanges",
    "find_undelivered_changes",
    "transactions_older_than_start",
]
