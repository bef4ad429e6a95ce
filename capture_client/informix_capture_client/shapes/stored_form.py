"""The spool format of rows of one table: values shared by a transaction are stored once.

Rule: the last stored column is run-end encoded, one run per transaction, with at least its
`_commit_version`; columns with few different texts are dictionaries. `stored_rows.py` of the spool
converts them into delivered rows, in the order of names in the schema's metadata. With ten rows in a
transaction, this saves a third of the bytes that are written, checked and synced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from informix_capture_client.records import Integers
from informix_capture_client.shapes.change_columns import Changes
from informix_capture_client.values import fixed_width, pick

TRANSACTION = "informix_cdc.transaction"
DELIVERED = b"informix_cdc.delivered"  # a name in files, not a module
TEXTS = pa.dictionary(pa.int32(), pa.string())

_INSTANT = pa.timestamp("us", "UTC")
_OF_CHUNKS = ("_commit_version", "_commit_timestamp")  # rows that a snapshot read have no other
_FIELDS: dict[str, tuple[str, pa.DataType]] = {
    "_commit_version": ("commit_sequence_numbers", pa.int64()),
    "_commit_timestamp": ("commit_times", _INSTANT),
    "_begin_timestamp": ("begin_times", _INSTANT),
    "_transaction_id": ("transaction_ids", pa.int32()),
    "_user_id": ("user_ids", pa.int32()),
}
SHARED_TYPES = {name: arrow_type for name, (_, arrow_type) in _FIELDS.items()}


def shared_names(wanted: Iterable[str]) -> list[str]:
    """Return the names of the columns that are stored once per transaction, in stored order."""
    return sorted({"_commit_version", *wanted}, key=list(_FIELDS).index)


def shared_values(names: Sequence[str], changes: Changes, which: Integers) -> list[pa.Array]:
    """Return the shared values of some transactions, by these names."""
    return [_values(name, changes, which) for name in names]


def _values(name: str, changes: Changes, which: Integers) -> pa.Array:
    source, arrow_type = _FIELDS[name]
    values = getattr(changes.of, source)[which]
    is_unknown = changes.is_read and name not in _OF_CHUNKS
    return fixed_width(arrow_type, values, np.full(len(values), is_unknown))


class StoredForm:
    """Stores rows of one schema.

    Args:
        delivered: the delivered columns, in order.
        texts: its columns with few different texts, which are stored as dictionaries.
        shared: its columns that are the same for all rows of a transaction.
    """

    def __init__(
        self, delivered: pa.Schema, texts: Sequence[str] = (), shared: Sequence[str] = ()
    ) -> None:
        self._names = shared_names(shared)
        self._shared = pa.struct([(name, _FIELDS[name][1]) for name in self._names])
        rows = [
            field.with_type(TEXTS) if field.name in texts else field
            for field in delivered
            if field.name not in self._names
        ]
        runs = pa.field(TRANSACTION, pa.run_end_encoded(pa.int32(), self._shared))
        order = json.dumps(delivered.names).encode()
        self.schema = pa.schema([*rows, runs], metadata={DELIVERED: order})

    def batch(self, columns: Sequence[pa.Array], changes: Changes) -> pa.RecordBatch:
        """Return a batch of the stored columns; `columns` are all but the last."""
        return pa.RecordBatch.from_arrays([*columns, self._runs(changes)], schema=self.schema)

    def _runs(self, changes: Changes) -> pa.RunEndEncodedArray:
        which = changes.transactions
        last = np.append(which[1:] != which[:-1], True)
        ends = np.flatnonzero(last)
        values = shared_values(self._names, changes, which[ends])
        return pa.RunEndEncodedArray.from_arrays(
            pa.array((ends + 1).astype(np.int32)),
            pa.StructArray.from_arrays(values, fields=list(self._shared)),
        )


class RepeatedTexts:
    """A column with few different texts."""

    def __init__(self, texts: Sequence[str | None]) -> None:
        self._texts = pa.array(texts, pa.string())

    def plain(self, numbers: np.ndarray) -> pa.StringArray:
        """Return the texts of these numbers as delivered."""
        return pick(self._texts, numbers)

    def of(self, numbers: np.ndarray) -> pa.DictionaryArray:
        """Return the texts of these numbers as stored."""
        indices = fixed_width(pa.int32(), numbers.astype(np.int32), np.zeros(len(numbers), bool))
        return pa.DictionaryArray.from_arrays(indices, self._texts)
