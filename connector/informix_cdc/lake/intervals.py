"""Compare chunks that are read again with a target, each in the key interval that it covers.

Rule: Arrow in, Arrow out. A chunk is true at its place in the stream. What the target has before the
batch is true there too, for every key that no change of the batch touches: such keys are compared, all
others get the row of their last change anyway. So a comparison needs no lock, and lag is no difference.

    range_start     the key after which the interval begins; NULL: before everything; a prefix: with it
    insert          the rows that the table has in it
    range_skip      keys that changed while the chunk was read
    range_end       the last key; NULL: to the end; a prefix: to the last row with it

An interval becomes ordinary changes: an insert for each row that is missing or different, a delete for
each row that the table does not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.object_readers import READ, is_content_type
from informix_cdc.lake.equal_rows import flags_of, places_in, unequal_columns
from informix_cdc.lake.table_changes import KIND, OF_INTERVALS, TableChanges, numbers_of

STARTS = OF_INTERVALS[:3]
SKIP, END, BEGIN = OF_INTERVALS[3:]
_REPORTED, _APPLIED = STARTS[1:], ("range_start", "repair_start")


@dataclass(frozen=True, slots=True)
class KeyInterval:
    """The limits of a key interval: values of the first key columns, fewer than all for a prefix.

    Attributes:
        low: exclusive; a prefix is inclusive. Empty: before everything.
        high: inclusive. Empty: to the end.
        others: values of the first key column of further rows that are wanted, whatever the limits.
    """

    key: tuple[str, ...]
    low: tuple[Any, ...]
    high: tuple[Any, ...]
    others: tuple[str, ...] = ()

    def contains(self, rows: pa.Table) -> np.ndarray:
        """Return which rows are certainly in the interval; text is compared without trailing blanks."""
        found = ~self.without_order(rows)
        columns = [_compared(rows.column(name)) for name in self.key]
        if self.low:
            above = _is_above(columns, self.low)
            found &= above if len(self.low) == len(self.key) else above | _starts(columns, self.low)
        if self.high:
            found &= ~_is_above(columns, self.high)
        return found

    def without_order(self, rows: pa.Table) -> np.ndarray:
        """Return which rows are before or behind a limit depending on how texts are padded.

        Blanks pad a CHAR, so that a text with a character below the blank comes before its own
        beginning; whether they pad a VARCHAR is not known.
        """
        found = np.zeros(len(rows), bool)
        columns = [_compared(rows.column(name)) for name in self.key]
        for limit in (self.low, self.high):
            same = np.ones(len(rows), bool)
            for column, value in zip(columns, limit, strict=False):
                if isinstance(value, str):
                    found |= same & _depends_on_padding(column, value.rstrip(" "))
                same &= flags_of(pc.equal(column, _compared_value(value, column.type)))
        return found


def _depends_on_padding(column: pa.ChunkedArray, text: str) -> np.ndarray:
    """Return which values begin with a text, or are its beginning, before a control character."""
    rest = pc.utf8_slice_codeunits(column, len(text))
    longer = pc.and_(pc.starts_with(column, text), pc.match_substring_regex(rest, r"^ *[\x00-\x1f]"))
    ends = [place for place, character in enumerate(text) if character < " "]
    beginnings = pa.array([text[:end].rstrip(" ") for end in ends], column.type)
    found: np.ndarray = flags_of(longer) | flags_of(pc.is_in(column, value_set=beginnings))
    return found


def _is_above(columns: Sequence[pa.ChunkedArray], values: Sequence[Any]) -> np.ndarray:
    """Return which keys are above a key, or above all keys with a prefix."""
    above, same = np.zeros(len(columns[0]), bool), np.ones(len(columns[0]), bool)
    for column, value in zip(columns, values, strict=False):
        limit = _compared_value(value, column.type)
        above |= same & flags_of(pc.greater(column, limit))
        same &= flags_of(pc.equal(column, limit))
    return above


def _starts(columns: Sequence[pa.ChunkedArray], values: Sequence[Any]) -> np.ndarray:
    same = np.ones(len(columns[0]), bool)
    for column, value in zip(columns, values, strict=False):
        same &= flags_of(pc.equal(column, _compared_value(value, column.type)))
    return same


def _compared(column: pa.ChunkedArray) -> pa.ChunkedArray:
    is_text = pa.types.is_string(column.type)
    return pc.utf8_rtrim(column, characters=" ") if is_text else column


def _compared_value(value: object, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(value.rstrip(" ") if isinstance(value, str) else value, kind)


@dataclass(frozen=True, slots=True)
class Difference:
    """A row in which a target differs from Informix.

    Attributes:
        what: missing, extra or different.
        key: its key, as JSON.
        columns: the columns that differ.
        commit: the commit after which the target differs.
    """

    what: str
    key: str
    columns: tuple[str, ...]
    commit: int


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of comparing all intervals of a batch.

    Attributes:
        changes: ordinary changes only.
        differences: to report.
        is_repaired: whether `changes` mend them.
        repeated: keys that the target has twice. Changes apply to keys, so that they cannot remove one
            of the two: both are to be removed before the changes are applied.
        deleted_twice: keys of deleted rows that the target has twice, likewise.
    """

    changes: TableChanges
    differences: tuple[Difference, ...]
    is_repaired: bool
    repeated: pa.Table | None = None
    deleted_twice: pa.Table | None = None

    @property
    def is_written(self) -> bool:
        """Whether a target may change: not if all that was read for a comparison is equal."""
        changes = self.changes
        return bool(
            len(changes)
            or changes.begins_pass
            or changes.replaces
            or self.repeated is not None
            or self.deleted_twice is not None
        )


