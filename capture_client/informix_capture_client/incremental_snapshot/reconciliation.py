"""Bring the chunks of one table into the stream, each at a place where its rows are true.

Rule: values in, values out. Given what the snapshot's connection has done and what the stream
has shown, it returns what may be read and what is to be written.

For a chunk with low watermark L that is emitted at commit place P, a row is true at P and later if no
transaction in (L, P] has touched its key, given that L is settled (`Slots`) and that the stream has
passed a record written after the SELECT (`Barrier`). All other rows are left out: the last transaction
that touched them stands at or before P, and its image is newer or the same.

    begin(low)          a low watermark was chosen       -> Collecting, or None: choose again later
    offer(...)          the rows were read
    on_proof(proof)     the stream shows more records    -> whether to flush and emit
    emit(commit)        all of that is in the spool      -> Emitted, or ThrownAway

Each state of a chunk is a value of its own:

    Collecting    its low watermark is chosen, its rows are being read
    Offered       read; the stream must pass its barrier
    PassedChunk   a record written after the SELECT has come; what it is behind goes into the spool
    Emitted       in the stream, at a commit place, without the rows whose keys were touched
    ThrownAway    to be read again, with fewer rows at once

Chunks go out in the order of their keys, so that the state of a table is one key. A lower L and a
later P only drop more; so a crash before `emit` loses nothing, and a chunk may wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from informix_capture_client.errors import BadOption
from informix_capture_client.incremental_snapshot.barrier import Barrier, Proof
from informix_capture_client.incremental_snapshot.touched_keys import TouchedKeys

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


class Reconciliation:
    """The chunks of one table between their low watermarks and the stream.

    Args:
        touched: collects the keys of the table's changes; None where the table is locked instead, from
            before its barrier is set until its chunk is emitted.
        most_rows: how many rows a chunk has at first.
        after: the key behind which the snapshot goes on; None: at the table's first row.
        since: changes of the table at or below this commit are not in the stream.
    """

    def __init__(
        self,
        touched: TouchedKeys | None,
        most_rows: int,
        after: Bounds | None = None,
        since: int = 0,
    ) -> None:
        self._touched = touched
        self._most_rows = most_rows
        self._since = since
        self._emitted_up_to = self._read_up_to = after
        self._is_read = False
        self._forgettable = touched.complete_above if touched is not None else 0
        self._collecting: Collecting | None = None
        self._waiting: deque[Offered | PassedChunk] = deque()

    @property
    def is_read(self) -> bool:
        """Whether the table's last rows have been read, so that there is no next chunk."""
        return self._is_read

    @property
    def waiting(self) -> int:
        """How many chunks were read and are not in the stream."""
        return len(self._waiting)

    def begin(self, low: int) -> Collecting | None:
        """Begin to read the next chunk, or the same one anew after its reading has failed.

        Returns:
            None: touched keys are not known from this low watermark on; choose another one later.
        """
        if low < self._since or (self._touched is not None and low < self._touched.complete_above):
            return None
        if self._is_read:
            raise ValueError("the last rows of the table have been read")
        self._collecting = Collecting(low, self._read_up_to, self._most_rows)
        self._update_needed()
        return self._collecting

    def offer(
        self,
        chunk: Collecting,
        rows: pa.Table,
        last_key: Bounds | None,
        *,
        is_last: bool,
        barrier: Barrier,
    ) -> bool:
        """Accept the rows of a chunk; return whether they are used: those before may have been lost."""
        if chunk is not self._collecting:
            return False
        self._collecting, self._read_up_to, self._is_read = None, last_key, is_last
        self._waiting.append(Offered(chunk, rows, last_key, is_last, barrier))
        return True

    def on_proof(self, proof: Proof) -> bool:
        """Accept what the latest records prove.

        Returns:
            Whether something is due: what the stream has shown must be in the spool then, and its keys
            collected, before anything else of the stream is, and `emit` called.
        """
        for place, chunk in enumerate(self._waiting):
            if isinstance(chunk, Offered) and proof.passes(chunk.barrier):
                self._waiting[place] = PassedChunk(chunk)
        return bool(self._waiting) and (isinstance(self._waiting[0], PassedChunk) or self._is_lost())

    def emit(self, commit: int) -> Iterator[ChunkOutcome]:
        """Yield what is due at a commit place, the one that the stream has reached in the spool.

        Raises:
            BadOption: keys of the table are touched faster than chunks of one row can be read.
        """
        while self._waiting and not self._is_lost() and isinstance(self._waiting[0], PassedChunk):
            offered = self._waiting[0].offered
            emitted = self._emitted(offered, commit)
            self._waiting.popleft()
            self._emitted_up_to = offered.last_key
            yield emitted
        if self._is_lost():
            yield self._throw_away()

    def forget(self, commit: int) -> None:
        """Forget touched keys that no chunk needs, below a place older than a low watermark will be."""
        self._forgettable = max(self._forgettable, commit)
        if self._touched is not None:
            self._update_needed()
            self._touched.forget_up_to(self._touched.needed_above)

    def _update_needed(self) -> None:
        if self._touched is not None:
            lows = [chunk.low for chunk in self._unfinished()]
            self._touched.needed_above = min([*lows, self._forgettable])

    def _emitted(self, offered: Offered, commit: int) -> Emitted:
        low = offered.chunk.low
        if commit < low:
            raise ValueError(f"a chunk read above {low} cannot stand at {commit}")
        kept = offered.rows if self._touched is None else self._touched.untouched(offered.rows, low)
        dropped = len(offered.rows) - len(kept)
        return Emitted(commit, kept, dropped, offered.last_key, offered.is_last, offered.barrier.clock)

    def _unfinished(self) -> Iterator[Collecting]:
        for chunk in self._waiting:
            yield (chunk.offered if isinstance(chunk, PassedChunk) else chunk).chunk
        if self._collecting is not None:
            yield self._collecting

    def _is_lost(self) -> bool:
        """Return whether keys were forgotten that a chunk needs: there were too many."""
        if self._touched is None:
            return False
        return any(chunk.low < self._touched.complete_above for chunk in self._unfinished())

    def _throw_away(self) -> ThrownAway:
        if self._touched is not None and self._most_rows == 1:
            raise BadOption(
                f"keys of {self._touched.key.table} change faster than its rows are read: even for the"
                " smallest chunk, more keys changed than option snapshotMaxTouchedKeys allows.",
                "Raise snapshotMaxTouchedKeys, or run the snapshot when the table has fewer changes.",
                option="snapshotMaxTouchedKeys",
            )
        count = len(list(self._unfinished()))
        self._waiting.clear()
        self._collecting = None
        self._read_up_to, self._is_read = self._emitted_up_to, False
        self._most_rows = max(self._most_rows // 2, 1)
        return ThrownAway(count, self._emitted_up_to, self._most_rows)
