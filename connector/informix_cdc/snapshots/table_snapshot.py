"""One table under snapshot, shared by its reader thread and the capture loop.

Rule: every call takes the lock; nothing is read or written here.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from informix_capture_client.errors import AccessRefused, ServerRefused
from informix_capture_client.incremental_snapshot import (
    Barrier,
    Bounds,
    ChunkOutcome,
    Collecting,
    Emitted,
    Proof,
    Reconciliation,
    TouchedKeys,
)
from informix_cdc.options import SnapshotOptions
from informix_cdc.snapshots.connection import RowsRead
from informix_cdc.snapshots.plan import PlannedTable
from informix_cdc.snapshots.sealed_keys import unsealed
from informix_checkpoints.table_states import SnapshotState


@dataclass(slots=True)
class _Waiting:
    """A chunk that was read and is not in the stream yet.

    Attributes:
        clock: the server's time when its barrier was set.
        size_bytes: of its rows.
        since: when a marker after it was attempted; None before, when nothing need pass it.
    """

    clock: int
    size_bytes: int
    since: float | None = None


@dataclass(slots=True)
class TableSnapshot:
    """The state of a table while it is read.

    Args:
        planned: the table.
        chunks: bring its chunks into the stream.
        state: its progress when this process began.
        touched: the keys that the stream touches; None if the table is locked.
        most_waiting_bytes: maximum size of rows that were read and are not in the stream.
        clock: a monotonic clock.

    Attributes:
        rows, dropped_rows, chunk_count: counts of this process.
        begun_at: when this process began.
        is_done: whether all rows are in the stream.
        require_lock: fails if the table, read in one go, is no longer locked.
        refusal: why the latest marker could not be written; None if it could.
    """

    planned: PlannedTable
    state: SnapshotState
    chunks: Reconciliation
    touched: TouchedKeys | None
    most_waiting_bytes: int
    clock: Callable[[], float] = time.monotonic
    rows: int = 0
    dropped_rows: int = 0
    chunk_count: int = 0
    is_done: bool = False
    require_lock: Callable[[], None] = lambda: None
    refusal: ServerRefused | AccessRefused | None = None
    begun_at: float = field(init=False)
    _waiting: deque[_Waiting] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.begun_at = self.clock()

    @classmethod
    def begun(
        cls,
        planned: PlannedTable,
        state: SnapshotState,
        commit: int,
        since: int,
        snapshots: SnapshotOptions,
        clock: Callable[[], float],
    ) -> TableSnapshot:
        """Return a snapshot that begins or continues where the stream has reached a commit."""
        touched, after = None, None
        if planned.key is not None:
            touched = TouchedKeys(planned.key, commit, snapshots.most_touched_keys)
            after = unsealed(state.after, planned.key) or None
        chunks = Reconciliation(touched, snapshots.chunk_rows, after, since)
        return cls(planned, state, chunks, touched, 2 * snapshots.chunk_bytes, clock)

    # called by the reader thread

    @property
    def is_read(self) -> bool:
        """Whether all rows have been read; may become false until they are in the stream."""
        with self._lock:
            return self.chunks.is_read

    @property
    def has_room(self) -> bool:
        """Whether another chunk may be read."""
        with self._lock:
            return sum(chunk.size_bytes for chunk in self._waiting) < self.most_waiting_bytes

    def begin(self, low: int) -> Collecting | None:
        """Begin a chunk; None: choose another low watermark later."""
        with self._lock:
            return self.chunks.begin(low)

    def skip(self, chunk: Collecting, after: Bounds) -> Collecting:
        """Let a chunk start after a later key."""
        with self._lock:
            return self.chunks.skip(chunk, after)

    def offer(self, chunk: Collecting, read: RowsRead, barrier: Barrier) -> None:
        """Pass on the rows that were read."""
        last_key: Bounds | None = chunk.after if read.last_key is None else read.last_key
        with self._lock:
            if self.chunks.offer(chunk, read.rows, last_key, is_last=read.is_last, barrier=barrier):
                self._waiting.append(_Waiting(barrier.clock, read.rows.nbytes))

    def record_marker(self, clock: int, refusal: ServerRefused | AccessRefused | None) -> None:
        """Record that a marker was attempted after a server's second; from here on chunks wait."""
        with self._lock:
            self.refusal = refusal
            for chunk in self._waiting:
                if chunk.since is None and chunk.clock < clock:
                    chunk.since = self.clock()

    # called by the capture loop

    def on_read(self, proof: Proof) -> bool:
        """Process what the latest records prove; return whether something is due."""
        with self._lock:
            return self.chunks.on_proof(proof)

    def forget(self, commit: int) -> None:
        """Forget touched keys that no chunk needs."""
        with self._lock:
            self.chunks.forget(commit)

    def emit(self, commit: int) -> Iterator[ChunkOutcome]:
        """Yield what is due at a commit position."""
        with self._lock:
            for outcome in self.chunks.emit(commit):
                if isinstance(outcome, Emitted):
                    yield outcome
                    self._waiting.popleft()
                    self._count(outcome)
                else:
                    self._waiting.clear()
                    yield outcome

    def _count(self, emitted: Emitted) -> None:
        self.rows += len(emitted.rows)
        self.dropped_rows += emitted.dropped
        self.chunk_count += 1
        self.is_done = emitted.is_last

    def reset_deadline(self) -> None:
        """Reset the deadline of chunks: the session was not read meanwhile."""
        with self._lock:
            for chunk in self._waiting:
                chunk.since = None if chunk.since is None else self.clock()

    def waiting_seconds(self) -> float:
        """Return how long the oldest chunk has waited for the stream to pass it."""
        with self._lock:
            since = self._waiting[0].since if self._waiting else None
            return 0.0 if since is None else self.clock() - since
