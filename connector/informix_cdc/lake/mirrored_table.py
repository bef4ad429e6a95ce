"""One Informix table and its target: what the target is given of each micro-batch.

Rule: the target changes in one commit for a batch, or not at all. What cannot be applied exactly stops
this table with a reason, and no other one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from informix_cdc.lake.delta_tables import DeltaTarget
from informix_cdc.lake.settings import CHANGES, CURRENT, FAIL, HISTORY, SOFT
from informix_cdc.lake.table_changes import (
    ADDED,
    COMMIT,
    GONE,
    TIME,
    TableChanges,
    all_changes,
    final_images,
    states,
)


class TableStopped(Exception):
    """A table cannot be mirrored any more; the others go on.

    Args:
        reason: what happened.
        remedy: what to do.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason, self.remedy = reason, remedy


RELOAD = (
    "To go on, take the table out of the mirror with tableExclude, run it once, and put the table back:"
    " its rows are read again."
)


@dataclass(slots=True)
class MirroredTable:
    """A table and its target.

    Args:
        target: where its rows go.
        name: of the target.
        keep: current, history or changes.
        deletes: hard or soft.
        schema_change: add or fail.
    """

    target: DeltaTarget
    name: str
    keep: str
    deletes: str
    schema_change: str

    @property
    def _form(self) -> str:
        return form_of(self.keep, self.deletes)

    def columns(self, changes: TableChanges) -> pa.Schema:
        """Return the columns of the target that these changes need."""
        key = () if self.keep == CHANGES else changes.definition.key
        own = [pa.field(f.name, f.type, nullable=f.name not in key) for f in changes.rows.schema]
        return pa.schema([*own, *ADDED[self._form]])

    def apply(self, changes: TableChanges, batch: int) -> None:
        """Bring a batch into the target, unless it is there.

        Raises:
            TableStopped: the target cannot hold these rows exactly.
        """
        wanted, target = self.columns(changes), self.target
        if not changes.definition.key and self.keep != CHANGES:
            raise TableStopped(
                f"it has no key: {changes.definition.why_no_key}.",
                f"Name one with key, or set keep to {CHANGES}. {RELOAD}",
            )
        if not target.is_there():
            target.create(wanted, self.name, f"{changes.definition.table} of Informix")
            target.has_snapshot_rows_only = True
        elif target.has(batch):
            return
        replaces = self._form == CURRENT and changes.last_truncate >= 0
        if not replaces:
            self._evolve(wanted)
        _WAYS[self._form](self, changes, batch)

    def _evolve(self, wanted: pa.Schema) -> None:
        """Add columns and widen others, so that the target can hold rows with other columns."""
        found = self.target.schema()
        added = [each for each in wanted if each.name not in found.names]
        changed = [
            each
            for each in wanted
            if each.name in found.names and found.field(each.name).type != each.type
        ]
        lost = [name for name in found.names if name not in wanted.names]
        narrowed = [e for e in changed if not _is_wider(found.field(e.name).type, e.type)]
        if lost or narrowed or (self.schema_change == FAIL and (added or changed)):
            what = [
                *(f"column {name} was dropped or renamed" for name in lost),
                *(f"column {e.name} was {found.field(e.name).type} and is {e.type}" for e in narrowed),
                *(f"column {e.name} was added" for e in added if self.schema_change == FAIL),
                *(f"column {e.name} was widened to {e.type}" for e in changed if e not in narrowed),
            ]
            raise TableStopped(f"its columns have changed: {'; '.join(what)}.", RELOAD)
        if changed:
            self.target.rewrite(pa.schema([*(wanted.field(name) for name in found.names), *added]))
        elif added:
            self.target.add_columns(added)

    def _current(self, changes: TableChanges, batch: int) -> None:
        key, target = changes.definition.key, self.target
        images = final_images(changes, key)
        if changes.last_truncate >= 0:
            rows = _there(images)
            if len(rows) or not target.is_empty() or target.schema() != self.columns(changes):
                target.replace(rows, batch, self.columns(changes))
            target.has_snapshot_rows_only = changes.is_snapshot
        elif target.has_snapshot_rows_only and changes.is_snapshot:
            target.append(_there(images), batch)
        else:
            target.has_snapshot_rows_only = False
            target.merge_images(images, key, batch)

    def _soft(self, changes: TableChanges, batch: int) -> None:
        key, target = changes.definition.key, self.target
        images = final_images(changes, key)
        place = changes.last_truncate
        if target.is_empty():
            target.has_snapshot_rows_only = changes.is_snapshot
            rows = _there(images)
            if len(rows):
                target.append(rows, batch)
        elif place < 0 and target.has_snapshot_rows_only and changes.is_snapshot:
            target.append(_there(images), batch)
        else:
            target.has_snapshot_rows_only = False
            emptied = None if place < 0 else changes.microseconds(place)
            target.merge_images_softly(images, key, batch, emptied)

    def _history(self, changes: TableChanges, batch: int) -> None:
        key, target = changes.definition.key, self.target
        found = states(changes, key)
        if target.is_empty():
            target.has_snapshot_rows_only = changes.is_snapshot
            begun = found.filter(found.column("_is_state"))
            if len(begun):
                target.append(begun.drop_columns("_is_state"), batch)
        elif changes.first_truncate < 0 and target.has_snapshot_rows_only and changes.is_snapshot:
            begun = found.filter(found.column("_is_state"))
            target.append(begun.drop_columns("_is_state"), batch)
        else:
            target.has_snapshot_rows_only = False
            place = changes.first_truncate
            commit = changes.about.column(COMMIT)
            emptied = None if place < 0 else (commit[place].as_py(), changes.microseconds(place))
            target.merge_states(found, key, batch, emptied)

    def _changes(self, changes: TableChanges, batch: int) -> None:
        self.target.append(all_changes(changes), batch)


_WAYS: dict[str, Callable[[MirroredTable, TableChanges, int], None]] = {
    CURRENT: MirroredTable._current,
    SOFT: MirroredTable._soft,
    HISTORY: MirroredTable._history,
    CHANGES: MirroredTable._changes,
}


def form_of(keep: str, deletes: str) -> str:
    """Return which of ADDED a target has."""
    return SOFT if keep == CURRENT and deletes == SOFT else keep


def _there(images: pa.Table) -> pa.Table:
    """Return the rows that are not gone."""
    kept = images.filter(pa.array(~np.asarray(images.column(GONE).to_numpy())))
    return kept.drop_columns([GONE, TIME])


_WIDER: dict[pa.DataType, Sequence[pa.DataType]] = {
    pa.int16(): (pa.int32(), pa.int64()),
    pa.int32(): (pa.int64(),),
    pa.float32(): (pa.float64(),),
}


def _is_wider(old: pa.DataType, new: pa.DataType) -> bool:
    """Tell whether each value of a type is one of another."""
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        more = new.scale - old.scale
        return bool(more >= 0 and new.precision - old.precision >= more)
    return any(new == each for each in _WIDER.get(old, ()))
