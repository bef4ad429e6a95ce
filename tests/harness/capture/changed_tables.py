"""Transactions of several tables, as a session would read them, and an encoder that knows these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from harness.capture.decoding import EncodedRow, decode_rows, encode_rows
from harness.capture.shaped import Shaped
from harness.capture.streams import begin, blocks, commit, in_chunks, row, truncate
from harness.capture.tables import make_table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.positions import Position
from informix_capture_client.records import RecordKind, TableSchema
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions
from informix_capture_client.transactions.spilling import MemoryLimit
from informix_capture_client.values import TableDecoder

# What happens in a transaction: a kind, a table's number and the place of a row among those given.
Change = tuple[RecordKind, int, int]
BEGUN = 1_700_000_000


class ChangedTables:
    """Tables with some rows each, and the transactions in which they change.

    Args:
        columns: the columns of each table.
        rows: rows of each table.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[dict[str, object]]]) -> None:
        described = [encode_rows(text, of) for text, of in zip(columns, rows, strict=True)]
        self._columns = [text for text, _ in described]
        self._rows: list[list[EncodedRow]] = [encoded for _, encoded in described]
        self.tables = [make_table(f"t{n}", text) for n, text in enumerate(columns)]

    def encoder(self, form: RowForm) -> Shaped:
        """Return an encoder that has heard of all tables."""
        made = Shaped(self.tables, DecodeRules(), form)
        for place, text in enumerate(self._columns):
            decoder = TableDecoder(text)
            layout = (decoder.fixed_bytes, len(decoder.columns), decoder.variable_count)
            made.announce(TableSchema(place, *layout, text))
        return made

    def transactions(
        self,
        changes: Sequence[Sequence[Change]],
        chunk: int = 1 << 20,
        limit: MemoryLimit | None = None,
    ) -> list[CommittedTransactions]:
        """Return transactions with these changes, one after the other; some spilled, if limited."""
        stream, number = b"", 1
        for transaction, of in enumerate(changes, start=1):
            stream += begin(number, transaction, BEGUN + transaction, 500 + transaction)
            for kind, table, place in of:
                number += 1
                stream += self._record(number, transaction, kind, table, place)
            number += 1
            stream += commit(number, transaction, BEGUN + 10 * transaction)
            number += 1
        assembler = TransactionAssembler(Position(0, 0))
        if limit is not None:
            assembler.limit_memory(limit)
        events = [e for block in blocks(in_chunks(stream, chunk)) for e in assembler.feed(block)]
        return [event for event in events if isinstance(event, CommittedTransactions)]

    def _record(self, number: int, transaction: int, kind: RecordKind, table: int, place: int) -> bytes:
        if kind == RecordKind.TRUNCATE:
            return truncate(number, transaction, table)
        sizes, payload = self._rows[table][place]
        return row(number, transaction, payload, kind, table, sizes)

    def row(self, table: int, place: int) -> dict[str, Any]:
        """Return a row as it is read."""
        (read,) = decode_rows(self._columns[table], [self._rows[table][place]]).to_pylist()
        return {column.name: read[column.name] for column in self.tables[table].columns}

    def columns_of(self, table: int) -> pa.Table:
        """Return all rows of a table as a snapshot would read them."""
        read = decode_rows(self._columns[table], self._rows[table])
        names = [column.name for column in self.tables[table].columns]
        return pa.Table.from_batches([read]).select(names)


def numbered(changes: Sequence[Sequence[Change]]) -> Iterator[tuple[int, int, int, Change]]:
    """Yield each change with its transaction's commit, its ordinal there and its own number."""
    number = 1
    for of in changes:
        commits = number + len(of) + 1
        for ordinal, change in enumerate(of):
            yield commits, ordinal, number + 1 + ordinal, change
        number = commits + 1


def plain_rows(batches: Sequence[pa.RecordBatch]) -> list[dict[str, object]]:
    """Return the rows of batches."""
    return [row for batch in batches for row in batch.to_pylist()]
