"""Debezium's shape: one row per change with the row before and after it.

Rule: names and types of the envelope are Debezium's, so that consumers of its topics need few changes;
the columns of a row keep the exact types of the default shape. Everything in it can be replayed:
`ts_ms`, for which Debezium uses its processing time, is the server's commit time.

    INSERT          op c, after         DELETE     op d, before
    UPDBEF, UPDAFT  op u, both          TRUNCATE   op t, neither
    read by a snapshot          op r, after

The transaction of a snapshot row is unknown: `change_lsn`, `begin_lsn`, `txId` and `transaction.id` are
NULL. `transaction` itself is not NULL, unlike in Debezium, because (`commit_lsn`, `total_order`) is the
key and the order of all rows; `data_collection_order`, an index within a transaction, is NULL.
`total_order` has gaps, since an update is two records of the log.

Names and types of `source` follow Debezium's connector for Informix; `version` is omitted, because the
rows of a batch must not depend on the version of this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from informix_capture_client.choices import RowForm
from informix_capture_client.records import Bits, Integers
from informix_capture_client.shapes.metadata import texts
from informix_capture_client.shapes.row_shape import (
    DeliveredTable,
    Images,
    TableColumns,
    delivered_changes,
    parts_of,
    rows_at_once,
    table_fields,
)
from informix_capture_client.shapes.stored_changes import ChangeGroup
from informix_capture_client.values import fixed_width

_SOURCE = pa.struct(
    [
        ("connector", pa.string()),
        ("name", pa.string()),
        ("ts_ms", pa.int64()),
        ("snapshot", pa.string()),
        ("db", pa.string()),
        ("schema", pa.string()),
        ("table", pa.string()),
        ("change_lsn", pa.string()),
        ("commit_lsn", pa.string()),
        ("begin_lsn", pa.string()),
        ("txId", pa.string()),
    ]
)
_TRANSACTION = pa.struct(
    [("id", pa.string()), ("total_order", pa.int64()), ("data_collection_order", pa.int64())]
)
_ABOUT_THE_CHANGE = [
    ("source", _SOURCE),
    ("op", pa.string()),
    ("ts_ms", pa.int64()),
    ("transaction", _TRANSACTION),
]
_OPERATIONS = ("c", "d", "", "u", "t")  # by kind; the first image of an update is no event
_OPERATIONS_OF_SNAPSHOT = ("r", *_OPERATIONS[1:])


def envelope_schema(tables: Sequence[DeliveredTable], _form: RowForm) -> pa.Schema:
    """Return the schema of shape=envelope; a row of several tables is a struct of one for each.

    Raises:
        BadOption: two tables share a column.
    """
    row = pa.struct(table_fields(tables))
    return pa.schema([("before", row), ("after", row), *_ABOUT_THE_CHANGE])


class EnvelopeShape:
    """Makes rows of `schema`, which is that of `envelope_schema`."""

    def __init__(self, form: RowForm, schema: pa.Schema) -> None:
        self._form, self._schema = form, schema
        self._row = schema.field("after").type
        self._tables = TableColumns(list(self._row))
        self._step = rows_at_once(schema)

    def batches(self, group: ChangeGroup) -> Iterator[pa.RecordBatch]:
        """Yield the events of a group, in order."""
        events = delivered_changes(group, self._form, one_row_per_update=True)
        for first, end in pairwise([*range(0, len(events), self._step), len(events)]):
            yield self._batch(group, events[first:end])

    def _batch(self, group: ChangeGroup, events: Integers) -> pa.RecordBatch:
        images, is_read = Images.of(group, events, self._form), _is_read(group, events)
        times = group.column("_commit_timestamp", events).cast(pa.int64()).to_numpy() // 1000
        ts_ms = _integers(times)
        columns = [
            self._rows(group, images.before, images.has_before),
            self._rows(group, events, images.has_after),
            self._source(group, events, ts_ms, is_read=is_read),
            texts(_OPERATIONS_OF_SNAPSHOT if is_read else _OPERATIONS, group.kinds[events]),
            ts_ms,
            _transaction(group, events, is_read=is_read),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _rows(self, group: ChangeGroup, changes: Integers, has_row: Bits) -> pa.StructArray:
        """Return the rows of changes as one column, NULL for those that have none in it."""
        positions = np.flatnonzero(has_row)
        columns = self._tables.of(group, changes[positions], positions, len(changes))
        mask = None if has_row.all() else pa.array(~has_row)
        return pa.StructArray.from_arrays(columns, fields=list(self._row), mask=mask)

    def _source(
        self, group: ChangeGroup, events: Integers, ts_ms: pa.Array, *, is_read: bool
    ) -> pa.StructArray:
        nothing = np.zeros(len(events), np.int64)
        places = group.places[events]
        names = [parts_of(name) for name in group.tables]
        children = [
            texts(["informix"], nothing),
            texts([self._form.server], nothing),
            ts_ms,
            texts(["true" if is_read else "false"], nothing),
            *(texts(of_tables, places) for of_tables in zip(*names, strict=True)),
            *(
                group.column(name, events).cast(pa.string())
                for name in ("_change_seq", "_commit_version", "_begin_version", "_transaction_id")
            ),
        ]
        return pa.StructArray.from_arrays(children, fields=list(_SOURCE))


def _transaction(group: ChangeGroup, events: Integers, *, is_read: bool) -> pa.StructArray:
    orders = group.column("_change_ordinal", events).to_numpy().astype(np.int64) + 1
    in_table = group.events_of_table[events] + 1
    children = [
        group.column("_transaction_id", events).cast(pa.string()),
        _integers(orders),
        pa.nulls(len(events), pa.int64()) if is_read else _integers(in_table),
    ]
    return pa.StructArray.from_arrays(children, fields=list(_TRANSACTION))


def _is_read(group: ChangeGroup, events: Integers) -> bool:
    """Return whether the changes are rows of a snapshot, which are never in one group with others."""
    return len(events) > 0 and bool(group.column("_snapshot", events[:1])[0].as_py())


def _integers(values: Integers) -> pa.Array:
    return fixed_width(pa.int64(), values, np.zeros(len(values), bool))
