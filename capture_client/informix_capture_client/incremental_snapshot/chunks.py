"""A chunk's life, as values.

Rule: each state is a value of its own and holds what is known then; nothing here decides.

    Collecting    its low watermark is chosen, its rows are being read
    Offered       read; the stream must pass its barrier
    Passed        a record written after the SELECT has come; what it is behind goes into the spool
    Emitted       in the stream, at a commit place, without the rows whose keys were touched
    ThrownAway    to be read again, with fewer rows at once
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from informix_capture_client.incremental_snapshot.barrier import Barrier

Bounds = tuple[str, ...]  # a key as it was fetched: what statements are given, and offsets remember


@dataclass(frozen=True, slots=True)
class Collecting:
    """A chunk that is being read.

    Attributes:
        low: its low watermark; of a table that is locked instead, whatever the stream had reached.
        after: the key behind which it begins; None: at the table's first row.
        most_rows: how many rows it has at most.
    """

    low: int
    after: Bounds | None
    most_rows: int


@dataclass(frozen=True, slots=True)
class Offered:
    """A chunk that was read.

    Attributes:
        rows: the rows, in the types in which changes are delivered.
        last_key: the key of its last row as it was fetched; without rows, where it began.
        is_last: whether the table has no rows behind.
        barrier: what the stream must pass.
    """

    chunk: Collecting
    rows: pa.Table
    last_key: Bounds | None
    is_last: bool
    barrier: Barrier


@dataclass(frozen=True, slots=True)
class PassedChunk:
    """A chunk whose barrier the stream has passed."""

    offered: Offered


@dataclass(frozen=True, slots=True)
class Emitted:
    """A chunk's place in the stream.

    Attributes:
        commit: the commit place behind which it stands.
        rows: what is left of its rows.
        dropped: how many were left out, since the stream has them.
        last_key, is_last: as offered; progress is by what was read.
        read_at: the server's clock once the last row was fetched, in seconds since 1970.
    """

    commit: int
    rows: pa.Table
    dropped: int
    last_key: Bounds | None
    is_last: bool
    read_at: int


@dataclass(frozen=True, slots=True)
class ThrownAway:
    """Chunks that are to be read again, behind `after` and with `most_rows` at once."""

    chunks: int
    after: Bounds | None
    most_rows: int


ChunkOutcome = Emitted | ThrownAway
