"""The stored form of changes: by table, in plain columns. Every reader makes rows of its shape from it.

Rule: nothing here depends on a reader's options. Size and cost depend on the tables that occur, not on
all captured tables. A record batch is one row, a *group* of changes in commit order, and its columns
are lists:

    column 0    transactions: what their changes share, and the number of changes of each
    column 1    changes, in commit order: kind, place in the transaction, sequence number, table
    column 2    for each table the number of events of the group's first transaction in earlier groups
    column 3-   the rows of one table each, in the order of changes; a TRUNCATE has no row

An update is two changes, one for each image, which are never in two groups. A part of a group is a
group. The schema's metadata names the tables and the kinds.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.errors import DataLoss
from informix_capture_client.records import Integers, RecordKind
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import BATCH_ROWS, Changes, RangeKind
from informix_capture_client.values import booleans, fixed_width, pick

# Names in files, not modules.
_FORM, _TABLES, _KINDS = b"informix_cdc.form", b"informix_cdc.tables", b"informix_cdc.change_types"
_COMPARED = b"informix_cdc.compared"  # its rows are there to be compared with a copy
_THIS_FORM = b"changes 1"
_TRANSACTIONS, _CHANGES, _EARLIER = "transactions", "changes", "earlier"
_FIRST_TABLE = 3  # columns before the first table's

CHANGE_TYPES: dict[int, str] = {
    RecordKind.INSERT: "insert",
    RecordKind.DELETE: "delete",
    RecordKind.UPDBEF: "update_preimage",
    RecordKind.UPDAFT: "update_postimage",
    RecordKind.TRUNCATE: "truncate",
    **{kind: kind.name.lower() for kind in RangeKind},
}
# The stored number of each kind is its place in this table.
_TEXTS = list(CHANGE_TYPES.values())
_CODES = np.zeros(max(CHANGE_TYPES) + 1, np.int8)
_CODES[list(CHANGE_TYPES)] = np.arange(len(CHANGE_TYPES))
INSERT, DELETE, BEFORE, AFTER, TRUNCATE = (
    int(_CODES[kind])
    for kind in (
        RecordKind.INSERT,
        RecordKind.DELETE,
        RecordKind.UPDBEF,
        RecordKind.UPDAFT,
        RecordKind.TRUNCATE,
    )
)

_INSTANT = pa.timestamp("us", "UTC")
# The shared columns, with their attribute of TransactionColumns, and whether a snapshot row has them.
_SHARED = (
    (pa.field("_commit_version", pa.int64()), "commit_sequence_numbers", True),
    (pa.field("_commit_timestamp", _INSTANT), "commit_times", True),
    (pa.field("_begin_version", pa.int64()), "begin_sequence_numbers", False),
    (pa.field("_begin_timestamp", _INSTANT), "begin_times", False),
    (pa.field("_transaction_id", pa.int32()), "transaction_ids", False),
    (pa.field("_user_id", pa.int32()), "user_ids", False),
)
_COUNT, _KIND, _TABLE = "changes", "_change_type", "table"
_TRANSACTION = pa.struct([*(shared for shared, _, _ in _SHARED), (_COUNT, pa.int32())])
_CHANGE = pa.struct(
    [
        (_KIND, pa.int8()),
        ("_change_ordinal", pa.int32()),
        ("_change_seq", pa.int64()),
        ("_snapshot", pa.bool_()),
        (_TABLE, pa.int32()),
    ]
)
_SHARED_NAMES = frozenset(shared.name for shared, _, _ in _SHARED)

# Each table costs a group some microseconds and some bytes a column, however few rows it has there.
_ROWS_A_TABLE = 256
_MOST_ROWS = 1 << 17
_GROUP_BYTES = 16 << 20


def group_limits(tables: int) -> tuple[int, int]:
    """Return the maximum changes, and bytes of records, of a group with so many tables."""
    return max(min(_ROWS_A_TABLE * tables, _MOST_ROWS), BATCH_ROWS), _GROUP_BYTES


class StoredChanges:
    """Writes groups of one stream.

    Args:
        tables: the captured tables.
    """

    def __init__(self, tables: CapturedTables) -> None:
        self._tables = tables
        self._lists = [pa.list_(struct) for struct in tables.structs]
        self.schema = pa.schema([])

    def begin(self, present: Sequence[int], *, is_compared: bool = False) -> None:
        """Start a new sequence of transactions, with changes of these tables only.

        `is_compared`: they are rows of a snapshot, to be compared with a copy.
        """
        tables = self._tables
        self._present = present
        self._place = np.zeros(len(tables), np.int64)
        self._place[list(present)] = np.arange(len(present))
        self._last_commit, self._earlier = -1, np.zeros(len(present), np.int32)
        named: dict[str, list[str]] = {"names": [str(tables.tables[n].name) for n in present]}
        if tables.definitions:
            named["definitions"] = [tables.definitions[number] for number in present]
        columns = [(_TRANSACTIONS, _TRANSACTION), (_CHANGES, _CHANGE), (_EARLIER, pa.int32())]
        self.schema = pa.schema(
            [
                *((name, pa.list_(kind)) for name, kind in columns),
                *(
                    (name, self._lists[number])
                    for name, number in zip(named["names"], present, strict=True)
                ),
            ],
            metadata={
                _FORM: _THIS_FORM,
                _KINDS: json.dumps(_TEXTS),
                _TABLES: json.dumps(named),
                **({_COMPARED: b"1"} if is_compared else {}),
            },
        )

    def group(self, changes: Changes) -> pa.RecordBatch:
        """Return changes as a group.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        places: Integers = self._place[changes.table_ids]
        images = changes.only(changes.kinds != RecordKind.TRUNCATE)
        rows = self._tables.rows_by_table(images) if len(images) else {}
        about = [self._transactions(changes), _described(changes, places)]
        about.append(self._counted(changes, places))
        lists = [
            _as_list(rows[n], self._lists[n]) if n in rows else pa.array([[]], self._lists[n])
            for n in self._present
        ]
        arrays = [*map(_as_list, about, self.schema.types[:_FIRST_TABLE]), *lists]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _transactions(self, changes: Changes) -> pa.StructArray:
        which = changes.transactions
        ends = np.flatnonzero(np.append(which[1:] != which[:-1], True))
        unknown, known = np.full(len(ends), changes.is_read), np.zeros(len(ends), bool)
        values = [
            fixed_width(
                shared.type, getattr(changes.of, name)[which[ends]], known if is_always else unknown
            )
            for shared, name, is_always in _SHARED
        ]
        counts = np.diff(ends, prepend=-1).astype(np.int32)
        values.append(fixed_width(pa.int32(), counts, known))
        return pa.StructArray.from_arrays(values, fields=list(_TRANSACTION))

    def _counted(self, changes: Changes, places: Integers) -> pa.Array:
        """Return how many events of the first transaction are in earlier groups, by table."""
        commits, which = changes.of.commit_sequence_numbers, changes.transactions
        if int(commits[which[0]]) != self._last_commit:
            self._earlier[:] = 0
        earlier = pa.array(self._earlier.copy())
        if which[0] != which[-1]:
            self._earlier[:] = 0
        self._last_commit = int(commits[which[-1]])
        last = (which == which[-1]) & (changes.kinds != RecordKind.UPDBEF)
        self._earlier += np.bincount(places[last], minlength=len(self._earlier)).astype(np.int32)
        return earlier


