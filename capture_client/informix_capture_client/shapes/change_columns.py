"""Arrange the records of committed transactions, and the rows of chunks, in batches of columns.

Rule: batches fit in the processor's cache, and the two images of an update are never split. Decisions
at commit time are made on these columns, after DISCARDs were applied. A snapshot row is an INSERT of
which only commit and time are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.object_readers import FoundContents
from informix_capture_client.positions import show
from informix_capture_client.records import Bits, Integers, RecordBlock, RecordKind
from informix_capture_client.transactions import BlockRecords, CommittedTransactions, Piece

BATCH_ROWS = 8192
BATCH_BYTES = 8 << 20  # of wide rows fewer make a batch

_COLUMNS = (
    "starts",
    "header_sizes",
    "payload_sizes",
    "kinds",
    "sequence_numbers",
    "table_ids",
    "transactions",
    "ordinals",
)


class RangeKind(IntEnum):
    """Rows that describe a chunk of rows that are read again, by numbers that no record has.

    RANGE_START and RANGE_END have the limits of the chunk's keys, the first exclusive, the second
    inclusive; a NULL stands for "before" or "after everything". RANGE_SKIP has a key that changed while
    the chunk was read: the stream has its current row. Other columns are NULL.
    """

    RANGE_START = 150  # of rows that replace those of a copy
    VERIFY_START = 151  # of rows to compare with a copy
    REPAIR_START = 152  # of rows to compare with a copy, and to replace it
    RANGE_SKIP = 153
    RANGE_END = 154
    RESYNC_BEGIN = 155  # before the first chunk: a copy that is behind can follow from here on


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """Rows of one table read by a snapshot, and their position in the stream.

    Attributes:
        number: the table's id in the stream.
        rows: the table's captured columns in table order, with delivered types.
        commit: the version that the rows get.
        first_ordinal: the index of the first row among all rows with that version.
        read_at: the server's time after the read, in seconds since 1970.
        kind: INSERT; TRUNCATE or RESYNC_BEGIN for the single row that begins a snapshot, whose columns
            are NULL; or the kind of each row, if there are `RangeKind` rows among them.
    """

    number: int
    rows: pa.Table
    commit: int
    first_ordinal: int
    read_at: int
    kind: int | Integers = RecordKind.INSERT


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Records of committed transactions in delivery order: one entry per record in each array.

    Attributes:
        data: the bytes that `starts` refer to.
        transactions: the index of a record's transaction in `of`.
        ordinals: the 0-based index of a record in its transaction.
        of: the transactions that the records belong to.
        read: the rows, if a snapshot has read them: all of one table, with nothing left to
            decode. There are no records then, and only commit and time of `of` are known.
        objects: the contents of their large objects; None if not requested.
    """

    data: bytes
    starts: Integers
    header_sizes: Integers
    payload_sizes: Integers
    kinds: Integers
    sequence_numbers: Integers
    table_ids: Integers
    transactions: Integers
    ordinals: Integers
    of: TransactionColumns
    read: pa.RecordBatch | None = None
    objects: FoundContents | None = None

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def commits(self) -> Integers:
        """The sequence number of the commit of each record."""
        commits: Integers = self.of.commit_sequence_numbers[self.transactions]
        return commits

    def rows_of(self, table_id: int) -> Bits:
        """Return which records have a row of a table; a TRUNCATE has none."""
        mine: Bits = (self.table_ids == table_id) & (self.kinds != RecordKind.TRUNCATE)
        return mine

    def where(self, record: int) -> str:
        """Return a record's place in the log, for error texts."""
        return show(int(self.sequence_numbers[record]))

    def only(self, chosen: NDArray[Any] | slice) -> Changes:
        """Return some of the records."""
        columns = {name: getattr(self, name)[chosen] for name in _COLUMNS}
        if self.read is not None:
            every = np.arange(len(self))
            places = every[chosen]
            is_all = np.array_equal(places, every)
            columns["read"] = self.read if is_all else self.read.take(pa.array(places))
        return replace(self, **columns)

    @property
    def is_read(self) -> bool:
        """Whether these are snapshot rows."""
        return self.read is not None

    def unknown(self) -> Bits:
        """Return which records have only table, place, commit and time: all or none."""
        return np.full(len(self), self.is_read)


