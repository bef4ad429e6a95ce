"""The metadata columns of a change.

Rule: names follow Delta's change data feed. Columns that minimal metadata omits can be joined by
(`_commit_version`, `_change_ordinal`), which is a row's key and order in every shape that has it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import Changes
from informix_capture_client.shapes.grouped_form import CODE, codes_of
from informix_capture_client.shapes.stored_form import RepeatedTexts
from informix_capture_client.values import booleans, fixed_width

_INSTANT = pa.timestamp("us", "UTC")

METADATA = pa.schema(
    [
        ("_change_type", pa.string()),
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", _INSTANT),
        ("_change_ordinal", pa.int32()),
        ("_change_seq", pa.int64()),
        ("_transaction_id", pa.int32()),
        ("_begin_timestamp", _INSTANT),
        ("_user_id", pa.int32()),
        ("_table", pa.string()),
        ("_snapshot", pa.bool_()),
    ]
)

# The three names of Delta's change data feed, of which an upsert takes kind and order and a watermark
# the time, and the place in the transaction, without which two changes of one row have no order.
_MINIMAL = ("_change_type", "_commit_version", "_commit_timestamp", "_change_ordinal")
_TABLE = "_table"

_TEXTS = ("_change_type", _TABLE)
_SHARED = (
    "_commit_version",
    "_commit_timestamp",
    "_transaction_id",
    "_begin_timestamp",
    "_user_id",
)


class ChangeMetadata:
    """Creates the metadata columns of one stream.

    Args:
        tables: the captured tables.
        change_types: the name of each kind of record.
        chosen: the columns, of `METADATA`.
    """

    def __init__(
        self, tables: CapturedTables, change_types: Mapping[int, str], chosen: pa.Schema
    ) -> None:
        self.schema = chosen
        self.texts = [name for name in _TEXTS if name in chosen.names]
        self.shared = [name for name in _SHARED if name in chosen.names]
        self._own = [name for name in chosen.names if name not in _SHARED]
        self.names = list(change_types.values())
        self.fields_of_coded = [
            pa.field("_change_type", CODE),
            *(chosen.field(name) for name in self._own if name not in _TEXTS),
        ]
        self._names = RepeatedTexts([str(table.name) for table in tables.tables])
        self._change_types = RepeatedTexts(list(change_types.values()))
        self._codes = np.zeros(max(change_types) + 1, np.int64)
        self._codes[list(change_types)] = np.arange(len(change_types))

    def columns(self, changes: Changes) -> list[pa.Array]:
        """Return the metadata of each change, without the columns that its transaction shares."""
        return [_COLUMNS[name](self, changes) for name in self._own]

    def coded(self, changes: Changes) -> list[pa.Array]:
        """Return the same columns in stored form for groups: the kind as a code, without the table."""
        others = [_COLUMNS[name](self, changes) for name in self._own if name not in _TEXTS]
        return [codes_of(self._codes[changes.kinds]), *others]

    def _change_type(self, changes: Changes) -> pa.Array:
        return self._change_types.of(self._codes[changes.kinds])

    def _ordinal(self, changes: Changes) -> pa.Array:
        return fixed_width(pa.int32(), changes.ordinals.astype(np.int32), _nothing(changes))

    def _sequence_number(self, changes: Changes) -> pa.Array:
        return fixed_width(pa.int64(), changes.sequence_numbers, changes.unknown())

    def _table(self, changes: Changes) -> pa.Array:
        return self._names.of(changes.table_ids)

    def _snapshot(self, changes: Changes) -> pa.Array:
        return booleans(np.full(len(changes), changes.is_read), _nothing(changes))


_COLUMNS = {
    "_change_type": ChangeMetadata._change_type,
    "_change_ordinal": ChangeMetadata._ordinal,
    "_change_seq": ChangeMetadata._sequence_number,
    "_table": ChangeMetadata._table,
    "_snapshot": ChangeMetadata._snapshot,
}


def metadata_schema(choice: str, table_count: int) -> pa.Schema:
    """Return the metadata columns for option metadata; with several tables, including the table."""
    if choice == "full":
        return METADATA
    named = (*_MINIMAL, _TABLE) if table_count > 1 else _MINIMAL
    return pa.schema([field for field in METADATA if field.name in named])


def _nothing(changes: Changes) -> np.ndarray:
    return np.zeros(len(changes), bool)
