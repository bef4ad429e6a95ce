"""Changes of one table in a micro-batch, and the rows that its target needs.

Rule: Arrow in, Arrow out, whole columns at a time; changes are in the order of the stream.

    final_images   the last image of each key, for a table of current rows
    states         every state of a key between two commits, for a history
    all_changes    every change, unmodified
    net_places     the net effect of each commit on each key, which the others are made of
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as declared
from datetime import datetime
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.errors import DataLoss
from informix_capture_client.object_readers import is_content_type
from informix_capture_client.shapes import DEFINITION, METADATA
from informix_cdc.lake.equal_rows import are_equal
from informix_cdc.server import TableDefinition

KIND, COMMIT, TIME, ORDINAL = "_change_type", "_commit_version", "_commit_timestamp", "_change_ordinal"
TRUNCATE = "truncate"
CHANGED = ("insert", "delete", "update_preimage", "update_postimage")
# Of rows that are read again, in place of changes: `intervals.py`.
OF_INTERVALS = (
    *("range_start", "verify_start", "repair_start"),
    *("range_skip", "range_end", "resync_begin"),
)
_GONE = ("delete", "update_preimage")  # the image is that of a row that is no longer there
SNAPSHOT, DELETED_AT = "_snapshot", "_deleted_at"
FROM, TO = "_valid_from", "_valid_to"
FROM_TIME, TO_TIME = "_valid_from_timestamp", "_valid_to_timestamp"
# Columns of the merge source that no target has; a table's columns may not have this prefix.
INTERNAL = "__informix_cdc_"
GONE, AT, IS_STATE = f"{INTERNAL}gone", f"{INTERNAL}at", f"{INTERNAL}is_state"
INSTANT = pa.timestamp("us", "UTC")

# Columns that targets have in addition to those of the table, by `keep`.
ADDED: dict[str, pa.Schema] = {
    "current": pa.schema([]),
    "soft": pa.schema([(DELETED_AT, INSTANT)]),
    "history": pa.schema(
        [(FROM, pa.int64()), (TO, pa.int64()), (FROM_TIME, INSTANT), (TO_TIME, INSTANT)]
    ),
    "changes": pa.schema(
        [
            (KIND, pa.string()),
            (COMMIT, pa.int64()),
            (TIME, INSTANT),
            (ORDINAL, pa.int32()),
            (SNAPSHOT, pa.bool_()),
        ]
    ),
}


_Image = tuple[int, tuple[str, ...]]  # index and values
Had = Callable[[pa.Table], np.ndarray]  # whether a table had rows with some keys


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes of one table, in order.

    Attributes:
        definition: of the table, as of the last change.
        about: metadata of each change.
        rows: the row of each change, in lake types; NULL for a TRUNCATE.
        is_snapshot: whether all of them are snapshot rows or the beginning of a snapshot.
        replaces: whether the target's columns do not fit, so that all its rows are replaced.
        begins_pass: whether the table is read again from its first row from somewhere here on.
    """

    definition: TableDefinition
    about: pa.Table
    rows: pa.Table
    is_snapshot: bool
    replaces: bool = False
    begins_pass: bool = False
    # Of the kinds, as long as nobody has asked; each copy has its own.
    _codes: list[np.ndarray] = declared(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, streams: Iterable[bytes | pa.Buffer]) -> TableChanges:
        """Return the changes of one table in column `arrow` of delivered rows, in order: not copied.

        Raises:
            DataLoss: the table's columns change within the batch.
        """
        parts = [pa.ipc.open_stream(stream).read_all() for stream in streams]
        definition = _definition(parts[-1].schema.metadata[DEFINITION])
        if any(part.schema != parts[-1].schema for part in parts):
            raise DataLoss(
                f"the columns of {definition.table} change within a micro-batch.",
                "This is a bug of the source, which must end a batch where a table is altered:"
                " report it.",
            )
        whole = pa.concat_tables(parts)
        struct = whole.column("row")
        rows = pa.Table.from_arrays(
            struct.flatten(), schema=pa.schema([pa.field(f.name, f.type) for f in struct.type])
        )
        about = whole.drop_columns(["row"])
        return cls(
            definition,
            about,
            in_lake_types(rows),
            bool(pc.all(about.column(SNAPSHOT)).as_py()),
        )

    def __len__(self) -> int:
        return int(self.about.num_rows)

    @property
    def nbytes(self) -> int:
        """The size of all changes."""
        return int(self.about.nbytes + self.rows.nbytes)

    def in_memory(self) -> TableChanges:
        """Return them with one chunk a column: sorting and taking are far slower across many."""
        found = replace(self, about=self.about.combine_chunks(), rows=self.rows.combine_chunks())
        found._codes.extend(self._codes)
        return found

    @property
    def last_truncate(self) -> int:
        """The index of the last TRUNCATE, -1 if there is none."""
        found = np.flatnonzero(self.is_kind(TRUNCATE))
        return int(found[-1]) if len(found) else -1

    @property
    def first_truncate(self) -> int:
        """The index of the first TRUNCATE, -1 if there is none."""
        found = np.flatnonzero(self.is_kind(TRUNCATE))
        return int(found[0]) if len(found) else -1

    def commit_at(self, place: int) -> tuple[int, datetime]:
        """Return the commit sequence number of a change, and its time."""
        return self.about.column(COMMIT)[place].as_py(), self.about.column(TIME)[place].as_py()

    @property
    def begins_snapshot(self) -> bool:
        """Whether a snapshot from the first row begins within these changes."""
        emptied = self.is_kind(TRUNCATE)
        return bool(emptied.any() and (emptied & self.about.column(SNAPSHOT).to_numpy()).any())

    def from_snapshot(self) -> TableChanges:
        """Return the changes from the beginning of the snapshot."""
        begins = self.is_kind(TRUNCATE) & np.asarray(self.about.column(SNAPSHOT).to_numpy())
        return self.part(int(np.flatnonzero(begins)[-1]))

    def part(self, first: int) -> TableChanges:
        """Return the changes from an index on."""
        about = self.about.slice(first)
        is_snapshot = bool(pc.all(about.column(SNAPSHOT)).as_py())
        return replace(self, about=about, rows=self.rows.slice(first), is_snapshot=is_snapshot)

    def only(self, wanted: np.ndarray) -> TableChanges:
        """Return the changes that a mask selects."""
        about = self.about.filter(pa.array(wanted))
        is_snapshot = bool(pc.all(about.column(SNAPSHOT)).as_py())
        rows = self.rows.filter(pa.array(wanted))
        return replace(self, about=about, rows=rows, is_snapshot=is_snapshot)

    def is_kind(self, *kinds: str) -> np.ndarray:
        """Return for each change whether it is of one of these kinds."""
        if not self._codes:
            self._codes.append(_codes_of(self.about))
        found: np.ndarray = _with_code(kinds)[self._codes[0]]
        return found

    def is_gone(self) -> np.ndarray:
        """Return for each change whether its row is no longer in the table."""
        return self.is_kind(*_GONE)