@dataclass(frozen=True, slots=True, eq=False)
class TransactionColumns:
    """The values that the records of a transaction share; one entry per transaction.

    Times are microseconds since 1970, UTC.
    """

    commit_sequence_numbers: Integers
    commit_times: Integers
    begin_sequence_numbers: Integers
    begin_times: Integers
    transaction_ids: NDArray[np.int32]
    user_ids: NDArray[np.int32]
    record_counts: Integers

    @classmethod
    def of(cls, batches: Sequence[CommittedTransactions]) -> TransactionColumns:
        """Combine several batches of transactions."""

        def joined(pick: Callable[[CommittedTransactions], Integers]) -> Integers:
            return np.concatenate([pick(batch) for batch in batches])

        return cls(
            joined(lambda t: t.commit_sequence_numbers),
            joined(lambda t: t.commit_times) * 1_000_000,
            joined(lambda t: t.begin_sequence_numbers),
            joined(lambda t: t.begin_times) * 1_000_000,
            joined(lambda t: t.transaction_ids).astype(np.int32),
            joined(lambda t: t.user_ids).astype(np.int32),
            joined(lambda t: t.record_counts),
        )

    def between(self, first: int, end: int) -> TransactionColumns:
        """Return some of the transactions."""
        arrays = (getattr(self, column.name)[first:end] for column in fields(self))
        return TransactionColumns(*arrays)


def tables_in(batches: Sequence[CommittedTransactions], count: int) -> list[int]:
    """Return which of `count` tables occur in transactions, without reading spilled records."""
    found = np.zeros(count, bool)
    for piece in (piece for batch in batches for piece in batch.rows):
        tables = piece.tables
        found[tables[(tables >= 0) & (tables < count)]] = True
    return np.flatnonzero(found).tolist()


def lined_up(
    batches: Sequence[CommittedTransactions], limits: tuple[int, int] | None = None
) -> Iterator[Changes]:
    """Yield all records of whole transactions, in order.

    Args:
        batches: the transactions.
        limits: the approximate rows and bytes of records per item.
    """
    if not batches:
        return
    most_rows, most_bytes = limits or (BATCH_ROWS, BATCH_BYTES)
    of = TransactionColumns.of(batches)
    ends = np.cumsum(of.record_counts)
    at = 0
    for group in _groups((rows for batch in batches for rows in batch.rows), most_rows, most_bytes):
        changes = _line_up(group, at, ends, of)
        at += len(changes)
        yield changes


