"""Changes of one table in a micro-batch, and the rows that a target table needs because of them.

Rule: Arrow in, Arrow out, whole columns at a time; the order of changes is that of the stream.

    final_images   the last image of each key: what a table as it is now needs
    states         every state that a key had between two commits: what a history needs
    all_changes    every change as it came
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.errors import DataLoss
from informix_cdc.server import TableDefinition
from informix_checkpoints.spool import DEFINITION

KIND, COMMIT, TIME, ORDINAL = "_change_type", "_commit_version", "_commit_timestamp", "_change_ordinal"
TRUNCATE = "truncate"
SNAPSHOT, GONE, DELETED_AT = "_snapshot", "_gone", "_deleted_at"
FROM, TO = "_valid_from", "_valid_to"
FROM_TIME, TO_TIME = "_valid_from_timestamp", "_valid_to_timestamp"
IS_STATE = "_is_state"
INSTANT = pa.timestamp("us", "UTC")

# Columns that targets have beside those of the table, by what they keep.
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


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes of one table, in their order.

    Attributes:
        definition: of the table, as the last of these changes has it.
        about: what is known of each change.
        rows: the row that each has, in the types of the lake; NULL for a TRUNCATE.
        is_snapshot: whether all of them are rows that a snapshot has read, or its beginning.
    """

    definition: TableDefinition
    about: pa.Table
    rows: pa.Table
    is_snapshot: bool

    @classmethod
    def of(cls, streams: Iterable[bytes | pa.Buffer]) -> TableChanges:
        """Read the changes of one table from column `arrow` of delivered rows, in their order.

        Raises:
            DataLoss: the table's columns change within the batch.
        """
        parts = [pa.ipc.open_stream(stream).read_all() for stream in streams]
        definition = TableDefinition.from_text(parts[-1].schema.metadata[DEFINITION])
        if any(part.schema != parts[-1].schema for part in parts):
            raise DataLoss(
                f"the columns of {definition.table} change within a micro-batch.",
                "This is a bug of the source, whose batches end where a table is altered: report it.",
            )
        # One chunk for each column: sorting and taking are far slower across many.
        whole = pa.concat_tables(parts).combine_chunks()
        struct = whole.column("row").combine_chunks()
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
    def last_truncate(self) -> int:
        """The place of the last TRUNCATE, -1 if there is none."""
        found = np.flatnonzero(self.is_kind(TRUNCATE))
        return int(found[-1]) if len(found) else -1

    @property
    def first_truncate(self) -> int:
        """The place of the first TRUNCATE, -1 if there is none."""
        found = np.flatnonzero(self.is_kind(TRUNCATE))
        return int(found[0]) if len(found) else -1

    def commit_at(self, place: int) -> tuple[int, datetime]:
        """Return the sequence number of a change's commit, and its time."""
        return self.about.column(COMMIT)[place].as_py(), self.about.column(TIME)[place].as_py()

    @property
    def begins_snapshot(self) -> bool:
        """Whether the last TRUNCATE is the one with which a snapshot begins."""
        place = self.last_truncate
        return place >= 0 and bool(self.about.column(SNAPSHOT)[place].as_py())

    def is_kind(self, *kinds: str) -> np.ndarray:
        """Tell of each change whether it is of one of these kinds."""
        found = pc.is_in(self.about.column(KIND), value_set=pa.array(kinds))
        return np.asarray(found.to_numpy())

    def is_gone(self) -> np.ndarray:
        """Tell of each change whether its row is not in the table any more."""
        return self.is_kind("delete", "update_preimage")


