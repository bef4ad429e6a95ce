"""Streams of records, made by the emulator's builder, which shares no code with the reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from informix_capture_client.records.framing import RawRecords, RecordCutter
from informix_capture_client.records.records import (
    Control,
    RecordBlock,
    RecordKind,
    parse_block,
)
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions, StreamEvent
from informix_capture_client.transactions.pieces import Piece
from informix_emulator.log import records as build

ReadRow = tuple[RecordKind, int, int, int, bytes]
Read = ReadRow | Control

begin, commit, rollback, discard = build.begin, build.commit, build.rollback, build.discard
truncate, timeout, error, table_schema = (
    build.truncate,
    build.timeout,
    build.error,
    build.table_schema,
)


def row(
    sequence: int,
    transaction: int = 1,
    payload: bytes = b"",
    kind: RecordKind = RecordKind.INSERT,
    table: int = 0,
    sizes: Iterable[int] = (),
) -> bytes:
    """Build a row record."""
    packed = b"".join(size.to_bytes(4) for size in sizes)
    return build.row(kind, sequence, transaction, table, packed, payload)


def in_chunks(stream: bytes, size: int) -> Iterator[bytes]:
    """Cut a stream into chunks of one size."""
    return (stream[at : at + size] for at in range(0, len(stream), size))


def cut_at(stream: bytes, places: Iterable[int]) -> list[bytes]:
    """Cut a stream at the given places."""
    bounds = sorted({0, *(place % (len(stream) + 1) for place in places), len(stream)})
    return [stream[a:b] for a, b in pairwise(bounds)]


def raw_blocks(chunks: Iterable[bytes]) -> Iterator[RawRecords]:
    """Frame chunks."""
    cutter = RecordCutter()
    for chunk in chunks:
        if (raw := cutter.feed(chunk)) is not None:
            yield raw
    if cutter.failure is not None:
        raise cutter.failure


def blocks(chunks: Iterable[bytes]) -> Iterator[RecordBlock]:
    """Frame and parse chunks."""
    return map(parse_block, raw_blocks(chunks))


def rows_in(block: RecordBlock, places: Iterable[int]) -> list[ReadRow]:
    """Return row records as values."""
    raw = block.raw
    found = []
    for index in places:
        payload = int(raw.starts[index] + raw.header_sizes[index])
        found.append(
            (
                RecordKind(int(raw.kinds[index])),
                int(block.sequence_numbers[index]),
                int(block.transaction_ids[index]),
                int(block.table_ids[index]),
                raw.data[payload : payload + int(raw.payload_sizes[index])],
            )
        )
    return found


def read_all(chunks: Iterable[bytes]) -> list[Read]:
    """Return every record of a stream as a value."""
    found: list[Read] = []
    for block in blocks(chunks):
        for index in range(len(block.is_row)):
            is_row = bool(block.is_row[index])
            found += rows_in(block, [index]) if is_row else [block.control(index)]
    return found


def rows_of(transactions: CommittedTransactions) -> list[ReadRow]:
    """Return the rows of transactions in their order."""
    return [row for piece in map(loaded, transactions.rows) for row in rows_in(*piece)]


def loaded(piece: Piece) -> tuple[RecordBlock, list[int]]:
    """Return where the records of a piece are, read back if they were put aside."""
    rows = piece.loaded()
    return rows.block, rows.places.tolist()


def one_by_one(events: Iterable[StreamEvent]) -> Iterator[StreamEvent]:
    """Take every transaction out of its batch."""
    for event in events:
        yield from event.each() if isinstance(event, CommittedTransactions) else [event]


def feed(assembler: TransactionAssembler, *records: bytes) -> list[StreamEvent]:
    """Feed records as one chunk and return the events, transactions one by one."""
    return feed_chunks(assembler, [b"".join(records)])


def feed_chunks(assembler: TransactionAssembler, chunks: Iterable[bytes]) -> list[StreamEvent]:
    """Feed chunks and return the events, transactions one by one."""
    return [event for block in blocks(chunks) for event in one_by_one(assembler.feed(block))]
