"""Changes of ended transactions as columns, which `delivered_rows.py` delivers.

Rule: one entry per change and one per transaction, in commit order. Rows are in one buffer, and an
entry has their positions; only changes that were assembled record by record also have an object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from informix_db2.changes import DELETE, INSERT, UPDATE, IntArray
from informix_db2.code_pages import placed_bytes
from informix_db2.log_records.transactions import NO_ROW, Db2Transaction, RowChange

KINDS = (INSERT, DELETE, UPDATE, NO_ROW)
NO_TABLE = -1
RecordBytes = NDArray[np.uint8]
Structs = NDArray[Any]

# Where a row or a record lies: its first byte and its size, -1 for none; behind that what a row says of
# the size of its fixed part, and the number of a record. `object` is -1 for none.
CHANGE = np.dtype(
    [
        ("kind", "i1"),
        ("table", "i8"),
        ("rid", "u1", 6),
        ("place", "u8", 2),
        ("old", "i8", 3),
        ("new", "i8", 3),
        ("record", "i8", 3),
        ("transaction", "i8"),
        ("ordinal", "i8"),
        ("object", "i8"),
    ]
)
TRANSACTION = np.dtype(
    [
        ("identifier", "u1", 6),
        ("stream", "i8"),
        ("commit", "u8", 2),
        ("is_committed", "?"),
        ("microseconds", "i8"),
        ("has_time", "?"),
        ("order", "i8"),
        ("value", "i8"),
    ]
)
_SIDES = ("old", "new")


def table_code(space: int, table: int) -> int:
    """Return a table's two numbers as one."""
    return space << 16 | table


@dataclass(frozen=True)
class Ended:
    """A transaction assembled record by record; `order` is the place of its last record."""

    transaction: Db2Transaction
    order: int
    value: int


@dataclass(frozen=True)
class LoggedChanges:
    """Changes and their transactions; `objects` has further facts of some changes."""

    data: RecordBytes
    changes: Structs
    transactions: Structs
    objects: Sequence[RowChange] = ()

    def parts(self, most: int) -> Iterator[LoggedChanges]:
        """Yield the changes in batches."""
        for first in range(0, len(self.changes), most):
            yield replace(self, changes=self.changes[first : first + most])

    def only(self, places: IntArray) -> LoggedChanges:
        """Return some of the changes."""
        return replace(self, changes=self.changes[places])


def nothing_of() -> LoggedChanges:
    """Return no changes."""
    return LoggedChanges(np.empty(0, np.uint8), np.empty(0, CHANGE), np.empty(0, TRANSACTION))


def of_transactions(ended: Sequence[Ended]) -> LoggedChanges:
    """Return the changes of transactions, without undone changes and internal rows."""
    images, objects, rows, at = list[bytes](), list[RowChange](), list[Any](), 0
    for number, each in enumerate(ended):
        for change in each.transaction.changes:
            row = change.row
            if change.is_undone or (row is not None and row.old is None and row.new is None):
                continue
            sides: list[tuple[int, int, int]] = []
            for image in (row.old, row.new) if row else (None, None):
                sides.append((at, -1, 0) if image is None else (at, len(image.data), image.fixed_bytes))
                images.append(image.data if image else b"")
                at += len(images[-1])
            kind = KINDS.index(change.kind)
            code = table_code(row.space, row.table) if row else NO_TABLE
            rid = tuple(row.rid) if row else (0,) * 6
            rows.append((kind, code, rid, change.place, *sides, (-1, -1, -1), number, 0, len(objects)))
            objects.append(change)
    transactions = [_transaction(each) for each in ended]
    return LoggedChanges(
        np.frombuffer(b"".join(images), np.uint8),
        np.array(rows, CHANGE),
        np.array(transactions, TRANSACTION),
        objects,
    )


def _transaction(each: Ended) -> tuple[Any, ...]:
    found = each.transaction
    micros = found.commit_microseconds
    return (
        tuple(found.identifier),
        found.stream,
        found.commit or (0, 0),
        found.commit is not None,
        micros or 0,
        micros is not None,
        each.order,
        each.value,
    )


def merged(usual: LoggedChanges, others: LoggedChanges) -> LoggedChanges:
    """Merge changes in commit order, numbered within their transactions."""
    if not len(others.transactions):
        return _numbered(usual)
    if len(usual.changes):
        usual = _compact(usual)
    changes = np.concatenate([usual.changes, others.changes])
    moved = changes[len(usual.changes) :]
    moved["transaction"] += len(usual.transactions)
    for side in _SIDES:
        moved[side][:, 0] += len(usual.data) if len(usual.changes) else 0
    data = np.concatenate([usual.data, others.data]) if len(usual.changes) else others.data
    transactions = np.concatenate([usual.transactions, others.transactions])
    order = np.argsort(transactions["order"][changes["transaction"]], kind="stable")
    return _numbered(LoggedChanges(data, changes[order], transactions, others.objects))


def _compact(logged: LoggedChanges) -> LoggedChanges:
    """Return the changes with a buffer that contains only their rows."""
    changes, pieces, at = logged.changes.copy(), list[RecordBytes](), 0
    for side in _SIDES:
        sizes = np.maximum(changes[side][:, 1], 0)
        rows = placed_bytes(logged.data, changes[side][:, 0], sizes)
        pieces.append(np.frombuffer(rows.buffers()[2] or b"", np.uint8)[: int(sizes.sum())])
        changes[side][:, 0] = at + np.cumsum(sizes) - sizes
        at += len(pieces[-1])
    return replace(logged, data=np.concatenate(pieces), changes=changes)


def _numbered(logged: LoggedChanges) -> LoggedChanges:
    """Return changes with their places in their transactions; an update counts as two."""
    changes = logged.changes
    if len(changes):
        counts = np.where(changes["kind"] == KINDS.index(UPDATE), 2, 1)
        before = np.cumsum(counts) - counts
        transactions = changes["transaction"]
        is_first = np.concatenate([[True], transactions[1:] != transactions[:-1]])
        firsts = np.flatnonzero(is_first)
        changes["ordinal"] = before - before[firsts][np.cumsum(is_first) - 1]
    return logged
