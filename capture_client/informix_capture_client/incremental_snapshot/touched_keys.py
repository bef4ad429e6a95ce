"""The keys that transactions of the stream have touched, for a table during its snapshot.

Rule: both images of a change touch their key, at the change's commit. Keys below `complete_above` may
have been dropped. Key columns are Arrow arrays; no row is a Python object.

Only the last commit of each key matters, so the keys are compacted whenever they have doubled, and a
row that changes a million times is one key. If more keys were touched than allowed, all of them are
dropped; a chunk that needed them is read again from a later position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.errors import BadOption
from informix_capture_client.incremental_snapshot.key_choice import SnapshotKey
from informix_capture_client.records import Bits, Integers

MOST_KEYS = 1_000_000
_WORTH_COMPACTING = 8192  # keys
_MOST_PIECES = 256
_COMMIT, _ROW = "commit", "row"
_REPLACED = "\N{REPLACEMENT CHARACTER}"


class TouchedKeys:
    """The touched keys of one table since its snapshot started.

    Args:
        key: the table's key.
        commit: the position of the stream at the start; keys below it are unknown.
        most_keys: how many are kept.

    Attributes:
        complete_above: every key that a commit above this place has touched is here.
        needed_above: what was touched at or below may be forgotten once room is needed.
        overflows: how often all keys had to be dropped.
    """

    def __init__(self, key: SnapshotKey, commit: int, most_keys: int = MOST_KEYS) -> None:
        self.key = key
        self._most_keys = most_keys
        self._names = [f"key{number}" for number in range(len(key.names))]
        self._pieces: list[pa.Table] = []
        self._compacted = 0  # how many of the keys are each there once
        self._count = 0
        self._truncated_at = -1
        self.complete_above = commit
        self.needed_above = commit
        self.overflows = 0

    def __len__(self) -> int:
        return self._count

    def touch(self, columns: Sequence[pa.Array], commits: Integers) -> None:
        """Add keys, as columns, with the commit of each change."""
        arrays = [*map(self.key.compared, range(len(columns)), columns), pa.array(commits)]
        self._pieces.append(pa.Table.from_arrays(arrays, [*self._names, _COMMIT]))
        self._count += len(commits)
        worth = max(self._compacted, min(_WORTH_COMPACTING, self._most_keys))
        if self._count - self._compacted > worth:
            self._compact()
            self._require_room(int(commits.max()))
        elif len(self._pieces) > _MOST_PIECES:
            self._pieces = [pa.concat_tables(self._pieces).combine_chunks()]

    def truncate(self, commit: int) -> None:
        """Add a TRUNCATE, which touches every key."""
        self._truncated_at = max(self._truncated_at, commit)

    def forget_up_to(self, commit: int) -> None:
        """Drop the keys touched at or below a position."""
        if commit > self.complete_above:
            self.complete_above = commit
            self._compact()

    def untouched(self, rows: pa.Table, low: int) -> pa.Table:
        """Return the rows whose keys were not touched above a position, in order.

        Raises:
            BadOption: `badCharacters=replace` makes different keys equal.
            ValueError: the touched keys above that position are no longer known.
        """
        if low < self.complete_above:
            raise ValueError(f"touched keys are known above {self.complete_above}, not above {low}")
        if self._truncated_at > low:
            return rows.slice(0, 0)
        touched = self._above(low)
        if not len(touched) or not len(rows):
            return rows
        keys = [self.key.compared(n, rows[name]) for n, name in enumerate(self.key.names)]
        dropped = self._which_are_in(keys, touched)
        self._require_distinct(keys, dropped)
        return rows.filter(pa.array(~dropped))

    def touched_above(self, low: int) -> pa.Table | None:
        """Return the keys that were touched above a position, by column; None: every key was.

        Raises:
            ValueError: the touched keys above that position are no longer known.
        """
        if low < self.complete_above:
            raise ValueError(f"touched keys are known above {self.complete_above}, not above {low}")
        if self._truncated_at > low:
            return None
        touched = self._above(low)
        return touched.drop_columns(_COMMIT).rename_columns(self.key.names) if len(touched) else touched

    def _which_are_in(self, keys: list[pa.ChunkedArray], touched: pa.Table) -> Bits:
        if len(keys) == 1:
            is_in = pc.is_in(keys[0], value_set=touched.column(0).combine_chunks())
            return np.asarray(is_in)
        numbers = pa.array(np.arange(len(keys[0])))
        rows = pa.table([*keys, numbers], [*self._names, _ROW])
        left = rows.join(touched.select(self._names), self._names, join_type="left anti")
        dropped = np.ones(len(rows), bool)
        dropped[left[_ROW].to_numpy()] = False  # a join keeps no order
        return dropped

    def _require_distinct(self, keys: list[pa.ChunkedArray], dropped: Bits) -> None:
        """Raise if a dropped row's key may be equal to a different key."""
        for number in self.key.replaceable:
            if pc.any(pc.match_substring(keys[number].filter(pa.array(dropped)), _REPLACED)).as_py():
                raise BadOption(
                    f"a key of {self.key.table} has bytes that are not valid in its code set, and"
                    " 'badCharacters=replace' may make different keys equal.",
                    "Correct these rows, or remove the table from option initialSnapshot.",
                    option="badCharacters",
                )

    def _above(self, low: int) -> pa.Table:
        self._compact()
        if not self._pieces:
            return pa.table({})
        return _behind(self._pieces[0], low)

    def _compact(self) -> None:
        """Keep each key once, with its last commit."""
        if self._pieces:
            every = _behind(pa.concat_tables(self._pieces), self.complete_above)
            last = every.group_by(self._names).aggregate([(_COMMIT, "max")])
            self._pieces = [last.rename_columns([*self._names, _COMMIT]).combine_chunks()]
            self._count = self._compacted = len(last)

    def _require_room(self, commit: int) -> None:
        """If there are too many keys, drop those that no chunk needs, or else all of them."""
        if self._count > self._most_keys:
            self.forget_up_to(self.needed_above)
        if self._count > self._most_keys:
            self._pieces, self._count, self._compacted = [], 0, 0
            self.overflows += 1
            self.complete_above = max(self.complete_above, commit)


def _behind(keys: pa.Table, commit: int) -> pa.Table:
    """Return the keys touched above a position, with a mask: Arrow's query takes 1 ms more."""
    return keys.filter(pc.greater(keys[_COMMIT], commit))


class TouchedTables:
    """The touched keys of all tables with a running snapshot; an observer of `ChangeEncoder`."""

    def __init__(self) -> None:
        self._tables: dict[int, TouchedKeys] = {}

    def watch(self, number: int, keys: TouchedKeys) -> None:
        """Collect the keys of a table from the next transaction on."""
        self._tables[number] = keys

    def leave(self, number: int) -> None:
        """Stop collecting keys of a table, when its snapshot is done."""
        self._tables.pop(number, None)

    # what the encoder asks for, and calls

    def key_columns(self) -> Mapping[int, Sequence[str]]:
        """Return the names of the key columns of watched tables, by table number."""
        return {number: keys.key.names for number, keys in self._tables.items()}

    def touch(self, number: int, columns: Sequence[pa.Array], commits: Integers) -> None:
        """Add the keys of images."""
        self._tables[number].touch(columns, commits)

    def truncate(self, number: int, commit: int) -> None:
        """Add a TRUNCATE."""
        self._tables[number].truncate(commit)
