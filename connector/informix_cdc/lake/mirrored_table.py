"""One Informix table and its target: applies each micro-batch.

Rule: a batch changes the target in one commit, or not at all. A change that cannot be applied exactly
stops this table with a reason, and no other one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from informix_cdc.lake.equal_rows import are_equal, places_in
from informix_cdc.lake.identity import BatchEnd, Witnessed
from informix_cdc.lake.intervals import (
    BEGIN,
    Compared,
    KeyInterval,
    compare,
    concatenated,
    in_schema,
)
from informix_cdc.lake.large_batches import LARGE_BYTES, parts_by_key
from informix_cdc.lake.merges import Merge, of_images, of_images_kept, of_keys, of_states
from informix_cdc.lake.settings import CHANGES, CURRENT, FAIL, HISTORY, SOFT
from informix_cdc.lake.table_changes import (
    ADDED,
    AT,
    CHANGED,
    DELETED_AT,
    GONE,
    INSTANT,
    IS_STATE,
    SNAPSHOT,
    TO,
    TableChanges,
    all_changes,
    final_images,
    last_rows,
    numbers_of,
    states,
)
from informix_cdc.server import TableDefinition

SQL = b"sql"  # in the metadata of a column: its type, if the store has more of them than Arrow


class Target(Protocol):
    """A table of the lake; each method that writes a batch makes one commit, or none.

    A batch is given by its number over all epochs (`number_of`).

    Attributes:
        witnessed: what the table must have, and what others may not have changed since.
        has_snapshot_rows_only: whether all rows are known to come from the running snapshot, so that
            its next rows, which have other keys, can be appended.
    """

    witnessed: Witnessed | None
    has_snapshot_rows_only: bool

    def is_there(self) -> bool:
        """Return whether the table exists."""
        ...

    @property
    def merges_on_read(self) -> bool:
        """Whether the table was created to be merged on read."""
        ...

    @property
    def takes_parts(self) -> bool:
        """Whether rows that come in parts are never all in memory."""
        ...

    @property
    def keeps_versions(self) -> bool:
        """Whether earlier versions can be read."""
        ...

    def is_empty(self) -> bool:
        """Return whether the table has no rows."""
        ...

    def number(self) -> int | None:
        """Return the number of the last batch of this mirror in the current state; None if none is."""
        ...

    def end(self) -> BatchEnd | None:
        """Return where the batch of `number` ended; None if nobody knows any more."""
        ...

    def has(self, batch: int) -> bool:
        """Return whether the table has a batch in its current state.

        Raises:
            DataLoss: it has another batch with this number, or a later one.
        """
        ...

    def foreign_change(self) -> str:
        """Return what others have done to the rows since `witnessed`, in words; "" if nothing.

        Looks at the state that `number` or `has` has read, and moves `witnessed` up to it if the table
        is as this mirror left it.
        """
        ...

    def mend_torn_commits(self) -> None:
        """Remove the last commits if a power failure has torn them; called before anything else."""

    def accept(self) -> None:
        """Take the current state as the one that this mirror left."""

    def table_id(self) -> str:
        """Return what tells the table from another one that was made in its place."""
        ...

    def version(self) -> int:
        """Return the version that was last read or written."""
        ...

    def version_at(self, number: int, since: int, before: int | None) -> int | None:
        """Return the newest version whose last batch has at most a number; None if it is gone.

        Args:
            number: of the batch.
            since: a version that has it.
            before: the version of a later batch, if there is one.
        """
        ...

    def schema(self) -> pa.Schema:
        """Return the columns."""
        ...

    def stored(self, schema: pa.Schema, declared: Sequence[str] = ()) -> pa.Schema:
        """Return columns with the types in which the table stores them.

        Args:
            schema: the columns.
            declared: the Informix types of the first of them, in upper case.
        """
        ...

    def rows(self) -> pa.Table:
        """Return all rows."""
        ...

    def rows_between(self, limits: KeyInterval, open_column: str | None) -> pa.Table:
        """Return the rows in a key interval, and maybe others.

        Args:
            limits: of the interval.
            open_column: a column that is NULL in the rows that are wanted.
        """
        ...

    def create(
        self,
        schema: pa.Schema,
        name: str,
        description: str,
        *,
        on_read: bool = False,
        key: Sequence[str] = (),
    ) -> None:
        """Create the table if it does not exist.

        Args:
            schema: the columns, as `stored` returns them.
            name: of the table.
            description: of it.
            on_read: whether it is to be merged on read.
            key: columns by which its rows are found.
        """

    def add_columns(self, columns: Sequence[pa.Field]) -> None:
        """Add columns, with NULL in all existing rows."""

    def widen(self, schema: pa.Schema) -> None:
        """Widen column types, and add missing columns."""

    def append(self, rows: pa.Table, batch: int) -> None:
        """Append rows."""

    def replace(self, rows: pa.Table, batch: int | None, schema: pa.Schema) -> None:
        """Replace all rows, and the columns if they differ; `batch` is None if they are of none."""

    def merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        """Merge rows."""

    def merge_parts(self, parts: Callable[[], Iterator[pa.Table]], merge: Merge, batch: int) -> None:
        """Merge rows that come in parts, each with other keys.

        Args:
            parts: yields them; it is called again if another writer was first.
            merge: of all of them.
            batch: number of the batch.
        """

    def remove(self, keys: pa.Table, matching: Merge) -> None:
        """Remove the rows that match, as `of_keys` returns it."""


class BatchUndone(Exception):
    """The writes of a batch are undone, because a table has stopped: they will be done again."""


class TableStopped(Exception):
    """A table can no longer be mirrored; the others continue.

    Args:
        reason: what happened.
        remedy: what to do.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason, self.remedy = reason, remedy