@dataclass(frozen=True, slots=True)
class _Interval:
    first: int
    end: int  # the index of range_end
    purpose: str


def begins_pass(changes: TableChanges) -> bool:
    """Return whether a table is read again from its first row from somewhere in these changes on."""
    return bool(changes.is_kind(BEGIN).any())


def from_pass(changes: TableChanges) -> TableChanges:
    """Return the changes from the last place where a table is read again from its first row."""
    return changes.part(int(np.flatnonzero(changes.is_kind(BEGIN))[-1]))


def compare(
    changes: TableChanges,
    key: Sequence[str],
    target_rows: Callable[[KeyInterval], pa.Table],
    *,
    keeps_states: bool = False,
) -> Compared:
    """Return ordinary changes in place of intervals, and the differences that are to be reported.

    Args:
        changes: of one table, in order.
        key: the columns that identify a row.
        target_rows: returns rows that the target had before the batch: all in an interval, and
            maybe others.
        keeps_states: whether rows that change or go stay as past states, so that a key that others
            have doubled needs no repair when it changes or goes.
    """
    found = list(_intervals(changes))
    if not found and not begins_pass(changes):
        return Compared(changes, (), is_repaired=True)
    of_intervals = np.zeros(len(changes), bool)
    for each in found:
        of_intervals[each.first : each.end + 1] = True
    ordinary = ~of_intervals & ~changes.is_kind(BEGIN)
    touched = np.flatnonzero(ordinary & ~changes.is_kind("truncate"))
    kept, made = ordinary.copy(), list[_Made]()
    differences, repeated = list[Difference](), list[pa.Table]()
    for each in found:
        if each.end < changes.last_truncate:
            continue
        here = _Comparison(changes, tuple(key), each, touched)
        is_empty = changes.last_truncate >= 0 or changes.replaces
        existing = here.no_rows() if is_empty else here.in_interval(target_rows)
        result = here.compared(existing, keeps_states=keeps_states)
        if each.purpose in _APPLIED:
            kept[result.added] = True
            made += [(each.end, "delete", result.extra), (each.end, "insert", result.again)]
            repeated.append(result.repeated)
        if each.purpose in _REPORTED:
            differences += result.differences
    return Compared(
        _with_made(changes, kept, made),
        tuple(differences),
        is_repaired=all(each.purpose in _APPLIED for each in found),
        repeated=concatenated(repeated),
    )


