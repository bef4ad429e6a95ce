"""The default shape: a table's columns and what is known about the change.

Rule: the schema depends on options and catalog only, never on data, so that it is known at load().
Names follow Delta's change data feed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_cdc.capture_client.arrow_arrays import booleans, fixed_width, pick
from informix_cdc.capture_client.captured_tables import CapturedTables
from informix_cdc.capture_client.catalog import Table
from informix_cdc.capture_client.changes import BATCH_ROWS, Changes
from informix_cdc.capture_client.errors import BadOption
from informix_cdc.capture_client.records import Kind

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

_CHANGE_TYPES = {
    Kind.INSERT: "insert",
    Kind.DELETE: "delete",
    Kind.UPDBEF: "update_preimage",
    Kind.UPDAFT: "update_postimage",
    Kind.TRUNCATE: "truncate",
}


class RowShape:
    """One row per change, an update as two; one table flat, several as one struct each.

    Raises:
        BadOption: a column has the name of a metadata column.
    """

    with_bounds = False

    def __init__(self, tables: CapturedTables) -> None:
        self._tables = tables
        self.schema = pa.schema([*_data_fields(tables), *METADATA])
        self.stored_schema = self.schema
        self._names = Spelled([str(table.name) for table in tables.tables])
        self._nothing = booleans(np.zeros(_MOST, bool), np.zeros(_MOST, bool))
        kinds = Spelled(list(_CHANGE_TYPES.values()))
        self._change_types = kinds
        self._codes = np.zeros(max(_CHANGE_TYPES) + 1, np.int64)
        self._codes[list(_CHANGE_TYPES)] = np.arange(len(_CHANGE_TYPES))

    def begin(self) -> None:
        """Begin with the records of another sequence of transactions."""

    def encode(self, changes: Changes) -> pa.RecordBatch:
        """Return changes as rows.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        columns = [*self._data_columns(changes), *self._metadata(changes)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _data_columns(self, changes: Changes) -> list[pa.Array]:
        tables = self._tables
        wanted = [tables.rows_of(number, changes) for number in range(len(tables))]
        if len(tables) == 1:
            return tables.columns_of(0, changes, wanted[0])
        return [tables.struct_of(number, changes, mine) for number, mine in enumerate(wanted)]

    def _metadata(self, changes: Changes) -> list[pa.Array]:
        of, which = changes.of, changes.transactions
        nothing = np.zeros(len(changes), bool)

        def column(name: str, values: NDArray[Any]) -> pa.Array:
            return fixed_width(METADATA.field(name).type, values, nothing)

        return [
            self._change_types.of(self._codes[changes.kinds]),
            column("_commit_version", of.commit_sequence_numbers.take(which)),
            column("_commit_timestamp", of.commit_times.take(which)),
            column("_change_ordinal", changes.ordinals.astype(np.int32)),
            column("_change_seq", changes.sequence_numbers),
            column("_transaction_id", of.transaction_ids.take(which)),
            column("_begin_timestamp", of.begin_times.take(which)),
            column("_user_id", of.user_ids.take(which)),
            self._names.of(changes.table_ids),
            self._nothing.slice(0, len(changes)),
        ]


class Spelled:
    """A column of few different texts; where all are the same one, nothing is copied."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = pa.array(texts, pa.string())
        self._repeated: dict[int, pa.Array] = {}

    def of(self, numbers: NDArray[np.int64]) -> pa.Array:
        """Return the texts of these numbers."""
        first = int(numbers[0]) if len(numbers) else 0
        if len(numbers) > _MOST or not (numbers == first).all():
            return pick(self._texts, numbers)
        if first not in self._repeated:
            self._repeated[first] = pick(self._texts, np.full(_MOST, first))
        return self._repeated[first].slice(0, len(numbers))


_MOST = BATCH_ROWS


def struct_names(tables: Sequence[Table]) -> list[str]:
    """Return the name of each table's struct column; names that collide get their owner in front.

    Raises:
        BadOption: two tables would still have one name.
    """
    plain = Counter(table.name.table for table in tables)
    names = [
        t.name.table if plain[t.name.table] == 1 else f"{t.name.owner}_{t.name.table}" for t in tables
    ]
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        raise BadOption(
            f"two tables would share the struct column {twice[0]!r}.",
            "Capture one of them in a query of its own.",
        )
    return names


def table_fields(tables: CapturedTables) -> list[pa.Field]:
    """Return one struct field per table."""
    names = struct_names(tables.tables)
    return [
        pa.field(name, pa.struct(list(schema)))
        for name, schema in zip(names, tables.schemas, strict=True)
    ]


def _data_fields(tables: CapturedTables) -> list[pa.Field]:
    fields = list(tables.schemas[0]) if len(tables) == 1 else table_fields(tables)
    if taken := sorted({field.name for field in fields} & set(METADATA.names)):
        raise BadOption(
            f"column {taken[0]!r} has the name of a column that every row gets.",
            "Capture the table together with another one: then each table is a struct of its own.",
        )
    return fields