@lru_cache(maxsize=4096)
def _definition(text: bytes) -> TableDefinition:
    """Return a definition: every batch of a table has the same one."""
    return TableDefinition.from_text(text)


def lake_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column's values as targets get them: of an interval, its microseconds."""
    return pa.int64() if pa.types.is_duration(kind) else kind


def in_lake_types(rows: pa.Table) -> pa.Table:
    """Return rows with the types of Delta Lake and Iceberg: intervals are microseconds."""
    for place, field in enumerate(rows.schema):
        if lake_type(field.type) != field.type:
            values = rows.column(place).cast(lake_type(field.type))
            rows = rows.set_column(place, field.name, values)
    return rows


def final_images(changes: TableChanges, key: Sequence[str], had: Had) -> pa.Table:
    """Return the last image of each key after the last TRUNCATE.

    A changed key counts as a deleted row and another one. Column GONE marks deleted rows, with their
    image before. Column AT has the commit time.
    """
    places = _net_places_of(changes, key, np.flatnonzero(changes.is_kind(TRUNCATE)), had)
    places = places[places > changes.last_truncate]
    rows = changes.rows.take(pa.array(places))
    last = np.sort(_groups([rows.column(name) for name in key]).last)
    gone, times = pa.array(changes.is_gone()[places]), changes.about.column(TIME).take(pa.array(places))
    return rows.append_column(GONE, gone).append_column(AT, times).take(pa.array(last))


