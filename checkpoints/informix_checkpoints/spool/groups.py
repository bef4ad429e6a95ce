"""Groups: stored batches of several tables, with one row that contains a list of changes.

Rule: a group is described by its schema's metadata, which names only the tables that occur in it. A
part of a group is a group. `capture_client/informix_capture_client/shapes/grouped_form.py` writes
groups and describes their columns.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa

from informix_capture_client.errors import DataLoss

Int64Array = np.ndarray[tuple[int], np.dtype[np.int64]]

# Names in files, not modules.
_FORM, _VERSION = b"informix_cdc.form", b"informix_cdc.form_version"
_DELIVERED, _TABLES = b"informix_cdc.delivered", b"informix_cdc.tables"
_CODES, _IMAGES = b"informix_cdc.codes", b"informix_cdc.images"
_COMMIT, _COUNT, _TABLE = "_commit_version", "changes", "table"
_KNOWN_FORMS = [(b"grouped", b"1"), (b"arrow", b"1")]
_FIRST_TABLE = 2  # columns before the first table's: transactions and changes


@dataclass(frozen=True, slots=True)
class GroupSchema:
    """The metadata of a group's schema.

    Attributes:
        delivered: the delivered columns; None stands for the columns of all tables.
        codes: the texts of columns that store small numbers.
        kind: the column whose code determines which images a change has.
        images: for each code the delivered columns of its rows, "" for the columns of a table.
        tables: for each table column the number of its table among the delivered tables.
        table_names: the names of these tables.
        named: the delivered column that gets the name of a change's table, if there is one.
        definitions: of these tables, as text for readers of shape=arrow; may be empty.
    """

    delivered: tuple[str | None, ...]
    codes: dict[str, list[str]]
    kind: str
    images: tuple[tuple[str, ...], ...]
    tables: tuple[int, ...]
    table_names: tuple[str, ...]
    named: str | None
    definitions: tuple[str, ...]


def is_group(batch: pa.RecordBatch) -> bool:
    """Return whether a stored batch is a group.

    Raises:
        DataLoss: it is stored in a format that this version does not know.
    """
    metadata = batch.schema.metadata or {}
    form = metadata.get(_FORM)
    if form is not None and (form, metadata.get(_VERSION)) not in _KNOWN_FORMS:
        raise DataLoss(
            f"a segment is stored in format {form.decode(errors='replace')[:40]!r}, which this version"
            " cannot read.",
            "Use the version that wrote it, or a later one.",
        )
    return form is not None


def is_delivered_as_arrow(batch: pa.RecordBatch) -> bool:
    """Return whether a group is delivered as Arrow streams, one per table."""
    return bool(batch.schema.metadata[_FORM] == b"arrow")


def schema_of(batch: pa.RecordBatch) -> GroupSchema:
    """Return a group's metadata."""
    metadata = batch.schema.metadata
    keys = (_DELIVERED, _CODES, _IMAGES, _TABLES)
    return _group_schema(*(metadata[key] for key in keys))


@functools.lru_cache(maxsize=16)
def _group_schema(delivered: bytes, codes: bytes, images: bytes, tables: bytes) -> GroupSchema:
    owned, named = json.loads(images), json.loads(tables)
    return GroupSchema(
        tuple(json.loads(delivered)),
        json.loads(codes),
        owned["by"],
        tuple(map(tuple, owned["columns"])),
        tuple(named["numbers"]),
        tuple(named["names"]),
        named["delivered"],
        tuple(named.get("definitions", ())),
    )


def changes_in(batch: pa.RecordBatch) -> int:
    """Return the number of changes in a group."""
    return len(changes_of(batch))


def transactions_of_group(batch: pa.RecordBatch) -> tuple[Int64Array, Int64Array]:
    """Return the commits of a group's transactions, and the number of changes of each."""
    transactions = listed(batch, 0)
    counts = transactions.field(_COUNT).to_numpy().astype(np.int64)
    return transactions.field(_COMMIT).to_numpy(), counts


def changes_of(batch: pa.RecordBatch) -> pa.StructArray:
    """Return the metadata of each change."""
    return listed(batch, 1)


