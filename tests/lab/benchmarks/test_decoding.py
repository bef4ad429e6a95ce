"""Rows to columns, beside the plain way that takes one row after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from informix_capture_client.records.records import ROW_HEADER_BYTES
from informix_capture_client.shapes import change_count
from informix_capture_client.shapes.change_columns import BATCH_ROWS
from informix_capture_client.values.table_decoder import Payloads, TableDecoder
from lab.benchmarks.measuring import REPEATS, Report, Timing, one_core, repeated, timed
from lab.benchmarks.pipeline import prepared
from lab.benchmarks.row_by_row import decode_row, decode_rows
from lab.benchmarks.workload import captured

ROWS = 200_000
SIZES_BYTES = 8  # of two variable columns


def raw_rows(reads: tuple[bytes, ...]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the size array and the payload of every inserted row."""
    for read in reads:
        at = 0
        while at < len(read):
            header, payload, kind = (int.from_bytes(read[at + n : at + n + 4]) for n in (0, 4, 12))
            if kind == 40:
                sizes = read[at + ROW_HEADER_BYTES : at + ROW_HEADER_BYTES + SIZES_BYTES]
                yield sizes, read[at + header : at + header + payload]
            at += header + payload


def in_batches(rows: list[tuple[bytes, bytes]]) -> Iterator[Payloads]:
    """Line rows up as the decoder takes them."""
    for first in range(0, len(rows), BATCH_ROWS):
        batch = rows[first : first + BATCH_ROWS]
        lengths = np.array([len(payload) for _, payload in batch], np.int64)
        sizes = np.frombuffer(b"".join(sizes for sizes, _ in batch), ">u4").astype(np.int64)
        data = b"".join(payload for _, payload in batch)
        yield Payloads(data, np.cumsum(lengths) - lengths, lengths, sizes.reshape(-1, 2))


def test_rows_are_decoded(report: Report) -> None:
    source = captured(ROWS, 10)
    encoder, announced, transactions = prepared(source)
    rows = list(raw_rows(source.reads))
    batches = list(in_batches(rows))
    decoder = TableDecoder(announced.columns)
    pieces = [rows[first : first + BATCH_ROWS] for first in range(0, ROWS, BATCH_ROWS)]
    schema = decoder.schema
    for piece, batch in zip(pieces, batches, strict=True):
        assert decoder.decode(batch).equals(decode_rows(piece, schema))
    assert sum(map(change_count, encoder.encode(transactions))) == ROWS
    with one_core():
        by_column, by_row, values_only = in_turn(
            lambda: decode_all(decoder, batches),
            lambda: decode_all_by_row(pieces, schema),
            lambda: [decode_row(*row) for row in rows],
        )
        with_metadata = repeated(lambda: list(encoder.encode(transactions)))
    beside = f"row by row {by_row.rate(ROWS)}: {by_column.times_faster_than(by_row)}"
    report.add("decoding", "ten columns to Arrow", by_column.rate(ROWS), beside)
    beside = f"row by row {values_only.rate(ROWS)}: {by_column.times_faster_than(values_only)}"
    report.add("decoding", "beside plain decoding to Python values", by_column.rate(ROWS), beside)
    report.add("decoding", "and the columns of the change", with_metadata.rate(ROWS))


def in_turn(*works: Callable[[], object]) -> list[Timing]:
    """Time several works one after the other, again and again: a noisy moment hits all of them."""
    rounds = [[timed(work) for work in works] for _ in range(REPEATS)]
    return [Timing(tuple(seconds)) for seconds in zip(*rounds, strict=True)]


def decode_all(decoder: TableDecoder, batches: list[Payloads]) -> None:
    """Decode and drop batches, as a capture does that hands them on."""
    for batch in batches:
        decoder.decode(batch)


def decode_all_by_row(pieces: list[list[tuple[bytes, bytes]]], schema: pa.Schema) -> None:
    for piece in pieces:
        decode_rows(piece, schema)
