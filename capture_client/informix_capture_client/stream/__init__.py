"""From a session's bytes to events: the rooms `session`, `records` and `transactions` joined.

Rule: joins the rooms before it and decides nothing itself. Every byte that is delivered goes through
`event_stream.py`; the other three files read a session to answer one question each, and keep no rows.
"""

from __future__ import annotations

from informix_capture_client.stream.event_stream import (
    Answer,
    Begun,
    ChangeStream,
    Creation,
    MakeReader,
    PreviousTables,
    Read,
    Silence,
    Starting,
)
from informix_capture_client.stream.older_transactions import transactions_older_than_start
from informix_capture_client.stream.readable import shows_transactions
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
    "Creation",
    "MakeReader",
    "PreviousTables",
    "Read",
    "Silence",
    "Starting",
    "UndeliveredChanges",
    "find_undelivered_changes",
    "shows_transactions",
    "transactions_older_than_start",
]
