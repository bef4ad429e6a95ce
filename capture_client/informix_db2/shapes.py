"""The rows that are delivered: those that changes of Informix have, where they mean the same.

Rule: the schema depends on options only, never on data.

    rows      the table's columns, or one struct a table; `_change_type`, `_commit_lsn`, ...; an update
              is two rows, update_preimage and update_postimage. Undeclared: `before` and `after`.
    envelope  one row a change: before, after, source, op, ts_ms, transaction
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.errors import BadOption
from informix_db2.changes import UPDATE, Db2Changes, Image, IntArray, placed, with_nulls
from informix_db2.declared_tables import DeclaredTable

ShapeName = Literal["rows", "envelope"]
SHAPES = ("rows", "envelope")

_ABOUT = {
    "_change_type": pa.string(),
    "_commit_lsn": pa.string(),
    "_commit_timestamp": pa.timestamp("us", "UTC"),
    "_change_ordinal": pa.int64(),
    "_transaction_id": pa.string(),
    "_table": pa.string(),
}
_BAD = {"_bad": pa.binary(), "_error": pa.string()}
_OPERATIONS = {"insert": "c", "update": "u", "delete": "d", "truncate": "t"}
_SOURCE = pa.struct(
    [
        ("connector", pa.string()),
        ("ts_ms", pa.int64()),
        ("table", pa.string()),
        ("commit_lsn", pa.string()),
        ("txId", pa.string()),
    ]
)
_TRANSACTION = pa.struct([("id", pa.string()), ("total_order", pa.int64())])


@dataclass(frozen=True)
class Delivery:
    """How changes of some tables become rows.

    Attributes:
        tables: those declared; none for rows as they are.
        undeclared: the type of a row that is not declared.
        more: the format's own columns, behind the common ones.
        shape: rows or envelope.
        is_bad_row: whether bad bytes come as rows.
        connector: what the envelope calls the format.
    """

    tables: tuple[DeclaredTable, ...]
    undeclared: pa.DataType
    more: dict[str, pa.DataType]
    shape: ShapeName
    is_bad_row: bool
    connector: str

    def __post_init__(self) -> None:
        names = [field.name.lower() for field in self.schema]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise BadOption(
                f"tables: column {twice!r} has the same name as another column or a metadata column.",
                "Rename it in its declaration: only the order of the columns matters.",
            )

    @property
    def schema(self) -> pa.Schema:
        """The schema of what is delivered."""
        bad = _BAD if self.is_bad_row else {}
        if self.shape == "envelope":
            images = {"before": self._image_type, "after": self._image_type}
            about = {"source": _SOURCE, "op": pa.string(), "ts_ms": pa.int64()}
            fields = {**images, **about, "transaction": _TRANSACTION, **self.more, **bad}
            return pa.schema(list(fields.items()))
        return pa.schema([*self._data_fields, *{**_ABOUT, **self.more, **bad}.items()])

    @property
    def _data_fields(self) -> list[pa.Field]:
        if not self.tables:
            return [pa.field(name, self.undeclared) for name in ("before", "after")]
        return list(self._row_type)

    @property
    def _image_type(self) -> pa.DataType:
        return self._row_type if self.tables else self.undeclared

    @property
    def _row_type(self) -> pa.DataType:
        if len(self.tables) == 1:
            return self.tables[0].type
        names = struct_names(self.tables)
        return pa.struct([pa.field(n, t.type) for n, t in zip(names, self.tables, strict=True)])

    def rows(self, changes: Db2Changes) -> tuple[pa.RecordBatch, IntArray]:
        """Return changes as rows, and the value in the batch that each row comes from."""
        if self.shape == "envelope":
            return self._envelope(changes), changes.values
        if not self.tables:
            images = [placed(changes.befores[0], len(changes)), placed(changes.afters[0], len(changes))]
            about = {"_change_type": changes.kinds, **changes.about}
            return self._batch([*images, *self._about(about, changes)]), changes.values
        return self._two_rows_an_update(changes)

    def _about(self, about: dict[str, pa.Array], changes: Db2Changes) -> list[pa.Array]:
        if self.is_bad_row:
            about = {**about, **_nothing_bad(len(changes))}
        names = [*_ABOUT, *self.more, *(_BAD if self.is_bad_row else ())]
        return [about[name] for name in names]

    def _batch(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _two_rows_an_update(self, changes: Db2Changes) -> tuple[pa.RecordBatch, IntArray]:
        """Return updates as two rows each, and also what stayed open, where it has both images."""
        is_update = np.asarray(pc.fill_null(pc.equal(changes.kinds, UPDATE), False))
        has_two = is_update | (_has(changes.befores, changes) & _has(changes.afters, changes))
        change = np.repeat(np.arange(len(changes)), 1 + has_two)
        is_first = np.concatenate([[True], change[1:] != change[:-1]])[: len(change)]
        is_pre, is_post = has_two[change] & is_first, has_two[change] & ~is_first
        columns: list[pa.Array] = []
        for before, after in zip(changes.befores, changes.afters, strict=True):
            rows = self._rows_of(before, after, change, is_post)
            columns += rows.flatten() if len(self.tables) == 1 else [rows]
        about, kinds = dict(changes.about), changes.kinds
        if has_two.any():
            taken = pa.array(change)
            about = {name: array.take(taken) for name, array in about.items()}
            kinds = kinds.take(taken)
        of_update = is_update[change]
        about["_change_type"] = _image_kinds(kinds, is_pre & of_update, is_post & of_update)
        if "_operation" in about:  # of what stayed open it alone tells which image a row is
            operations = about["_operation"]
            about["_operation"] = _image_kinds(operations, is_pre & ~of_update, is_post & ~of_update)
        # An update counts as two where changes are numbered.
        about["_change_ordinal"] = pc.add(about["_change_ordinal"], pa.array(is_post).cast(pa.int64()))
        of_rows = Db2Changes(kinds, (), (), about, changes.values[change])
        return self._batch([*columns, *self._about(about, of_rows)]), of_rows.values

    def _rows_of(self, before: Image, after: Image, change: IntArray, is_post: np.ndarray) -> pa.Array:
        """Return the row of each delivered row; the only image, where a change has one."""
        count = int(change[-1]) + 1 if len(change) else 0
        old, new = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
        old[before.changes] = np.arange(len(before.changes))
        new[after.changes] = np.arange(len(after.changes)) + len(before.changes)
        first = np.where(old >= 0, old, new)
        # An update may have one image only: then the other row of it has none.
        is_update = np.zeros(count, bool)
        is_update[change[is_post]] = True
        first = np.where(is_update, old, first)
        places = np.where(is_post, new[change], first[change])
        return pa.concat_arrays([before.rows, after.rows]).take(with_nulls(places))

    def _envelope(self, changes: Db2Changes) -> pa.RecordBatch:
        about, kinds = changes.about, changes.kinds
        images = [self._one_image(side, len(changes)) for side in (changes.befores, changes.afters)]
        ts_ms = pc.divide(about["_commit_timestamp"].cast(pa.int64()), 1000)
        connector = pa.array([self.connector] * len(changes), pa.string())
        source = [connector, ts_ms, about["_table"], about["_commit_lsn"], about["_transaction_id"]]
        transaction = [about["_transaction_id"], about["_change_ordinal"]]
        columns = [
            *images,
            pa.StructArray.from_arrays(source, fields=list(_SOURCE)),
            _operations(kinds),
            ts_ms,
            pa.StructArray.from_arrays(transaction, fields=list(_TRANSACTION)),
            *(about[name] for name in self.more),
        ]
        return self._batch(
            [*columns, *(_nothing_bad(len(changes)).values() if self.is_bad_row else [])]
        )

    def _one_image(self, images: Sequence[Image], count: int) -> pa.Array:
        if not self.tables or len(self.tables) == 1:
            return placed(images[0], count)
        columns = [placed(image, count) for image in images]
        is_null = pa.array(np.logical_and.reduce([np.asarray(c.is_null()) for c in columns]))
        return pa.StructArray.from_arrays(columns, fields=list(self._row_type), mask=is_null)


def _has(images: Sequence[Image], changes: Db2Changes) -> np.ndarray:
    """Tell which changes have an image on one side."""
    found = np.zeros(len(changes), bool)
    for image in images:
        found[image.changes] = True
    return found


def _image_kinds(kinds: pa.Array, is_pre: np.ndarray, is_post: np.ndarray) -> pa.Array:
    kinds = pc.if_else(pa.array(is_pre), "update_preimage", kinds)
    return pc.if_else(pa.array(is_post), "update_postimage", kinds)


def _nothing_bad(count: int) -> dict[str, pa.Array]:
    return {name: pa.nulls(count, kind) for name, kind in _BAD.items()}


def _operations(kinds: pa.Array) -> pa.Array:
    known = pa.array(list(_OPERATIONS), pa.string())
    found = pc.index_in(kinds, value_set=known)
    return pc.coalesce(pa.array(list(_OPERATIONS.values()), pa.string()).take(found), kinds)


def struct_names(tables: Sequence[DeclaredTable]) -> list[str]:
    """Return the struct column of each table: its name, with the owner where two would be the same."""
    short = [table.name.rpartition(".")[2].lower() for table in tables]
    counts = Counter(short)
    names = [table.name.rpartition(".")[2] for table in tables]
    owners = [table.name.replace(".", "_") for table in tables]
    return [o if counts[s] > 1 else n for s, n, o in zip(short, names, owners, strict=True)]