def states(changes: TableChanges, key: Sequence[str], had: Had) -> pa.Table:
    """Return the states that begin in these changes, and the ends of earlier states.

    A state lasts from one commit to the next that changes its key; intermediate states within a commit
    are omitted. Rows with IS_STATE are states, with all columns. The others end, at TO, the open state
    of their key in the target.
    """
    truncates = np.flatnonzero(changes.is_kind(TRUNCATE))
    places = _net_places_of(changes, key, truncates, had)
    group = numbers_of([changes.rows.column(name).take(pa.array(places)) for name in key])
    order = np.lexsort((places, group))
    places, group = places[order], group[order]
    is_change = _makes_a_difference(changes, key, places, group, truncates)
    places, group = places[is_change], group[is_change]
    # A state ends with the next change of its key, or with a TRUNCATE before that; -1: it does not end.
    segment = np.searchsorted(truncates, places)
    is_first = np.diff(group, prepend=-1) != 0
    is_last = (np.diff(group, append=-1) != 0) | (np.diff(segment, append=-1) != 0)
    ends = np.where(is_last, np.append(truncates, -1)[segment], np.roll(places, -1))
    commits = changes.about.column(COMMIT).to_numpy()
    is_left_behind = (ends < 0) | (commits[ends] != commits[places])
    begins = ~changes.is_gone()[places] & is_left_behind
    firsts = places[is_first]
    ended = np.minimum(firsts, truncates[0]) if len(truncates) else firsts
    return pa.concat_tables(
        [
            _with_ends(changes, firsts, ended, is_state=False),
            _with_ends(changes, places[begins], ends[begins], is_state=True),
        ]
    )


def _makes_a_difference(
    changes: TableChanges,
    key: Sequence[str],
    places: np.ndarray,
    group: np.ndarray,
    truncates: np.ndarray,
) -> np.ndarray:
    """Return which net effects leave a row that is not the one that their key had before the commit.

    That one is the net effect before, or else the first image of the key in the commit, if that is an
    image of before the change.
    """
    count, gone = len(places), changes.is_gone()
    before = np.roll(places, 1)
    segment = np.searchsorted(truncates, np.arange(len(changes)))
    is_next = (np.diff(group, prepend=-1) == 0) & (segment[before] == segment[places])
    of_commits = numbers_of([*(changes.rows.column(n) for n in key), changes.about.column(COMMIT)])
    _, firsts, numbers = np.unique(of_commits, return_index=True, return_inverse=True)
    earlier = np.where(is_next, before, firsts[numbers[places]])
    is_comparable = ~gone[places] & np.where(is_next, ~gone[earlier], gone[earlier])
    is_comparable &= segment[earlier] == segment[places]
    found = np.ones(count, bool)
    asked = np.flatnonzero(is_comparable)
    rows = (changes.rows.take(pa.array(each[asked])) for each in (places, earlier))
    found[asked] = ~are_equal(*rows)
    return found


def _net_places_of(
    changes: TableChanges, key: Sequence[str], truncates: np.ndarray, had: Had
) -> np.ndarray:
    commits, gone = changes.about.column(COMMIT), changes.is_gone()
    return net_places(changes.rows, commits, gone, key, truncates, had)


def net_places(
    rows: pa.Table,
    commits: pa.ChunkedArray,
    gone: np.ndarray,
    key: Sequence[str],
    truncates: np.ndarray,
    had: Had | None,
) -> np.ndarray:
    """Return the index of the net effect of each commit on each key, before and after a TRUNCATE in it.

    Args:
        rows: the images of changes, in the order of the stream.
        commits: the commit sequence number of each change.
        gone: for each change whether its image is that of a row that is no longer there.
        key: the columns that identify a row.
        truncates: the indexes of TRUNCATEs, which have no image.
        had: returns which keys the table had before these changes; None if nobody knows.

    That is the last change of the key, with one exception. `UPDATE t SET id = id + 1` gives a row a key
    that another row still has, and changes that row afterwards: key 2 gets row 1, and then loses row 2.
    Informix checks constraints at the end of the statement or the transaction. So a deleted row cancels
    an equal image; the remaining image counts, or none if nothing remains.

    Images before a change have no contents of large objects, so that equal ones may have had others. If
    nothing remains, as many rows came as went: the key has a row if it had one, and the last image that
    was added is that row.
    """
    columns = [*(rows.column(name) for name in key), commits]
    if len(truncates):
        segment = np.searchsorted(truncates, np.arange(len(rows)))
        columns.append(pa.chunked_array([pa.array(segment)]))
    groups = _groups(columns, gone)
    last = groups.last
    is_doubtful = gone[last] & (groups.gone < groups.count)
    settled = np.setdiff1d(last[~is_doubtful], truncates)
    if not is_doubtful.any():
        return settled
    numbers = numbers_of(columns)
    doubtful = np.flatnonzero(np.isin(numbers, numbers[last[is_doubtful]]))
    left, cancelled = _net_of_images(rows, gone, numbers, doubtful)
    found = np.sort(np.concatenate([settled, left]))
    if len(cancelled) and had is not None and any(is_content_type(f.type) for f in rows.schema):
        keys = rows.select(list(key))
        were_there = _were_there(keys, found, gone, truncates, cancelled, had)
        found = np.sort(np.concatenate([found, cancelled[were_there]]))
    return found


