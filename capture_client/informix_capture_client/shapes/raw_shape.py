"""The shape for audits: every record of a committed transaction, undecoded.

Rule: nothing is judged and nothing is decoded; header and payload are the bytes that the server sent.
A transaction is its BEGINTX, the rows and truncates that DISCARD left, and its COMMTX.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from informix_capture_client.records import BOUNDS, Integers, RecordKind
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import Changes
from informix_capture_client.shapes.stored_form import RepeatedTexts, StoredForm
from informix_capture_client.values import byte_strings, fixed_width

_NO_TABLE = 0


class RawShape:
    """One row per record; names of record types are those of `syscdcrectypes`."""

    with_bounds = True
    is_grouped = False
    schema = pa.schema(
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
    _form = StoredForm(schema, texts=("record_type", "table"))
    stored_schema = _form.schema

    def __init__(self, tables: CapturedTables) -> None:
        self._tables = RepeatedTexts([None, *(str(table.name) for table in tables.tables)])
        self._kinds = RepeatedTexts([f"CDC_REC_{kind.name}" for kind in RecordKind])
        self._codes = np.zeros(max(RecordKind) + 1, np.int64)
        self._codes[list(RecordKind)] = np.arange(len(RecordKind))

    def begin(self, present: Sequence[int]) -> None:
        """Begin with the records of another sequence of transactions."""

    def encode(self, changes: Changes) -> pa.RecordBatch:
        """Return records as rows."""
        has_table = ~BOUNDS[changes.kinds]
        nothing = np.zeros(len(changes), bool)
        columns = [
            self._kinds.of(self._codes[changes.kinds]),
            fixed_width(pa.int64(), changes.sequence_numbers, nothing),
            fixed_width(pa.int32(), changes.of.transaction_ids.take(changes.transactions), nothing),
            self._tables.of(np.where(has_table, changes.table_ids + 1, _NO_TABLE)),
            _bytes(changes, changes.starts, changes.header_sizes),
            _bytes(changes, changes.starts + changes.header_sizes, changes.payload_sizes),
            fixed_width(pa.int32(), changes.ordinals.astype(np.int32), nothing),
        ]
        return self._form.batch(columns, changes)


def _bytes(changes: Changes, starts: Integers, lengths: Integers) -> pa.Array:
    data = np.frombuffer(changes.data, np.uint8)
    return byte_strings(data, starts, lengths, np.zeros(len(starts), bool)).cast(pa.binary())
