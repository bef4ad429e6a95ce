"""Debezium's shape: one row per change with the row before and after it.

Rule: names and types of the envelope are Debezium's, so that readers of its topics need few changes;
the columns of a row keep the exact types of the default shape. Everything in it can be replayed:
where Debezium states when it processed a change, `ts_ms` is the server's commit time.

    INSERT          op c, after         DELETE     op d, before
    UPDBEF, UPDAFT  op u, both          TRUNCATE   op t, neither        (r is for snapshots)

Names and types of `source` follow Debezium's connector for Informix; `version` is left out, because
rows of a batch must not change when this package does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.records import Bits, Integers, Kind, is_one_of
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import Changes, Numbering
from informix_capture_client.shapes.row_shape import table_fields
from informix_capture_client.shapes.stored_form import StoredForm, Texts
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

_BEFORE_IMAGES = is_one_of(Kind.DELETE, Kind.UPDBEF)
_AFTER_IMAGES = is_one_of(Kind.INSERT, Kind.UPDAFT)
_OPERATIONS = {Kind.INSERT: "c", Kind.UPDAFT: "u", Kind.DELETE: "d", Kind.TRUNCATE: "t"}


class EnvelopeShape:
    """One row per change; a row of several tables is a struct of one struct per table."""

    with_bounds = False

    def __init__(self, tables: CapturedTables, server: str, before_image: bool) -> None:
        self._tables = tables
        self._before_image = before_image
        fields = list(tables.schemas[0]) if len(tables) == 1 else table_fields(tables)
        self._row = pa.struct(fields)
        images = [("before", self._row), ("after", self._row)]
        self.schema = pa.schema([*images, *_ABOUT_THE_CHANGE])
        self._form = StoredForm(self.schema, texts=("op",))
        self.stored_schema = self._form.schema
        names = [table.name for table in tables.tables]
        self._constants = [Texts([text]) for text in ("informix", server, "false")]
        self._database = Texts([name.database for name in names])
        self._owners = Texts([name.owner for name in names])
        self._names = Texts([name.table for name in names])
        self._operations = Texts(list(_OPERATIONS.values()))
        self._codes = np.zeros(max(_OPERATIONS) + 1, np.int64)
        self._codes[list(_OPERATIONS)] = np.arange(len(_OPERATIONS))

    def begin(self) -> None:
        """Begin with the records of another sequence of transactions."""
        self._numberings = [Numbering() for _ in self._tables.tables]

    def encode(self, changes: Changes) -> pa.RecordBatch:
        """Return changes, whose update images are paired, as rows.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        is_event = changes.kinds != Kind.UPDBEF
        orders = self._orders_in_table(changes, is_event)[is_event]
        events = changes.only(is_event)
        before = events.kinds == Kind.DELETE
        images = changes.kinds == Kind.DELETE
        if self._before_image:
            before, images = before | (events.kinds == Kind.UPDAFT), _BEFORE_IMAGES[changes.kinds]
        times = events.of.commit_times.take(events.transactions) // 1000
        columns = [
            self._rows(changes.only(images), before),
            self._rows(changes.only(_AFTER_IMAGES[changes.kinds]), _AFTER_IMAGES[events.kinds]),
            self._source(events, times),
            self._operations.of(self._codes[events.kinds]),
            _integers(times),
            self._transaction(events, orders),
        ]
        return self._form.batch(columns, events)

    def _rows(self, images: Changes, where: Bits) -> pa.Array:
        """Return images, one for each set bit, as structs; NULL where no bit is set."""
        if not len(images):
            return pa.nulls(len(where), self._row)
        rows = self._images(images)
        if where.all():
            return rows
        return rows.take(pa.array(np.cumsum(where) - 1, mask=~where))

    def _images(self, images: Changes) -> pa.StructArray:
        tables = self._tables
        everything = [tables.rows_of(number, images) for number in range(len(tables))]
        if len(tables) == 1:
            return tables.struct_of(0, images, everything[0])
        structs = [tables.struct_of(n, images, mine) for n, mine in enumerate(everything)]
        return pa.StructArray.from_arrays(structs, fields=list(self._row))

    def _source(self, events: Changes, times: Integers) -> pa.StructArray:
        of, which = events.of, events.transactions
        nothing = np.zeros(len(events), np.int64)
        connector, name, snapshot = (constant.plain(nothing) for constant in self._constants)
        children = [
            connector,
            name,
            _integers(times),
            snapshot,
            self._database.plain(events.table_ids),
            self._owners.plain(events.table_ids),
            self._names.plain(events.table_ids),
            _texts(events.sequence_numbers),
            pick(_texts(of.commit_sequence_numbers), which),
            pick(_texts(of.begin_sequence_numbers), which),
            pick(_texts(of.transaction_ids), which),
        ]
        return pa.StructArray.from_arrays(children, fields=list(_SOURCE))

    def _transaction(self, events: Changes, orders: Integers) -> pa.StructArray:
        ids = pick(_texts(events.of.transaction_ids), events.transactions)
        children = [ids, _integers(events.ordinals + 1), _integers(orders + 1)]
        return pa.StructArray.from_arrays(children, fields=list(_TRANSACTION))

    def _orders_in_table(self, changes: Changes, is_event: Bits) -> Integers:
        """Number the events of each table within their transaction from 0."""
        orders = np.zeros(len(changes), np.int64)
        for number, numbering in enumerate(self._numberings):
            mine = changes.table_ids == number
            orders[mine] = numbering.number(changes, is_event & mine)[mine]
        return orders


def _integers(values: Integers) -> pa.Array:
    return fixed_width(pa.int64(), values, np.zeros(len(values), bool))


def _texts(values: NDArray[Any]) -> pa.Array:
    return pa.array(values).cast(pa.string())