def rows_of_chunk(chunk: ChunkRows) -> Iterator[Changes]:
    """Yield the rows of a chunk, in order."""
    one, times = np.ones(1, np.int64), np.array([chunk.read_at * 1_000_000])
    ids = np.zeros(1, np.int32)
    of = TransactionColumns(one * chunk.commit, times, one, times, ids, ids, one * len(chunk.rows))
    mean_bytes = max(chunk.rows.nbytes // max(len(chunk.rows), 1), 1)
    most = max(min(BATCH_ROWS, BATCH_BYTES // mean_bytes), 1)
    first, at = chunk.first_ordinal, 0
    every_kind = np.broadcast_to(np.asarray(chunk.kind), len(chunk.rows))
    for read in chunk.rows.combine_chunks().to_batches(most):
        none = np.zeros(len(read), np.int64)
        kinds, tables = every_kind[at : at + len(read)], np.full(len(read), chunk.number)
        at += len(read)
        ordinals = np.arange(first, first + len(read))
        yield Changes(b"", none, none, none, kinds, none, tables, none, ordinals, of, read)
        first += len(read)


def _groups(pieces: Iterator[Piece], most_rows: int, most_bytes: int) -> Iterator[list[BlockRecords]]:
    """Group rows into batches; a block is split only if it does not fit into one.

    A trailing first image of an update is held back. Spilled records are read when needed, and released
    with their last batch.
    """
    # `group` is what the next batch has so far, with `count` rows of about `size_bytes`. A piece is in
    # it, or was yielded, up to `at`. A batch that is half full is closed where the rest of the piece
    # does not fit; one that is not gets as much of the piece as fits.
    group: list[BlockRecords] = []
    count = size_bytes = 0
    for piece in pieces:
        at, rows = 0, piece.loaded()
        mean_bytes = max(rows.record_bytes // max(len(rows), 1), 1)
        while at < len(rows):
            room = min(most_rows - count, (most_bytes - size_bytes) // mean_bytes)
            is_half_full = count >= most_rows // 2 or size_bytes >= most_bytes // 2
            if len(rows) - at > room and is_half_full:
                group, held_back = _without_half_update(group)
                yield group
                group, count, size_bytes = held_back, len(held_back), 0
                continue
            part = rows.part(at, at + max(room, 1))
            group.append(part)
            at, count = at + len(part), count + len(part)
            size_bytes += len(part) * mean_bytes
    if group:
        yield group


def _without_half_update(group: list[BlockRecords]) -> tuple[list[BlockRecords], list[BlockRecords]]:
    """Split off a trailing first image of an update, whose second image must follow."""
    last = group[-1]
    if last.block.raw.kinds[last.places[-1]] != RecordKind.UPDBEF:
        return group, []
    end = len(last) - 1
    return [*group[:-1], last.part(0, end)], [last.part(end, end + 1)]


def _without_other_records(group: list[BlockRecords]) -> list[BlockRecords]:
    """Return rows in blocks of which they are at least half.

    A block may have the records of a hundred transactions that end at other times: processing all of
    them each time cost 10 us per row with 1,000 open transactions (decision 0006).
    """
    of_block: dict[int, list[BlockRecords]] = {}
    for rows in group:
        of_block.setdefault(id(rows.block), []).append(rows)
    used = {key: sum([len(rows) for rows in pieces]) for key, pieces in of_block.items()}
    sparse = [key for key, pieces in of_block.items() if 0 < 2 * used[key] < len(pieces[0].block)]
    picked: dict[int, Iterator[BlockRecords]] = {}
    for key in sparse:
        block = of_block[key][0].block.only(np.concatenate([rows.places for rows in of_block[key]]))
        ends = np.cumsum([len(rows) for rows in of_block[key]]).tolist()
        places = [np.arange(first, end) for first, end in pairwise([0, *ends])]
        picked[key] = iter([BlockRecords(block, at) for at in places])
    return [next(picked[id(rows.block)]) if id(rows.block) in picked else rows for rows in group]


def _line_up(group: list[BlockRecords], first: int, ends: Integers, of: TransactionColumns) -> Changes:
    """Arrange the records after the first `first` ones; `ends` has the end of each transaction."""
    group = _without_other_records(group)
    blocks = list({id(rows.block): rows.block for rows in group}.values())
    counts = np.array([len(block) for block in blocks])
    bases = dict(zip(map(id, blocks), (np.cumsum(counts) - counts).tolist(), strict=True))
    places = np.concatenate([rows.places + bases[id(rows.block)] for rows in group])
    end = first + len(places)
    begun, done = np.searchsorted(ends, [first, end], side="right").tolist()
    bounds = np.minimum(ends[begun : done + 1], end)
    which = np.repeat(np.arange(len(bounds)), np.diff(bounds, prepend=first))
    before = (ends - of.record_counts)[begun : done + 1]
    starts, headers, payloads, kinds, numbers, tables = _header_columns(blocks, counts, places)
    return Changes(
        blocks[0].raw.data if len(blocks) == 1 else b"".join([block.raw.data for block in blocks]),
        starts,
        headers,
        payloads,
        kinds,
        numbers,
        tables,
        which,
        np.arange(first, end) - before[which],
        of.between(begun, done + 1),
    )


def _header_columns(blocks: list[RecordBlock], counts: Integers, places: Integers) -> list[Integers]:
    """Return the first columns of `Changes`, `starts` to `table_ids`; places count over all blocks."""
    sizes = np.array([len(block.raw.data) for block in blocks])
    offsets = np.repeat(np.cumsum(sizes) - sizes, counts)
    columns = (
        np.concatenate([block.raw.starts for block in blocks]) + offsets,
        np.concatenate([block.raw.header_sizes for block in blocks]),
        np.concatenate([block.raw.payload_sizes for block in blocks]),
        np.concatenate([block.raw.kinds for block in blocks]),
        np.concatenate([block.sequence_numbers for block in blocks]),
        np.concatenate([block.table_ids for block in blocks]),
    )
    return [column[places] for column in columns]


class KeyObserver(Protocol):
    """Collects the keys that transactions touch, by table number."""

    def key_columns(self) -> Mapping[int, Sequence[str]]:
        """Return the key columns of each observed table."""
        ...

    def touch(self, number: int, columns: Sequence[pa.Array], commits: Integers) -> None:
        """Add the keys of images, as columns, with their commits."""

    def truncate(self, number: int, commit: int) -> None:
        """Record that a transaction truncated the table."""