def in_lake_types(rows: pa.Table) -> pa.Table:
    """Return rows with the columns that Delta Lake and Iceberg have: intervals are microseconds."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_duration(field.type):
            values = rows.column(place).cast(pa.int64())
            rows = rows.set_column(place, field.name, values)
    return rows


def final_images(changes: TableChanges, key: Sequence[str]) -> pa.Table:
    """Return the last image of each key after the last TRUNCATE.

    A changed key is a row that is gone, and another one. Column GONE says which rows are gone: their
    image is the one before. Column TIME is the time of the commit.
    """
    first = changes.last_truncate + 1
    rows = changes.rows.slice(first)
    last = _last_of_each([rows.column(name) for name in key])
    gone = pa.array(changes.is_gone()[first:])
    times = changes.about.column(TIME).slice(first)
    return rows.append_column(GONE, gone).append_column(TIME, times).take(pa.array(last))


def _last_of_each(columns: Sequence[pa.ChunkedArray]) -> np.ndarray:
    """Return the last place of each combination of values, in ascending order."""
    names = [str(number) for number in range(len(columns))]
    table = pa.table([*columns, pa.array(np.arange(len(columns[0])))], names=[*names, "place"])
    found = table.group_by(names, use_threads=False).aggregate([("place", "max")])
    return np.asarray(np.sort(found.column("place_max").to_numpy()))


def states(changes: TableChanges, key: Sequence[str]) -> pa.Table:
    """Return the states that begin in these changes, and the ends of states that began before.

    A state holds from one commit to the next that changes its key; one that no commit leaves behind is
    left out. Rows with IS_STATE are states, with all columns. The others end, at TO, the state of their
    key that is open in the target.
    """
    truncates = np.flatnonzero(changes.is_kind(TRUNCATE))
    places = _last_of_each_commit(changes, key, truncates)
    group = _numbers_of([changes.rows.column(name).take(pa.array(places)) for name in key])
    order = np.lexsort((places, group))
    places, group = places[order], group[order]
    # What ends a state is the next change of its key, or a TRUNCATE before that; -1: nothing does.
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


def _last_of_each_commit(
    changes: TableChanges, key: Sequence[str], truncates: np.ndarray
) -> np.ndarray:
    """Return the last place of each key in each commit, before a TRUNCATE in it and behind."""
    places = np.arange(len(changes))
    segment = pa.chunked_array([pa.array(np.searchsorted(truncates, places))])
    columns = [changes.rows.column(name) for name in key]
    found = _last_of_each([*columns, changes.about.column(COMMIT), segment])
    return np.setdiff1d(found, truncates)


def _numbers_of(columns: Sequence[pa.ChunkedArray]) -> np.ndarray:
    """Return a number for each row that tells combinations of values apart."""
    names = [str(number) for number in range(len(columns))]
    table = pa.table([*columns, pa.array(np.arange(len(columns[0])))], names=[*names, "place"])
    groups = table.group_by(names, use_threads=False).aggregate([("place", "list")])
    places = groups.column("place_list").combine_chunks()
    lengths = places.value_lengths().to_numpy()
    numbers = np.empty(len(table), np.int64)
    numbers[places.flatten().to_numpy()] = np.repeat(np.arange(len(lengths)), lengths)
    return numbers


def _with_ends(
    changes: TableChanges, places: np.ndarray, ends: np.ndarray, *, is_state: bool
) -> pa.Table:
    """Return the rows at some places, and at which commits they begin and end."""
    rows = changes.rows.take(pa.array(places))
    begun = changes.about.take(pa.array(places))
    ended = changes.about.take(pa.array(ends, mask=ends < 0))
    rows = rows.append_column(FROM, begun.column(COMMIT)).append_column(TO, ended.column(COMMIT))
    rows = rows.append_column(FROM_TIME, begun.column(TIME))
    rows = rows.append_column(TO_TIME, ended.column(TIME))
    return rows.append_column(IS_STATE, pa.array(np.full(len(rows), is_state)))


def all_changes(changes: TableChanges) -> pa.Table:
    """Return all changes, each with its row and what is known of it."""
    rows = changes.rows
    for field in ADDED["changes"]:
        rows = rows.append_column(field.name, changes.about.column(field.name))
    return rows