def _net_of_images(
    rows: pa.Table, gone: np.ndarray, numbers: np.ndarray, doubtful: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indexes of remaining images, and of the last added ones where none remains."""
    compared = [field.name for field in rows.schema if not is_content_type(field.type)]
    images = rows.select(compared).take(pa.array(doubtful))
    values = list(zip(*(map(repr, column.to_pylist()) for column in images.columns), strict=True))
    added: defaultdict[int, list[_Image]] = defaultdict(list)
    removed: defaultdict[int, list[_Image]] = defaultdict(list)
    for place, image in zip(doubtful.tolist(), values, strict=True):
        images_of = removed if gone[place] else added
        images_of[int(numbers[place])].append((place, image))
    last = {number: images[-1][0] for number, images in added.items()}
    left = {number: _left_over(images, removed[number]) for number, images in added.items()}
    found = [place for place in left.values() if place is not None]
    cancelled = [last[number] for number, place in left.items() if place is None]
    return np.array(found, np.int64), np.array(cancelled, np.int64)


def _were_there(
    keys: pa.Table,
    settled: np.ndarray,
    gone: np.ndarray,
    truncates: np.ndarray,
    places: np.ndarray,
    had: Had,
) -> np.ndarray:
    """Return whether keys had a row before a commit: by earlier net effects, or before all changes.

    Args:
        keys: of all changes.
        settled: sorted indexes of net effects.
        gone: as for `net_places`.
        truncates: as for `net_places`.
        had: as for `net_places`.
        places: indexes of changes of the keys in that commit; it has no settled net effect on them.
    """
    number, most = numbers_of(keys.columns), len(keys)
    order = np.append(-1, np.sort(number[settled] * most + settled))
    before = order[np.searchsorted(order, number[places] * most + places) - 1]
    earlier = np.where(before // most == number[places], before % most, -1)
    emptied = np.append(truncates, -1)[np.searchsorted(truncates, places) - 1]
    is_known = earlier > emptied
    found: np.ndarray = is_known & ~gone[earlier]
    asked = np.flatnonzero(~is_known & (emptied < 0))
    if len(asked):
        found[asked] = had(keys.take(pa.array(places[asked])))
    return found


def _left_over(added: list[_Image], removed: list[_Image]) -> int | None:
    """Return the index of the image that remains after equal ones have cancelled each other."""
    before = []  # rows that the key had before this commit
    for place, image in removed:
        equal = next((each for each in added if each[1] == image), None)
        if equal is None:
            before.append(place)
        else:
            added.remove(equal)
    return added[-1][0] if added else before[-1] if before else None


@dataclass(frozen=True, slots=True)
class _Groups:
    """What the rows of each combination of values have: last index, count, count of deletions."""

    last: np.ndarray
    count: np.ndarray
    gone: np.ndarray


def _groups(columns: Sequence[pa.ChunkedArray], gone: np.ndarray | None = None) -> _Groups:
    """Return for each combination of values the last index, the count, and the count of deletions."""
    numbers = numbers_of(columns)
    count = np.bincount(numbers)
    last = np.zeros(len(count), np.int64)
    last[numbers] = np.arange(len(numbers))  # the last one to be assigned stays
    flags = np.zeros(len(numbers), bool) if gone is None else gone
    return _Groups(last, count, np.bincount(numbers, weights=flags).astype(np.int64))


def numbers_of(columns: Sequence[pa.ChunkedArray]) -> np.ndarray:
    """Return a number from 0 on for each row that is unique for its combination of values."""
    numbers = _numbers_of_values(columns[0])
    for column in columns[1:]:
        others = _numbers_of_values(column)
        # There are less than 2**31 rows, so that the product fits.
        both = numbers * (int(others.max(initial=0)) + 1) + others
        numbers = _numbers_of_values(pa.chunked_array([pa.array(both)]))
    return numbers


def _numbers_of_values(column: pa.ChunkedArray) -> np.ndarray:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    found = column.dictionary_encode(null_encoding="encode").indices
    numbers: np.ndarray = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _with_ends(
    changes: TableChanges, places: np.ndarray, ends: np.ndarray, *, is_state: bool
) -> pa.Table:
    """Return the rows at some indexes, with the commits at which they begin and end."""
    rows = changes.rows.take(pa.array(places))
    begun = changes.about.take(pa.array(places))
    ended = changes.about.take(pa.array(ends, mask=ends < 0))
    rows = rows.append_column(FROM, begun.column(COMMIT)).append_column(TO, ended.column(COMMIT))
    rows = rows.append_column(FROM_TIME, begun.column(TIME))
    rows = rows.append_column(TO_TIME, ended.column(TIME))
    return rows.append_column(IS_STATE, pa.array(np.full(len(rows), is_state)))


def all_changes(changes: TableChanges) -> pa.Table:
    """Return all changes, each with its row and metadata."""
    rows = changes.rows
    for field in ADDED["changes"]:
        rows = rows.append_column(field.name, changes.about.column(field.name))
    return rows


def net_rows(rows: pa.Table, key: Sequence[str], had: Had | None = None) -> pa.Table:
    """Return the net effect of each commit on each key, and the TRUNCATEs, in the order of the stream.

    Args:
        rows: changes with their metadata, in any order.
        key: the columns that identify a row.
        had: as for `net_places`.
    """
    order = rows.sort_by([(COMMIT, "ascending"), (ORDINAL, "ascending")]).combine_chunks()
    truncates, gone = np.flatnonzero(_is_kind(order, TRUNCATE)), _is_kind(order, *_GONE)
    images = order.drop_columns([name for name in METADATA.names if name in order.column_names])
    places = net_places(images, order.column(COMMIT), gone, key, truncates, had)
    return order.take(pa.array(np.sort(np.concatenate([truncates, places]))))


def net_rows_of_keys(rows: pa.Table, key: Sequence[str], had: Had | None = None) -> pa.Table:
    """Return the net effect of all changes on each key after the last TRUNCATE, and that TRUNCATE."""
    order = net_rows(rows, key, had)
    truncates = np.flatnonzero(_is_kind(order, TRUNCATE))
    order = order.slice(int(truncates[-1]) if len(truncates) else 0)
    last = np.sort(_groups([order.column(name) for name in key]).last)
    return order.take(pa.array(last))


def _is_kind(rows: pa.Table, *kinds: str) -> np.ndarray:
    found: np.ndarray = _with_code(kinds)[_codes_of(rows)]
    return found


def _codes_of(rows: pa.Table) -> np.ndarray:
    """Return a code for the kind of each row: its index in the list of all, or -1."""
    found = pc.index_in(rows.column(KIND), value_set=_EVERY_KIND)
    codes: np.ndarray = (pc.fill_null(found, -1) if found.null_count else found).to_numpy()
    return codes


_EVERY_KIND = pa.array([*CHANGED, TRUNCATE, *OF_INTERVALS])


@lru_cache(maxsize=64)
def _with_code(kinds: tuple[str, ...]) -> np.ndarray:
    """Return for each code whether it is that of one of these kinds; the last is that of no kind."""
    return np.array([*(each in kinds for each in _EVERY_KIND.to_pylist()), False])


def last_rows(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the rows that a table has after all changes of a target that keeps changes."""
    order = net_rows_of_keys(rows, key, lambda keys: np.zeros(len(keys), bool))
    is_there = pc.is_in(order.column(KIND), value_set=pa.array(["insert", "update_postimage"]))
    return order.filter(is_there).drop_columns(ADDED["changes"].names)