def table_numbers(batch: pa.RecordBatch) -> Int64Array:
    """Return the number of each change's table."""
    numbers: Int64Array = changes_of(batch).field(_TABLE).to_numpy().astype(np.int64)
    return numbers


def rows_at(batch: pa.RecordBatch, place: int) -> pa.StructArray:
    """Return the rows of one of a group's tables."""
    return listed(batch, _FIRST_TABLE + place)


def table_column(batch: pa.RecordBatch, place: int) -> str:
    """Return the name of the column in which one of a group's tables is stored."""
    return str(batch.schema.names[_FIRST_TABLE + place])


def listed(batch: pa.RecordBatch, column: int) -> pa.StructArray:
    """Return the values of the single list of a column, with fields sliced like the list."""
    return batch.column(column).flatten()


@dataclass(frozen=True, slots=True, eq=False)
class GroupImages:
    """The images of a group's changes, in order; one entry per image in each array except `bounds`.

    Attributes:
        bounds: the start of each change's images, and the total number at the end.
        changes: the change of each.
        columns: its delivered column, as an index into `names`.
        tables: the number of its table.
        places: the index of its row among the rows of its table.
    """

    bounds: Int64Array
    changes: Int64Array
    columns: Int64Array
    tables: Int64Array
    places: Int64Array
    names: tuple[str, ...]


def images_of(batch: pa.RecordBatch) -> GroupImages:
    """Return the positions of the rows of a group's changes."""
    known = schema_of(batch)
    names = tuple(dict.fromkeys(name for columns in known.images for name in columns))
    kinds = changes_of(batch).field(known.kind).to_numpy().astype(np.int64)
    sizes = np.array([len(columns) for columns in known.images])
    flat = np.array([names.index(name) for columns in known.images for name in columns], np.int64)
    begins = np.array(list(accumulate(sizes.tolist(), initial=0)))
    counts = sizes[kinds]
    bounds = np.append(0, np.cumsum(counts))
    changes = np.repeat(np.arange(len(kinds)), counts)
    columns = flat[np.arange(bounds[-1]) + np.repeat(begins[kinds] - bounds[:-1], counts)]
    tables = table_numbers(batch)[changes]
    return GroupImages(bounds, changes, columns, tables, _numbered(tables), names)


def _numbered(tables: Int64Array) -> Int64Array:
    """Number the entries of each table from 0."""
    order = np.argsort(tables, kind="stable")
    begins = np.flatnonzero(np.diff(tables[order], prepend=-1))
    lengths = np.diff(begins, append=len(tables))
    places = np.empty(len(tables), np.int64)
    places[order] = np.arange(len(tables)) - np.repeat(begins, lengths)
    return places


def part_of_group(batch: pa.RecordBatch, first: int, end: int) -> pa.RecordBatch:
    """Return some changes of a group with their rows, as a group."""
    images = images_of(batch)
    known = schema_of(batch)
    begin, stop = images.bounds[[first, end]].tolist()
    size = max(known.tables, default=-1) + 1
    before = np.bincount(images.tables[:begin], minlength=size).tolist()
    inside = np.bincount(images.tables[begin:stop], minlength=size).tolist()
    lists = [
        _as_list(rows_at(batch, place).slice(before[number], inside[number]))
        for place, number in enumerate(known.tables)
    ]
    changes = _as_list(changes_of(batch).slice(first, end - first))
    columns = [_as_list(_transactions(batch, first, end)), changes, *lists]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _transactions(batch: pa.RecordBatch, first: int, end: int) -> pa.StructArray:
    """Return the transactions of some changes, with the remaining number of changes of each."""
    transactions = listed(batch, 0)
    ends = np.cumsum(transactions.field(_COUNT).to_numpy().astype(np.int64))
    begun, done = np.searchsorted(ends, [first, end - 1], side="right").tolist()
    counts = np.diff(np.clip(ends[begun : done + 1], first, end), prepend=first).astype(np.int32)
    kept = transactions.slice(begun, done + 1 - begun)
    fields = list(kept.type)
    values = [pa.array(counts) if field.name == _COUNT else kept.field(field.name) for field in fields]
    return pa.StructArray.from_arrays(values, fields=fields)


def _as_list(values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
