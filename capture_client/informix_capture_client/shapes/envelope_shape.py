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

Names and types of `source` follow Debezium's connector for Informix; `version` is omitted, because the
rows of a batch must not depend on the version of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.records import Bits, Integers, RecordKind, is_one_of
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import Changes
from informix_capture_client.shapes.grouped_form import CODE, GroupedForm, GroupedShape, codes_of
from informix_capture_client.shapes.numbering import OrdersInTable
from informix_capture_client.shapes.row_shape import struct_names, table_fields
from informix_capture_client.shapes.stored_form import RepeatedTexts, StoredForm, shared_names
from informix_capture_client.values import fixed_width, pick

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

_BEFORE_IMAGES = is_one_of(RecordKind.DELETE, RecordKind.UPDBEF)
_AFTER_IMAGES = is_one_of(RecordKind.INSERT, RecordKind.UPDAFT)
_OPERATIONS = {
    RecordKind.INSERT: "c",
    RecordKind.UPDAFT: "u",
    RecordKind.DELETE: "d",
    RecordKind.TRUNCATE: "t",
}
_TEXTS = [*_OPERATIONS.values(), "r"]
_READ = len(_OPERATIONS)  # the code of "r", which no CDC record has


def _grouped(before_image: bool) -> GroupedShape:
    update = ["before", "after"] if before_image else ["after"]
    return GroupedShape(
        delivered=["before", "after", *(name for name, _ in _ABOUT_THE_CHANGE)],
        about=[pa.field(name, CODE if name == "op" else kind) for name, kind in _ABOUT_THE_CHANGE],
        shared=shared_names([]),
        codes={"op": _TEXTS},
        kind="op",
        images=[["after"], update, ["before"], [], ["after"]],
    )


class EnvelopeShape:
    """One row per change; a row of several tables is a struct of one struct per table."""

    def __init__(self, tables: CapturedTables, server: str, before_image: bool) -> None:
        self._tables = tables
        self._images = (_BEFORE_IMAGES if before_image else is_one_of(RecordKind.DELETE), _AFTER_IMAGES)
        fields = list(tables.schemas[0]) if len(tables) == 1 else table_fields(tables)
        self._row = pa.struct(fields)
        images = [("before", self._row), ("after", self._row)]
        self.schema = pa.schema([*images, *_ABOUT_THE_CHANGE])
        self.is_grouped = len(tables) > 1
        self._plain = StoredForm(self.schema, texts=("op",))
        self._grouped = GroupedForm(_grouped(before_image), tables, struct_names(tables.tables))
        names = [table.name for table in tables.tables]
        self._constants = [RepeatedTexts([text]) for text in ("informix", server)]
        self._snapshot = RepeatedTexts(["false", "true"])
        self._database = RepeatedTexts([name.database for name in names])
        self._owners = RepeatedTexts([name.owner for name in names])
        self._names = RepeatedTexts([name.table for name in names])
        self._operations = RepeatedTexts(_TEXTS)
        self._codes = np.zeros(max(_OPERATIONS) + 1, np.int64)
        self._codes[list(_OPERATIONS)] = np.arange(len(_OPERATIONS))

    @property
    def stored_schema(self) -> pa.Schema:
        """The schema of the batches of `encode`."""
        return self._grouped.schema if self.is_grouped else self._plain.schema

    def begin(self, present: Sequence[int]) -> None:
        """Start a new sequence of transactions; all records are of the tables `present`."""
        self._orders = OrdersInTable(len(self._tables))
        if self.is_grouped:
            self._grouped.begin(present)

    def encode(self, changes: Changes) -> pa.RecordBatch:
        """Return changes, whose update images are paired, as rows.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        is_event = changes.kinds != RecordKind.UPDBEF
        orders = self._orders.number(changes, is_event)[is_event]
        events = changes.only(is_event)
        is_read = events.unknown() & (events.kinds == RecordKind.INSERT)
        codes = np.where(is_read, _READ, self._codes[events.kinds])
        times = _integers(events.of.commit_times.take(events.transactions) // 1000)
        source, transaction = self._source(events, times), self._transaction(events, orders)
        if self.is_grouped:
            befores, afters = self._images
            images = changes.only(befores[changes.kinds] | afters[changes.kinds])
            return self._grouped.batch([source, codes_of(codes), times, transaction], events, images)
        rows = [self._rows(changes, events, delivered) for delivered in self._images]
        about = [source, self._operations.of(codes), times, transaction]
        return self._plain.batch([*rows, *about], events)

    def _rows(self, changes: Changes, events: Changes, delivered: Bits) -> pa.Array:
        """Return the images of one column, of the kinds `delivered` in it, as structs or NULL."""
        images, where = changes.only(delivered[changes.kinds]), self._where(events, delivered)
        if not len(images):
            return pa.nulls(len(where), self._row)
        rows = self._tables.struct_of(0, images, np.ones(len(images), bool))
        if where.all():
            return rows
        return rows.take(pa.array(np.cumsum(where) - 1, mask=~where))

    def _where(self, events: Changes, delivered: Bits) -> Bits:
        """Return which events have such an image; the first record of an update is not an event."""
        is_update = events.kinds == RecordKind.UPDAFT
        where: Bits = delivered[events.kinds] | (is_update & delivered[RecordKind.UPDBEF])
        return where

    def _source(self, events: Changes, times: pa.Array) -> pa.StructArray:
        of, which = events.of, events.transactions
        nothing = np.zeros(len(events), np.int64)
        connector, name = (constant.plain(nothing) for constant in self._constants)
        children = [
            connector,
            name,
            times,
            self._snapshot.plain(events.unknown().astype(np.int64)),
            self._database.plain(events.table_ids),
            self._owners.plain(events.table_ids),
            self._names.plain(events.table_ids),
            _known(events, _texts(events.sequence_numbers)),
            pick(_texts(of.commit_sequence_numbers), which),
            _known(events, pick(_texts(of.begin_sequence_numbers), which)),
            _known(events, pick(_texts(of.transaction_ids), which)),
        ]
        return pa.StructArray.from_arrays(children, fields=list(_SOURCE))

    def _transaction(self, events: Changes, orders: Integers) -> pa.StructArray:
        ids = pick(_texts(events.of.transaction_ids), events.transactions)
        in_table = _known(events, _integers(orders + 1))
        children = [_known(events, ids), _integers(events.ordinals + 1), in_table]
        return pa.StructArray.from_arrays(children, fields=list(_TRANSACTION))


def _integers(values: Integers) -> pa.Array:
    return fixed_width(pa.int64(), values, np.zeros(len(values), bool))


def _known(events: Changes, values: pa.Array) -> pa.Array:
    """Return the values of events; NULL for snapshot rows."""
    return pa.nulls(len(values), values.type) if events.is_read else values


def _texts(values: NDArray[Any]) -> pa.Array:
    return pa.array(values).cast(pa.string())
