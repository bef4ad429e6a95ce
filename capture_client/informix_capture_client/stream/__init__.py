"""Turn a session's bytes into events, using the packages `session`, `records` and `transactions`.

Rule: only connects these packages. Every delivered byte passes through `event_stream.py`; the other
two files read a session to answer one question each, and store no rows.
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
    in_our_numbers,
)
from informix_capture_client.stream.older_transactions import transactions_older_than_start
from informix_capture_client.stream.readable import shows_transactions

__all__ = [
    "Answer",
    "Begun",
    "ChangeStream",
    "Creation",
    "MakeReader",
    "PreviousTables",
    "Read",
    "Silence",
    "Starting",
    "in_our_numbers",
    "shows_transactions",
    "transactions_older_than_start",
]