def concatenated(tables: Sequence[pa.Table]) -> pa.Table | None:
    """Return the rows of all tables; None if there are none."""
    return pa.concat_tables(tables) if any(map(len, tables)) else None


def _intervals(changes: TableChanges) -> Iterator[_Interval]:
    starts, ends = (np.flatnonzero(changes.is_kind(*kinds)) for kinds in (STARTS, (END,)))
    for first, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield _Interval(first, end, changes.about.column(KIND)[first].as_py())


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of comparing an interval.

    Attributes:
        added: indexes of the rows to write.
        extra: rows to delete.
        repeated: keys that the target has twice, to be removed first.
        again: rows of the target to write again after that: they changed while the chunk was read, so
            that the chunk does not know them.
        differences: to report.
    """

    added: np.ndarray
    extra: pa.Table
    repeated: pa.Table
    again: pa.Table
    differences: Sequence[Difference]


@dataclass(slots=True)
class _Comparison:
    changes: TableChanges
    key: tuple[str, ...]
    interval: _Interval
    touched: np.ndarray

    @property
    def limits(self) -> KeyInterval:
        def values(place: int) -> tuple[Any, ...]:
            row = [self.changes.rows.column(name)[place].as_py() for name in self.key]
            return tuple(row[: row.index(None)] if None in row else row)

        found = KeyInterval(self.key, values(self.interval.first), values(self.interval.end))
        others = self._chunk.filter(pa.array(found.without_order(self._chunk))).column(self.key[0])
        texts = {text for text in others.to_pylist() if isinstance(text, str)}
        return replace(found, others=tuple(sorted(texts | {text.rstrip(" ") for text in texts})))

    @property
    def _chunk(self) -> pa.Table:
        """The keys of the rows in the chunk, and of those that it does not know."""
        first, end = self.interval.first + 1, self.interval.end
        return self.changes.rows.select(list(self.key)).slice(first, end - first)

    def no_rows(self) -> pa.Table:
        return self.changes.rows.slice(0, 0)

    def in_interval(self, target_rows: Callable[[KeyInterval], pa.Table]) -> pa.Table:
        limits = self.limits
        rows = in_schema(self.changes.rows.schema, target_rows(limits))
        return rows.filter(pa.array(limits.contains(rows) | self._is_named(rows, limits)))

    def _is_named(self, rows: pa.Table, limits: KeyInterval) -> np.ndarray:
        """Return which rows have a key without a known order that is in the chunk, too."""
        found = limits.without_order(rows)
        if found.any():
            keys = pa.concat_tables([rows.select(list(self.key)), self._chunk])
            numbers = numbers_of([_compared(keys.column(name)) for name in self.key])
            found &= np.isin(numbers[: len(rows)], numbers[len(rows) :])
        return found

    def compared(self, existing: pa.Table, *, keeps_states: bool) -> _Result:
        """Compare the chunk with the rows that the target had; see `compare`."""
        places = np.arange(self.interval.first + 1, self.interval.end)
        is_skip = self.changes.is_kind(SKIP)[places]
        inside, skipped = places[~is_skip], places[is_skip]
        rows = self.changes.rows.take(pa.array(inside))
        doubtful = self.changes.rows.take(pa.array(np.concatenate([skipped, self.touched])))
        keys = pa.concat_tables([each.select(list(self.key)) for each in (rows, existing, doubtful)])
        numbers = numbers_of([_compared(keys.column(name)) for name in self.key])
        of_rows, of_existing, of_doubtful = np.split(numbers, [len(rows), len(rows) + len(existing)])
        known = ~np.isin(of_rows, of_doubtful)
        is_new = known & ~np.isin(of_rows, of_existing)
        is_extra = ~np.isin(of_existing, of_rows) & ~np.isin(of_existing, of_doubtful)
        both = np.flatnonzero(known & np.isin(of_rows, of_existing))
        twins = places_in(of_rows[both], of_existing)
        unequal = unequal_columns(rows.take(pa.array(both)), existing.take(pa.array(twins)), self.key)
        differs = np.zeros(len(both), bool)
        for flags in unequal.values():
            differs |= flags
        different = both[differs]

        order = np.argsort(of_existing, kind="stable")
        repeated = order[1:][np.diff(of_existing[order]) == 0]  # each has a twin before it
        is_present = np.isin(of_existing[repeated], of_rows[known])
        of_skipped, of_touched = np.split(of_doubtful, [len(skipped)])
        is_again = np.isin(of_existing[repeated], of_skipped)
        is_again &= ~np.isin(of_existing[repeated], of_touched)  # their changes follow
        is_removed = (is_present | is_again) if keeps_states else np.ones(len(repeated), bool)
        _, firsts = np.unique(of_existing[repeated[is_again]], return_index=True)
        twice = np.flatnonzero(known & np.isin(of_rows, of_existing[repeated]))

        extra = existing.filter(pa.array(is_extra))
        found = [
            *self._named("missing", rows.filter(pa.array(is_new)), {}),
            *self._named("extra", extra, {}),
            *self._named("extra", existing.take(pa.array(repeated[is_present])), {}),
            *self._named(
                "different",
                rows.take(pa.array(different)),
                {name: flags[differs] for name, flags in unequal.items()},
            ),
        ]
        added = np.unique(np.concatenate([np.flatnonzero(is_new), different, twice]))
        return _Result(
            inside[added],
            extra,
            existing.take(pa.array(repeated[is_removed])).select(list(self.key)),
            existing.take(pa.array(repeated[is_again][firsts])),
            found,
        )

    def _named(self, what: str, rows: pa.Table, unequal: dict[str, np.ndarray]) -> Iterator[Difference]:
        if self.interval.purpose not in _REPORTED:
            return
        commit = self.changes.commit_at(self.interval.end)[0]
        for place, key in enumerate(rows.select(list(self.key)).to_pylist()):
            columns = tuple(name for name, flags in unequal.items() if flags[place])
            yield Difference(what, json.dumps(key, default=str), columns, commit)


def in_schema(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    """Return rows with the columns and types of the changes; missing columns are NULL."""
    columns = [
        _cast(rows.column(each.name), each.type)
        if each.name in rows.column_names
        else pa.nulls(len(rows), each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema([(e.name, e.type) for e in schema]))


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return values in another type; one that Informix cannot have becomes NULL.

    A store may have the content of a large object alone: it was read.
    """
    if is_content_type(kind) and not pa.types.is_struct(column.type):
        statuses = pc.if_else(pc.is_valid(column), READ, None)
        sizes = pc.cast(pc.binary_length(column), pa.int64())
        parts = [each.combine_chunks() for each in (column, sizes, statuses)]
        made = pa.StructArray.from_arrays(parts, fields=list(kind), mask=parts[0].is_null())
        return pa.chunked_array([made])
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        pass
    if not pa.types.is_integer(kind):
        return pa.chunked_array([pa.nulls(len(column), kind)], kind)
    near = column.cast(kind, safe=False)
    return pc.if_else(pc.equal(near.cast(column.type), column), near, None)


_Made = tuple[int, str, pa.Table]  # index of a change that they follow, their kind, their rows


def _with_made(changes: TableChanges, kept: np.ndarray, made: Sequence[_Made]) -> TableChanges:
    """Return the kept changes, and a change for each row that the chunks do not have."""
    places = np.flatnonzero(kept)
    abouts, rows = [changes.about.take(pa.array(places))], [changes.rows.take(pa.array(places))]
    order = [places]
    for end, kind, those in made:
        count = len(those)
        about = changes.about.take(pa.array(np.full(count, end)))
        column = about.column_names.index(KIND)
        kinds = pa.array([kind] * count, about.schema.field(KIND).type)
        abouts.append(about.set_column(column, KIND, kinds))
        rows.append(those.cast(changes.rows.schema))
        order.append(np.full(count, end))
    sorted_places = pa.array(np.argsort(np.concatenate(order), kind="stable"))
    about, all_rows = (pa.concat_tables(each).take(sorted_places) for each in (abouts, rows))
    return replace(
        changes, about=about.combine_chunks(), rows=all_rows.combine_chunks(), is_snapshot=False
    )
