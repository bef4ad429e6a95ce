"""Pieces of a transaction's records: in memory, by block and place, or spilled to a store.

Rule: a store only keeps bytes; this module turns them into records again. Loaded bytes are cut and
checked like those from a server (decision 0006).

    stored := the records, back to back
              header size u32, payload size u32 of each   kind u8 of each
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from informix_capture_client.records import MARGIN_BYTES, Integers, RawRecords, RecordBlock, parse_block

# The most bytes, but for one record, that are written to a store or read back at once.
PORTION_BYTES = 4 << 20
# Memory of a record in addition to its bytes: its entries in the columns of a block, and its place.
COLUMN_BYTES = 96
# Memory of a piece in addition to its records: arrays and objects, however few rows they name.
PIECE_BYTES = 512

_SIZE = np.dtype("<u4")
_KIND = np.dtype("u1")
_STORED_COLUMN_BYTES = 2 * _SIZE.itemsize + _KIND.itemsize


class StoredBytes(Protocol):
    """Bytes in a store; the store deletes them when this value is garbage-collected."""

    @property
    def size_bytes(self) -> int:
        """The number of bytes."""
        ...

    def load(self) -> bytes:
        """Return the bytes."""
        ...


class RowStore(Protocol):
    """A store for rows that do not fit in memory."""

    def keep(self, parts: Sequence[memoryview]) -> StoredBytes:
        """Write bytes, one part after the other."""
        ...


@dataclass(slots=True, eq=False)  # not frozen: there are many, and frozen costs three times as much
class BlockRecords:
    """Records of one block, by their places, in the order of their transaction.

    They belong to one long transaction, or to several consecutive short ones.

    `buffered_bytes` is the `size_bytes` that `BufferedRows` has counted for them, or 0.
    """

    block: RecordBlock
    places: Integers
    buffered_bytes: int = 0

    def __len__(self) -> int:
        return len(self.places)

    @property
    def tables(self) -> Integers:
        """The table numbers, each at least once."""
        return self.block.table_ids[self.places]

    @property
    def sequence_numbers(self) -> Integers:
        """The sequence number of each row."""
        return self.block.sequence_numbers[self.places]

    @property
    def first_number(self) -> int:
        """The sequence number of the first row."""
        return int(self.block.sequence_numbers[self.places[0]])

    @property
    def last_number(self) -> int:
        """The sequence number of the last row."""
        return int(self.block.sequence_numbers[self.places[-1]])

    @property
    def rises(self) -> bool:
        """Whether the sequence numbers never fall."""
        return _rise(self.sequence_numbers)

    @property
    def size_bytes(self) -> int:
        """The memory that they take, or would take in a separate block."""
        return self.block.bytes_of(self.places) + COLUMN_BYTES * len(self.places) + PIECE_BYTES

    @property
    def record_bytes(self) -> int:
        """The bytes of the records, from `buffered_bytes` if known."""
        if self.buffered_bytes:
            return self.buffered_bytes - COLUMN_BYTES * len(self.places) - PIECE_BYTES
        return self.block.bytes_of(self.places)

    def part(self, first: int, end: int) -> BlockRecords:
        """Return the records from `first` up to `end`."""
        return BlockRecords(self.block, self.places[first:end])

    def loaded(self) -> BlockRecords:
        """Return this value: the records are in memory."""
        return self


@dataclass(frozen=True, slots=True, eq=False)
class SpilledRecords:
    """Records of one long transaction, as bytes in a store.

    They are records `first` to `end` (exclusive) of the `count` records in `stored`. Sequence numbers
    and tables are those of all of them; `origin` is the stream byte of the first one.
    """

    stored: StoredBytes
    count: int
    origin: int
    first_number: int
    last_number: int
    rises: bool
    tables: Integers
    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first

    def part(self, first: int, end: int) -> SpilledRecords:
        """Return the records from `first` up to `end`, without reading them."""
        return replace(self, first=self.first + first, end=min(self.first + end, self.end))

    def loaded(self) -> BlockRecords:
        """Read the records back; the result is not cached.

        Raises:
            AccessRefused: the store cannot read them.
            ProtocolViolation: the bytes differ from the stored records.
        """
        stored = self.stored.load()
        columns = len(stored) - _STORED_COLUMN_BYTES * self.count
        sizes = np.frombuffer(stored, _SIZE, 2 * self.count, columns).astype(np.int64)
        kinds = np.frombuffer(stored, _KIND, self.count, len(stored) - self.count).astype(np.int64)
        headers, payloads = sizes[: self.count], sizes[self.count :]
        ends = np.cumsum(headers + payloads)
        data = b"".join([memoryview(stored)[:columns], bytes(MARGIN_BYTES)])
        raw = RawRecords(data, self.origin, ends - headers - payloads, headers, payloads, kinds)
        return BlockRecords(parse_block(raw), np.arange(self.first, self.end))


Piece = BlockRecords | SpilledRecords


def spill(pieces: Sequence[BlockRecords], store: RowStore) -> list[SpilledRecords]:
    """Write rows of one transaction to a store, in portions of a suitable size for reading."""
    return [_stored(portion, store) for portion in portions(pieces)]


def _stored(portion: Sequence[BlockRecords], store: RowStore) -> SpilledRecords:
    picked = [(rows.block.raw, rows.places) for rows in portion]
    sequence_numbers = np.concatenate([rows.sequence_numbers for rows in portion])
    stored = store.keep(
        [
            *[memoryview(rows.block.bytes_at(rows.places)) for rows in portion],
            np.concatenate([raw.header_sizes[places] for raw, places in picked]).astype(_SIZE).data,
            np.concatenate([raw.payload_sizes[places] for raw, places in picked]).astype(_SIZE).data,
            np.concatenate([raw.kinds[places] for raw, places in picked]).astype(_KIND).data,
        ]
    )
    first, last = int(sequence_numbers[0]), int(sequence_numbers[-1])
    count, rises = len(sequence_numbers), _rise(sequence_numbers)
    raw, places = picked[0]
    origin = raw.origin + int(raw.starts[places[0]])
    tables = np.unique(np.concatenate([rows.tables for rows in portion]))
    return SpilledRecords(stored, count, origin, first, last, rises, tables, 0, count)


def _rise(sequence_numbers: Integers) -> bool:
    return not bool((sequence_numbers[1:] < sequence_numbers[:-1]).any())


def portions(pieces: Sequence[BlockRecords]) -> Iterator[list[BlockRecords]]:
    """Yield rows of one transaction in portions of a suitable size for a block or a read.

    Their `buffered_bytes` must be set, so that small pieces are not measured again.
    """
    portion: list[BlockRecords] = []
    size_bytes = 0
    for piece in pieces:
        is_large = piece.buffered_bytes > PORTION_BYTES
        for rows in _cut(piece) if is_large else (piece,):
            added = rows.size_bytes if is_large else rows.buffered_bytes
            if portion and size_bytes + added > PORTION_BYTES:
                yield portion
                portion, size_bytes = [], 0
            portion.append(rows)
            size_bytes += added
    if portion:
        yield portion


def _cut(rows: BlockRecords) -> Iterator[BlockRecords]:
    """Split rows where their bytes reach the size of a portion."""
    raw, places = rows.block.raw, rows.places
    sizes = raw.header_sizes[places] + raw.payload_sizes[places]
    reached = (np.cumsum(sizes) - sizes) // PORTION_BYTES
    bounds = np.flatnonzero(np.diff(reached, prepend=-1, append=reached[-1] + 1)).tolist()
    for first, end in pairwise(bounds):
        yield rows.part(first, end)


def share_a_block(pieces: Sequence[BlockRecords]) -> None:
    """Copy pieces of one block into a common new block, if they are less than half of it.

    Also sets `buffered_bytes` of each piece.
    """
    block = pieces[0].block
    places = np.concatenate([rows.places for rows in pieces])
    counts = np.array(list(map(len, pieces)))
    sizes = block.raw.header_sizes[places] + block.raw.payload_sizes[places]
    held = np.add.reduceat(sizes, np.cumsum(counts) - counts) + COLUMN_BYTES * counts + PIECE_BYTES
    is_shared = not _is_most(block, int(sizes.sum()))
    shared, at = block.only(places) if is_shared else block, 0
    for rows, buffered_bytes in zip(pieces, held.tolist(), strict=True):
        rows.buffered_bytes = buffered_bytes
        if is_shared:
            rows.block, rows.places = shared, np.arange(at, at + len(rows))
            at += len(rows)


def in_a_block_of_their_own(pieces: Sequence[BlockRecords]) -> BlockRecords:
    """Return rows in a separate block, or unchanged if they are most of their block."""
    first = pieces[0]
    if len(pieces) == 1 and _is_most(first.block, first.block.bytes_of(first.places)):
        return first
    parts = [rows.block.only(rows.places) for rows in pieces]
    block = parts[0] if len(parts) == 1 else RecordBlock.joined(parts)
    return BlockRecords(block, np.arange(len(block)))


def _is_most(block: RecordBlock, size_bytes: int) -> bool:
    return 2 * size_bytes >= len(block.raw.data) - MARGIN_BYTES