RELOAD = (
    "To continue, exclude the table from the mirror with ! in option table, run the mirror once, and"
    " add the table again: its rows are then read again."
)


def changed_by_others(target: str, why: str) -> TableStopped:
    """Return the reason to stop a table whose target others have changed."""
    return TableStopped(f"its target {target} is not as the mirror left it: {why}.", RELOAD)


@dataclass(slots=True)
class MirroredTable:
    """A table and its target.

    Args:
        target: the target table.
        name: of the target.
        keep: current, history or changes.
        deletes: hard or soft.
        schema_change: add or fail.
        on_read: whether the target is created to be merged on read.
        folder: on a local disk, for changes that do not fit in memory.
    """

    target: Target
    name: str
    keep: str
    deletes: str
    schema_change: str
    on_read: bool = False
    folder: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    # The columns that the last changes needed, and of which definition and columns they were.
    _columns: tuple[TableDefinition, pa.Schema, pa.Schema] | None = field(default=None, init=False)

    @property
    def _form(self) -> str:
        return form_of(self.keep, self.deletes)

    @property
    def orders_by_commit(self) -> bool:
        """Whether readers of the target order its rows by their commits."""
        return self.keep in (HISTORY, CHANGES)

    def columns(self, changes: TableChanges) -> pa.Schema:
        """Return the columns of the target that these changes need."""
        of = changes.definition, changes.rows.schema
        if self._columns is None or self._columns[:2] != of:
            self._columns = *of, self._needed(changes)
        return self._columns[2]

    def _needed(self, changes: TableChanges) -> pa.Schema:
        key = () if self.keep == CHANGES else changes.definition.key
        own = [pa.field(f.name, f.type, nullable=f.name not in key) for f in changes.rows.schema]
        declared = [each.type for each in changes.definition.columns]
        return self.target.stored(pa.schema([*own, *ADDED[self._form]]), declared)

    def apply(self, compared: Compared, batch: int) -> None:
        """Apply a batch to the target, unless it already has the batch.

        Raises:
            TableStopped: the target cannot hold these rows exactly.
        """
        changes = compared.changes
        wanted, target = self.columns(changes), self.target
        is_there = target.is_there()
        is_made = not is_there and changes.begins_pass  # also if the table has no rows
        if not len(changes) and not changes.replaces and not is_made:
            return
        if not is_there:
            if target.witnessed is not None and not (is_made or changes.begins_snapshot):
                raise changed_by_others(self.name, "it no longer exists")
            description = f"{changes.definition.table} of Informix"
            key = changes.definition.key
            target.create(wanted, self.name, description, on_read=self.on_read, key=key)
            target.witnessed = None  # it was of the table that is no longer there
            target.has_snapshot_rows_only = True
        elif target.has(batch):
            return
        elif changes.begins_snapshot:
            target.accept()
        elif why := target.foreign_change():
            raise changed_by_others(self.name, why)
        else:
            self._require_same_form(target.schema().names)
        if not (self._form == CURRENT and (changes.last_truncate >= 0 or changes.replaces)):
            self._evolve(wanted, changes)
        self._remove_repeated(compared, changes.definition.key)
        _WAYS[self._form](self, changes, batch)

    def compared(self, changes: TableChanges) -> Compared:
        """Return ordinary changes in place of key intervals, and what differs in them.

        Raises:
            TableStopped: the target was created with another setting.
        """
        begins = bool(changes.is_kind(BEGIN).any())
        if not self._in_parts(changes):
            changes = changes.in_memory()
        if self.target.is_there():
            self._require_same_form(self.target.schema().names)
            if begins:  # whatever others have done is compared
                self.target.accept()
            if begins and self._form == CURRENT and not self._fits(changes):
                changes = replace(changes, replaces=True)
        if begins:
            changes = replace(changes, begins_pass=True)
        key, keeps_states = changes.definition.key, self._form == HISTORY
        twice: list[pa.Table] = []  # of deleted rows
        rows_of = partial(self._rows_of_table, twice)
        compared = compare(changes, key, rows_of, keeps_states=keeps_states)
        return replace(compared, deleted_twice=concatenated(twice) if compared.is_repaired else None)

    def _remove_repeated(self, compared: Compared, key: Sequence[str]) -> None:
        """Remove the rows of keys that others have doubled; those that stay are written again."""
        if compared.repeated is not None:
            is_null = TO if self._form == HISTORY else None
            self.target.remove(compared.repeated, of_keys(key, is_null=is_null))
        if compared.deleted_twice is not None:
            self.target.remove(compared.deleted_twice, of_keys(key, is_set=DELETED_AT))

    def _fits(self, changes: TableChanges) -> bool:
        """Return whether the target's columns can become those of the table."""
        try:
            self._evolvable(self.columns(changes), changes)
        except TableStopped:
            return False
        return True

    def _rows_of_table(self, twice: list[pa.Table], limits: KeyInterval) -> pa.Table:
        """Return the rows of the target that the table had, in an interval and maybe beyond it.

        Keys of deleted rows that others have doubled are appended to `twice`.
        """
        if not self.target.is_there():
            return pa.table({name: pa.array([], pa.string()) for name in limits.key})
        rows = self.target.rows_between(limits, TO if self._form == HISTORY else None)
        if self._form == SOFT:
            is_open = pc.is_null(rows.column(DELETED_AT))
            twice.append(_repeated(rows, is_open, limits.key))
            return rows.filter(is_open)
        return rows if self._form != CHANGES else last_rows(rows, limits.key)

    def _had(self, keys: pa.Table) -> np.ndarray:
        """Return which keys the target has."""
        _, places = self._rows_with(keys)
        found: np.ndarray = places >= 0
        return found

    def _rows_with(self, keys: pa.Table) -> tuple[pa.Table, np.ndarray]:
        """Return rows of the target, and for each of some keys the index of its row; -1: none."""
        ends = pc.min_max(keys.column(0)).as_py()
        names = tuple(keys.column_names)
        rows = self._rows_of_table([], KeyInterval(names, (ends["min"],), (ends["max"],)))
        both = pa.concat_tables([keys, rows.select(list(names)).cast(keys.schema)])
        numbers = numbers_of(both.columns)
        return rows, places_in(numbers[: len(keys)], numbers[len(keys) :])

    def _require_same_form(self, names: Sequence[str]) -> None:
        """Refuse a target that was created for another value of keep or deletes."""
        mine = set(ADDED[self._form].names)
        others = {name for form in (HISTORY, CHANGES) for name in ADDED[form].names} - mine
        needed = mine if self.keep in (HISTORY, CHANGES) else set()
        if others.intersection(names) or needed - set(names):
            raise TableStopped(
                f"keep is {self.keep}, but its target was created with another setting.",
                "Restore the previous keep, or set another name in the settings of the table.",
            )

    def _evolve(self, wanted: pa.Schema, changes: TableChanges) -> None:
        """Add and widen columns, so that the target can hold the rows."""
        added, changed = self._evolvable(wanted, changes)
        names = self.target.schema().names
        if changed:
            self.target.widen(pa.schema([*(wanted.field(name) for name in names), *added]))
        elif added:
            self.target.add_columns(added)

    def _evolvable(
        self, wanted: pa.Schema, changes: TableChanges
    ) -> tuple[list[pa.Field], list[pa.Field]]:
        """Return the columns to add, and those to widen.

        Raises:
            TableStopped: others have changed.
        """
        found = self.target.schema()
        added = [each for each in wanted if each.name not in found.names]
        changed = [
            each
            for each in wanted
            if each.name in found.names and _differ(found.field(each.name), each)
        ]
        lost = [name for name in found.names if name not in wanted.names]
        narrowed = [e for e in changed if not _is_wider(found.field(e.name).type, e.type)]
        begins = changes.begins_snapshot or (changes.begins_pass and self._form != CURRENT)
        if begins and all(found.field(name).nullable for name in lost):
            lost = []  # existing rows keep their values; new rows have NULL
        if lost or narrowed or (self.schema_change == FAIL and (added or changed)):
            what = [
                *(f"column {name} was dropped or renamed" for name in lost),
                *(f"column {e.name} was {found.field(e.name).type} and is {e.type}" for e in narrowed),
                *(f"column {e.name} was added" for e in added if self.schema_change == FAIL),
                *(f"column {e.name} was widened to {e.type}" for e in changed if e not in narrowed),
            ]
            raise TableStopped(f"its columns have changed: {'; '.join(what)}.", RELOAD)
        return added, changed

    def _in_parts(self, changes: TableChanges) -> bool:
        """Return whether changes are too many for memory, and the target can take them in parts."""
        target = self.target
        if changes.is_snapshot or changes.nbytes <= LARGE_BYTES:
            return False
        return target.is_there() and target.takes_parts and bool(changes.is_kind(*CHANGED).all())

    def _merged_in_parts(
        self,
        changes: TableChanges,
        rows_of: Callable[[TableChanges], pa.Table],
        merge: Callable[[Sequence[str]], Merge],
        batch: int,
    ) -> None:
        key = changes.definition.key
        # Of one change: a merge wants the names of columns before it has the rows.
        names = rows_of(changes.part(len(changes) - 1).in_memory()).column_names
        self.target.merge_parts(
            lambda: map(rows_of, parts_by_key(changes, key, self.folder)), merge(names), batch
        )

    def _current(self, changes: TableChanges, batch: int) -> None:
        key, target = changes.definition.key, self.target
        if self._in_parts(changes):
            rows_of = partial(final_images, key=key, had=self._had)
            return self._merged_in_parts(changes, rows_of, partial(of_images, key=key), batch)
        images = final_images(changes, key, self._had)
        if changes.last_truncate >= 0 or changes.replaces:
            rows = _there(images)
            if len(rows) or not target.is_empty() or target.schema() != self.columns(changes):
                target.replace(rows, batch, self.columns(changes))
            target.has_snapshot_rows_only = changes.is_snapshot
        elif not self._appended(images, changes, batch):
            target.merge(images, of_images(images.column_names, key), batch)
        return None

    def _soft(self, changes: TableChanges, batch: int) -> None:
        key, place = changes.definition.key, changes.last_truncate
        emptied_at = None if place < 0 else changes.commit_at(place)[1]
        merge = partial(of_images_kept, key=key, emptied_at=emptied_at)
        if self._in_parts(changes):
            return self._merged_in_parts(changes, self._soft_images, merge, batch)
        images = self._soft_images(changes)
        if not self._appended(images, changes, batch):
            self.target.merge(images, merge(images.column_names), batch)
        return None

    def _soft_images(self, changes: TableChanges) -> pa.Table:
        images = final_images(changes, changes.definition.key, self._had)
        gone = pc.if_else(images.column(GONE), images.column(AT), pa.scalar(None, INSTANT))
        return images.append_column(DELETED_AT, gone)

    def _history(self, changes: TableChanges, batch: int) -> None:
        key, place = changes.definition.key, changes.first_truncate
        emptied = None if place < 0 else changes.commit_at(place)
        merge = partial(of_states, key=key, emptied=emptied)
        if self._in_parts(changes):
            rows_of = partial(states, key=key, had=self._had)
            return self._merged_in_parts(changes, rows_of, merge, batch)
        if not (self.target.is_empty() or self.target.has_snapshot_rows_only):
            changes = self._without_known_rows(changes)
        found = states(changes, key, self._had)
        if not len(found) and place < 0:
            return None
        begun = found.filter(found.column(IS_STATE)).drop_columns(IS_STATE)
        if not self._appended(begun, changes, batch):
            self.target.merge(found, merge(found.column_names), batch)
        return None

    def _without_known_rows(self, changes: TableChanges) -> TableChanges:
        """Return the changes without rows of a chunk that the target has since they changed."""
        key = list(changes.definition.key)
        is_read = changes.is_kind("insert") & np.asarray(changes.about.column(SNAPSHOT).to_numpy())
        _, firsts = np.unique(
            numbers_of([changes.rows.column(name) for name in key]), return_index=True
        )
        places = np.intersect1d(firsts, np.flatnonzero(is_read))
        if not len(places) or changes.last_truncate >= 0:
            return changes
        rows = changes.rows.take(pa.array(places))
        known, twins = self._rows_with(rows.select(key))
        there = np.flatnonzero(twins >= 0)
        known = in_schema(rows.schema, known.take(pa.array(twins[there])))
        is_known = are_equal(rows.take(pa.array(there)), known)
        return changes.only(~np.isin(np.arange(len(changes)), places[there[is_known]]))

    def _changes(self, changes: TableChanges, batch: int) -> None:
        self.target.append(all_changes(changes), batch)

    def _appended(self, images: pa.Table, changes: TableChanges, batch: int) -> bool:
        """Append rows if no other row can have their keys; return whether they were appended.

        That holds if the target is empty, or if all its rows and the new ones come from one snapshot.

        Args:
            images: last images, with GONE; or rows.
            changes: that they are of.
            batch: number of the batch.
        """
        target = self.target
        is_empty = target.is_empty()
        target.has_snapshot_rows_only = changes.is_snapshot and (
            is_empty or (target.has_snapshot_rows_only and changes.last_truncate < 0)
        )
        if not (is_empty or target.has_snapshot_rows_only):
            return False
        if len(rows := _there(images)):
            target.append(rows, batch)
        return True


