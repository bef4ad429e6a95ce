"""Insert the chunks of one table into the stream, each at a position where its rows are current.

Rule: values in, values out. From the progress of the snapshot's connection and of the stream, it
determines what may be read and what must be written.

For a chunk with low watermark L that is emitted at commit position P, a row is current at P if no
transaction in (L, P] has touched its key, given that L is settled (`Slots`) and that the stream has
passed a record written after the SELECT (`Barrier`). All other rows are dropped: the last transaction
that touched them is at or before P, and its image is newer or the same.

    begin(low)          a low watermark was chosen       -> Collecting, or None: choose again later
    offer(...)          the rows were read
    on_proof(proof)     the stream has more records      -> whether to flush and emit
    emit(commit)        all of that is in the spool      -> Emitted, or ThrownAway

Each state of a chunk has a class:

    Collecting    its low watermark is chosen, its rows are being read
    Offered       read; the stream must pass its barrier
    PassedChunk   a record written after the SELECT has arrived; the stream up to it must be spooled
    Emitted       in the stream, at a commit position, without the rows whose keys were touched
    ThrownAway    must be read again, with fewer rows per chunk

Chunks are emitted in key order, so that the progress of a table is one key. A lower L and a later P
only drop more rows; so a crash before `emit` loses nothing, and a chunk may wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from informix_capture_client.errors import BadOption
from informix_capture_client.incremental_snapshot.barrier import Barrier, Proof
from informix_capture_client.incremental_snapshot.touched_keys import TouchedKeys

Bounds = tuple[str, ...]  # a key as it was fetched: what statements are given, and offsets remember


@dataclass(frozen=True, slots=True)
class Collecting:
    """A chunk that is being read.

    Attributes:
        low: its low watermark; for a locked table, the position that the stream had reached.
        after: the key after which it starts; None: at the table's first row.
        most_rows: its maximum number of rows.
    """

    low: int
    after: Bounds | None
    most_rows: int


@dataclass(frozen=True, slots=True)
class Offered:
    """A chunk that was read.

    Attributes:
        rows: the rows, with the types of delivered changes.
        last_key: the key of its last row as fetched; without rows, the key where it started.
        is_last: whether the table has no more rows.
        barrier: that the stream must pass.
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
    """A chunk that was inserted into the stream.

    Attributes:
        commit: the commit position after which it is inserted.
        rows: its remaining rows.
        dropped: the number of rows dropped because the stream has newer versions.
        after: the key after which the chunk starts; None: at the table's first row.
        touched: the keys of which the stream may have newer versions, by column; None: of every key.
        last_key, is_last: as offered; progress counts rows that were read.
        read_at: the server's time when the last row was fetched, in seconds since 1970.
    """

    commit: int
    rows: pa.Table
    dropped: int
    last_key: Bounds | None
    is_last: bool
    read_at: int
    after: Bounds | None = None
    touched: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class ThrownAway:
    """Chunks that must be read again, after `after` and with at most `most_rows` rows."""

    chunks: int
    after: Bounds | None
    most_rows: int


ChunkOutcome = Emitted | ThrownAway


class Reconciliation:
    """Tracks the chunks of one table from their low watermarks until they are emitted.

    Args:
        touched: collects the keys of the table's changes; None if the table is locked from
            before its barrier is set until its chunk is emitted.
        most_rows: the initial number of rows per chunk.
        after: the key after which the snapshot resumes; None: at the table's first row.
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
        """The number of chunks that were read but not emitted."""
        return len(self._waiting)

    def begin(self, low: int) -> Collecting | None:
        """Start reading the next chunk, or the same one again after a failure.

        Returns:
            None if touched keys are not known from this low watermark on; choose another one later.
        """
        if low < self._since or (self._touched is not None and low < self._touched.complete_above):
            return None
        if self._is_read:
            raise ValueError("the last rows of the table have been read")
        self._collecting = Collecting(low, self._read_up_to, self._most_rows)
        self._update_needed()
        return self._collecting

    def skip(self, chunk: Collecting, after: Bounds) -> Collecting:
        """Let a chunk start after a later key: rows before it are not read."""
        if chunk is not self._collecting:
            return chunk
        self._collecting = replace(chunk, after=after)
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
        """Accept the rows of a chunk; return False if earlier chunks must be read again first."""
        if chunk is not self._collecting:
            return False
        self._collecting, self._read_up_to, self._is_read = None, last_key, is_last
        self._waiting.append(Offered(chunk, rows, last_key, is_last, barrier))
        return True

    def on_proof(self, proof: Proof) -> bool:
        """Process the proof in the latest records.

        Returns:
            Whether a chunk can be emitted. Then the stream so far must be written to the spool, and its
            keys collected, before `emit` is called and the stream continues.
        """
        is_beyond = False
        for place in reversed(range(len(self._waiting))):
            chunk = self._waiting[place]
            if isinstance(chunk, Offered):
                # A record beyond the log's end after a later chunk is beyond that after this one. Times
                # do not tell: the clock may have been set back in between.
                is_beyond = is_beyond or proof.is_beyond(chunk.barrier)
                if is_beyond or proof.passes(chunk.barrier):
                    self._waiting[place] = PassedChunk(chunk)
        return bool(self._waiting) and (isinstance(self._waiting[0], PassedChunk) or self._is_lost())

    def emit(self, commit: int) -> Iterator[ChunkOutcome]:
        """Yield the chunks to emit at the commit position that the stream has reached in the spool.

        Raises:
            BadOption: keys change faster than even chunks of one row can be read.
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
        """Drop touched keys that no chunk needs, below any future low watermark."""
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
        return Emitted(
            commit,
            kept,
            dropped,
            offered.last_key,
            offered.is_last,
            offered.barrier.clock,
            offered.chunk.after,
            None if self._touched is None else self._touched.touched_above(low),
        )

    def _unfinished(self) -> Iterator[Collecting]:
        for chunk in self._waiting:
            yield (chunk.offered if isinstance(chunk, PassedChunk) else chunk).chunk
        if self._collecting is not None:
            yield self._collecting

    def _is_lost(self) -> bool:
        """Return whether keys were dropped that a chunk needs, because there were too many."""
        if self._touched is None:
            return False
        return any(chunk.low < self._touched.complete_above for chunk in self._unfinished())

    def _throw_away(self) -> ThrownAway:
        if self._touched is not None and self._most_rows == 1:
            raise BadOption(
                f"keys of {self._touched.key.table} change faster than its rows are read: even for the"
                " smallest chunk, more keys changed than can be remembered.",
                "Start the query again when the table has fewer changes: the snapshot continues.",
                option="initialSnapshot",
            )
        count = len(list(self._unfinished()))
        self._waiting.clear()
        self._collecting = None
        self._read_up_to, self._is_read = self._emitted_up_to, False
        self._most_rows = max(self._most_rows // 2, 1)
        return ThrownAway(count, self._emitted_up_to, self._most_rows)
