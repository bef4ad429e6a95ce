"""shape=raw, for audits: every record of a committed transaction, undecoded.

Rule: nothing is checked or decoded; header and payload are the bytes that the server sent. A
transaction is its BEGINTX, its rows and truncates without discarded ones, and its COMMTX. For BEGINTX
and COMMTX the assembler must keep the bounds (`TransactionAssembler.with_bounds`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np
import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption
from informix_capture_client.records import BOUNDS, Integers, RecordKind
from informix_capture_client.shapes.announced_tables import AnnouncedTables
from informix_capture_client.shapes.change_columns import Changes, ChunkRows, lined_up
from informix_capture_client.shapes.encoder import ChangeEncoder, EncodedRows
from informix_capture_client.shapes.stored_form import RepeatedTexts, StoredForm
from informix_capture_client.transactions import CommittedTransactions
from informix_capture_client.values import byte_strings, fixed_width

_NO_TABLE = 0
_SCHEMA = pa.schema(
    [
        ("record_type", pa.string()),
        ("sequence_number", pa.int64()),
        ("transaction_id", pa.int32()),
        ("table", pa.string()),
        ("header", pa.binary()),
        ("payload", pa.binary()),
        ("_commit_version", pa.int64()),
        ("_change_ordinal", pa.int32()),
    ]
)
_FORM = StoredForm(_SCHEMA, texts=("record_type", "table"))


class RawEncoder(ChangeEncoder):
    """Encodes transactions as one row per record, with the names of record types in `syscdcrectypes`.

    Args:
        tables: the tables; a table's id is its index in the list.
        rules: for checking the layouts that the stream announces.
        since: by table id, the commit at which it joined: changes at or below are not in the stream.
    """

    schema = _SCHEMA

    def __init__(
        self, tables: Sequence[Table], rules: DecodeRules, since: Mapping[int, int] | None = None
    ) -> None:
        super().__init__(AnnouncedTables(tables, rules), since)
        self._tables = RepeatedTexts([None, *(str(table.name) for table in tables)])
        self._kinds = RepeatedTexts([f"CDC_REC_{kind.name}" for kind in RecordKind])
        self._codes = np.zeros(max(RecordKind) + 1, np.int64)
        self._codes[list(RecordKind)] = np.arange(len(RecordKind))

    def encode(self, transactions: Sequence[CommittedTransactions]) -> EncodedRows:
        """Return the records of whole transactions, in commit order."""
        known = map(self._announced.require_known, lined_up(transactions))
        of_the_stream = filter(len, map(self._joined.of_the_stream, known))
        return EncodedRows(_FORM.schema, map(self._batch, of_the_stream))

    def encode_chunk(self, _chunk: ChunkRows) -> NoReturn:
        """Reject snapshot rows."""
        _refuse_snapshot()

    def encode_beginning(
        self, _number: int, _commit: int, _ordinal: int, _read_at: int, _kind: int = 0
    ) -> NoReturn:
        """Reject the row that begins a snapshot."""
        _refuse_snapshot()

    def _batch(self, records: Changes) -> pa.RecordBatch:
        has_table = ~BOUNDS[records.kinds]
        nothing = np.zeros(len(records), bool)
        columns = [
            self._kinds.of(self._codes[records.kinds]),
            fixed_width(pa.int64(), records.sequence_numbers, nothing),
            fixed_width(pa.int32(), records.of.transaction_ids.take(records.transactions), nothing),
            self._tables.of(np.where(has_table, records.table_ids + 1, _NO_TABLE)),
            _bytes(records, records.starts, records.header_sizes),
            _bytes(records, records.starts + records.header_sizes, records.payload_sizes),
            fixed_width(pa.int32(), records.ordinals.astype(np.int32), nothing),
        ]
        return _FORM.batch(columns, records)


def _refuse_snapshot() -> NoReturn:
    raise BadOption(
        "shape=raw delivers log records, but the rows of initialSnapshot are not in the log.",
        "Set shape to rows, json, arrow or envelope, or initialSnapshot to none.",
    )


def _bytes(records: Changes, starts: Integers, lengths: Integers) -> pa.Array:
    data = np.frombuffer(records.data, np.uint8)
    return byte_strings(data, starts, lengths, np.zeros(len(starts), bool)).cast(pa.binary())