_WAYS: dict[str, Callable[[MirroredTable, TableChanges, int], None]] = {
    CURRENT: MirroredTable._current,
    SOFT: MirroredTable._soft,
    HISTORY: MirroredTable._history,
    CHANGES: MirroredTable._changes,
}


def form_of(keep: str, deletes: str) -> str:
    """Return which of ADDED a target has."""
    return SOFT if keep == CURRENT and deletes == SOFT else keep


def _repeated(rows: pa.Table, is_open: pa.ChunkedArray, key: Sequence[str]) -> pa.Table:
    """Return the keys of deleted rows that are there twice, because others have written them."""
    numbers = numbers_of([rows.column(name) for name in key])
    _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    is_deleted = ~np.asarray(is_open.to_numpy(), bool)
    return rows.filter(pa.array(is_deleted & (counts[places] > 1))).select(list(key))


def _there(images: pa.Table) -> pa.Table:
    """Return the rows that are not deleted."""
    if GONE not in images.column_names:  # states of a history, all of which begin
        return images
    kept = images.filter(pa.array(~np.asarray(images.column(GONE).to_numpy())))
    return kept.drop_columns([GONE, AT])


def _differ(found: pa.Field, wanted: pa.Field) -> bool:
    """Return whether columns have other types, or in SQL other limits."""
    in_sql = [(each.metadata or {}).get(SQL) for each in (found, wanted)]
    return found.type != wanted.type or in_sql[0] != in_sql[1]


_WIDER: dict[pa.DataType, Sequence[pa.DataType]] = {
    pa.int16(): (pa.int32(), pa.int64()),
    pa.int32(): (pa.int64(),),
    pa.float32(): (pa.float64(),),
}


def _is_wider(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether every value of a type is also one of another."""
    if pa.types.is_decimal(old) and pa.types.is_decimal(new):
        more = new.scale - old.scale
        return bool(more >= 0 and new.precision - old.precision >= more)
    return old == new or any(new == each for each in _WIDER.get(old, ()))