def _described(changes: Changes, places: Integers) -> pa.StructArray:
    known = np.zeros(len(changes), bool)
    columns = [
        fixed_width(pa.int8(), _CODES[changes.kinds], known),
        fixed_width(pa.int32(), changes.ordinals.astype(np.int32), known),
        fixed_width(pa.int64(), changes.sequence_numbers, changes.unknown()),
        booleans(changes.unknown(), known),
        fixed_width(pa.int32(), places.astype(np.int32), known),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(_CHANGE))


def _as_list(values: pa.Array, kind: pa.ListType) -> pa.ListArray:
    """Return values as the only list of a column, without a copy."""
    bounds = pa.py_buffer(np.array([0, len(values)], np.int32))
    return pa.Array.from_buffers(kind, 1, [None, bounds], 0, children=[values])


@functools.lru_cache(maxsize=16)
def _named(
    form: bytes | None, kinds: bytes, tables: bytes, count: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of a group's tables, of which there are so many, and their definitions."""
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        if (form, json.loads(kinds)) == (_THIS_FORM, _TEXTS):
            known = json.loads(tables)
            names, definitions = tuple(known["names"]), tuple(known.get("definitions", ()))
            "".join(names + definitions).encode()  # they are texts
            if len(names) == count:
                return names, definitions
    shown = (form or b"?").decode(errors="replace")[:40]
    raise DataLoss(
        f"a segment is stored in format {shown!r}, which this version cannot read.",
        "Use the version that wrote it, or a later one.",
    )


@dataclass(frozen=True, slots=True, eq=False)
class ChangeGroup:
    """A group that is read.

    Attributes:
        tables: the names of its tables, as database:owner.table.
        definitions: of these tables, as text; may be empty.
        kinds: the number of each change's kind in `CHANGE_TYPES`.
        places: the place of each change's table in `tables`.
        columns: what is stored of transactions, and of changes, by name.
    """

    batch: pa.RecordBatch
    tables: tuple[str, ...]
    definitions: tuple[str, ...]
    kinds: NDArray[np.int8]
    places: NDArray[np.int32]
    columns: Mapping[str, pa.Array]
    _of: dict[str, Integers] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> ChangeGroup:
        """Open a stored batch.

        Raises:
            DataLoss: it is stored in a format that this version does not know.
        """
        metadata = batch.schema.metadata or {}
        about = (metadata.get(_FORM), metadata.get(_KINDS, b"[]"), metadata.get(_TABLES, b"{}"))
        named = _named(*about, batch.num_columns - _FIRST_TABLE)
        columns = {
            each.name: values
            for number, struct in enumerate((_TRANSACTION, _CHANGE))
            for each, values in zip(struct, batch.column(number).flatten().flatten(), strict=True)
        }
        return cls(batch, *named, columns[_KIND].to_numpy(), columns[_TABLE].to_numpy(), columns)

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def is_compared(self) -> bool:
        """Whether the changes are rows of a snapshot that are there to be compared with a copy."""
        return _COMPARED in self.batch.schema.metadata

    @property
    def transactions(self) -> Integers:
        """The index of each change's transaction."""
        if "transactions" not in self._of:
            counts = self.columns[_COUNT].to_numpy()
            self._of["transactions"] = np.repeat(np.arange(len(counts)), counts)
        return self._of["transactions"]

    @property
    def row_places(self) -> Integers:
        """The place of each change's row among the rows of its table; undefined for a TRUNCATE."""
        if "rows" not in self._of:
            has_row = self.kinds != TRUNCATE
            if len(self.tables) > 1:
                self._of["rows"] = _numbered(self.places, has_row, len(self.tables))
            elif has_row.all():
                self._of["rows"] = np.arange(len(self))
            else:
                self._of["rows"] = np.cumsum(has_row) - has_row
        return self._of["rows"]

    @property
    def events_of_table(self) -> Integers:
        """The 0-based number of each change's event among those of its transaction and table."""
        if "events" not in self._of:
            which = self.transactions
            keys = which * len(self.tables) + self.places
            counted = _numbered(keys, self.kinds != BEFORE, int(keys.max(initial=0)) + 1)
            earlier = self.batch.column(2).flatten().to_numpy()
            self._of["events"] = counted + np.where(which == 0, earlier[self.places], 0)
        return self._of["events"]

    def column(self, name: str, chosen: Integers) -> pa.Array:
        """Return a stored column about some changes, which are in order."""
        values = self.columns[name]
        if name not in _SHARED_NAMES or len(values) == len(self):  # of each transaction one change
            return _taken(values, chosen)
        is_all = len(chosen) == len(self)
        return pick(values, self.transactions if is_all else self.transactions[chosen])

    def rows_at(self, place: int) -> pa.StructArray:
        """Return all rows of a table, in the order of its changes."""
        return self.batch.column(_FIRST_TABLE + place).flatten()

    def by_table(self, chosen: Integers) -> Iterator[tuple[int, Integers]]:
        """Yield the place of each table that has some of the changes, and their indices in `chosen`."""
        if len(self.tables) == 1:
            yield 0, np.arange(len(chosen))
            return
        places = self.places[chosen]
        order = np.argsort(places, kind="stable")
        begins = np.flatnonzero(np.diff(places[order], prepend=-1, append=-1))
        for begin, end in pairwise(begins.tolist()):
            yield int(places[order[begin]]), order[begin:end]

    def rows_of(self, place: int, changes: Integers) -> pa.StructArray:
        """Return the rows of some changes of one table; none of them may be a TRUNCATE."""
        rows, places = self.rows_at(place), self.row_places[changes]
        is_in_order = bool((places[1:] > places[:-1]).all())
        return _taken(rows, places) if is_in_order else rows.take(pa.array(places))

    def part(self, first: int, end: int) -> pa.RecordBatch:
        """Return some changes with their rows, as a group."""
        rows = self.row_places
        lists: list[pa.Array] = []
        for place in range(len(self.tables)):
            is_mine = self.places[first:end] == place
            mine = np.flatnonzero(is_mine & (self.kinds[first:end] != TRUNCATE))
            begin = int(rows[first + mine[0]]) if len(mine) else 0
            lists.append(self.rows_at(place).slice(begin, len(mine)))
        changes = self.batch.column(1).flatten().slice(first, end - first)
        about = (self._transactions_of(first, end), changes, self._earlier_than(first))
        arrays = [pa.ListArray.from_arrays([0, len(each)], each) for each in (*about, *lists)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.batch.schema)

    def _transactions_of(self, first: int, end: int) -> pa.StructArray:
        """Return the transactions of some changes, with the remaining number of changes of each."""
        which = self.transactions[first:end]
        begun, done = (int(which[0]), int(which[-1]) + 1) if len(which) else (0, 0)
        kept = self.batch.column(0).flatten().slice(begun, done - begun)
        counts = np.bincount(which - begun, minlength=done - begun).astype(np.int32)
        values = [pa.array(counts) if f.name == _COUNT else kept.field(f.name) for f in _TRANSACTION]
        return pa.StructArray.from_arrays(values, fields=list(_TRANSACTION))

    def _earlier_than(self, first: int) -> pa.Array:
        """Return how many events of the transaction of a change are before it, by table."""
        which = self.transactions
        number = int(which[first]) if first < len(which) else 0
        begin = int(np.searchsorted(which, number))
        places = self.places[begin:first][self.kinds[begin:first] != BEFORE]
        counts = np.bincount(places, minlength=len(self.tables)).astype(np.int32)
        if number == 0:
            counts += self.batch.column(2).flatten().to_numpy()
        return pa.array(counts, pa.int32())


def transaction_counts(batch: pa.RecordBatch) -> tuple[Integers, Integers]:
    """Return the commits of the transactions of a stored batch, and the number of changes of each."""
    transactions = batch.column(0).flatten()
    counts = transactions.field(_COUNT).to_numpy().astype(np.int64)
    return transactions.field("_commit_version").to_numpy(), counts


def change_count(batch: pa.RecordBatch) -> int:
    """Return the number of changes in a stored batch."""
    return len(batch.column(1).flatten())


def _numbered(keys: NDArray[np.integer], counts: NDArray[np.bool_], key_count: int) -> Integers:
    """Return for each entry the number of earlier counted entries with its key, below `key_count`."""
    small = np.uint16 if key_count < 1 << 16 else np.int64  # of these a stable sort takes linear time
    order = np.argsort(keys.astype(small), kind="stable")
    before = np.append(0, np.cumsum(counts[order]))
    begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
    lengths = np.diff(begins, append=len(keys))
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = before[:-1] - np.repeat(before[begins], lengths)
    return numbers


def _taken(values: pa.Array, chosen: Integers) -> pa.Array:
    """Return values that are chosen in order; a run of them without a copy."""
    if len(chosen) and chosen[-1] - chosen[0] == len(chosen) - 1:
        return values.slice(int(chosen[0]), len(chosen))
    return values.take(pa.array(chosen)) if pa.types.is_nested(values.type) else pick(values, chosen)
