"""The initial snapshot: existing rows are read in chunks and inserted into the stream.

Rule: values in, values out: no I/O, threads or clocks. The code that reads tables and writes segments
calls this package to decide what to read and what to write.
"""

from __future__ import annotations

from informix_capture_client.incremental_snapshot.barrier import Barrier, Proof
from informix_capture_client.incremental_snapshot.chunk_query import ChunkQuery, WholeTableQuery
from informix_capture_client.incremental_snapshot.key_choice import (
    KeyRules,
    SnapshotKey,
    choose_key,
    usable_key,
)
from informix_capture_client.incremental_snapshot.key_intervals import (
    rows_with_interval,
    typed_key,
    why_no_order,
)
from informix_capture_client.incremental_snapshot.low_watermark import (
    AGE_SECONDS,
    AgedPlaces,
    Slots,
)
from informix_capture_client.incremental_snapshot.reconciliation import (
    Bounds,
    ChunkOutcome,
    Collecting,
    Emitted,
    Reconciliation,
    ThrownAway,
)
from informix_capture_client.incremental_snapshot.touched_keys import (
    TouchedKeys,
    TouchedTables,
)

__all__ = [
    "AGE_SECONDS",
    "AgedPlaces",
    "Barrier",
    "Bounds",
    "ChunkOutcome",
    "ChunkQuery",
    "Collecting",
    "Emitted",
    "KeyRules",
    "Proof",
    "Reconciliation",
    "Slots",
    "SnapshotKey",
    "ThrownAway",
    "TouchedKeys",
    "TouchedTables",
    "WholeTableQuery",
    "choose_key",
    "rows_with_interval",
    "typed_key",
    "usable_key",
    "why_no_order",
]
