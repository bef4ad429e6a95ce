"""Rows of the benchmark over many tables: committed transactions, and their encoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from benchmarks.pipeline import events_of
from benchmarks.workload import COLUMNS, TABLE, catalog_table, rows_without_end
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.emulator import records
from informix_capture_client.emulator.tables import Capture, make_table
from informix_capture_client.records.records import Kind, TableSchema
from informix_capture_client.shapes.encoder import ChangeEncoder
from informix_capture_client.sql_names import TableName
from informix_capture_client.transactions.events import Transactions

ROWS_PER_TRANSACTION = 10
_DIFFERENT_ROWS = 5000
_READ_BYTES = 1 << 20


def encoder_of(tables: int, row_form: RowForm) -> ChangeEncoder:
    """Return what encodes changes of so many tables of the same columns."""
    names = [TableName("bench", "informix", f"lines_{number}") for number in range(tables)]
    made = ChangeEncoder(
        [replace(catalog_table(), name=name) for name in names], DecodeRules(), row_form
    )
    table = make_table(TABLE, COLUMNS, "en_US.utf8", 100, "table")
    described = Capture(table, [column.name for column in table.columns], 0)
    for number in range(tables):
        made.announce(TableSchema(number, *described.counts, described.schema_text.decode()))
    return made


def transactions_of(tables: int, rows: int) -> list[Transactions]:
    """Return inserts spread evenly over so many tables, ten to a transaction."""
    found = events_of(list(_reads(tables, rows)))
    return [event for event in found if isinstance(event, Transactions)]


def _reads(tables: int, rows: int) -> Iterator[bytes]:
    table = make_table(TABLE, COLUMNS, "en_US.utf8", 100, "table")
    encoded = [table.encode(row) for row in islice(rows_without_end(), _DIFFERENT_ROWS)]
    pieces: list[bytes] = []
    for number in range(rows):
        transaction = 10 + number // ROWS_PER_TRANSACTION % 1000
        sequence = number * 0x40 + 0x1000
        if number % ROWS_PER_TRANSACTION == 0:
            pieces.append(records.begin(sequence - 8, transaction, 1_700_000_000, 1000))
        sizes, payload = encoded[number % len(encoded)]
        pieces.append(
            records.row(Kind.INSERT, sequence, transaction, number * 7919 % tables, sizes, payload)
        )
        if number % ROWS_PER_TRANSACTION == ROWS_PER_TRANSACTION - 1:
            pieces.append(records.commit(sequence + 8, transaction, 1_700_000_001))
        if len(pieces) > 10_000:
            yield b"".join(pieces)
            pieces = []
    yield b"".join(pieces)
