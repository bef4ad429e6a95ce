"""Delta tables whose merges mark rows as deleted and append: their cost follows what changed.

Rule: the table says how it is merged, by the property delta.enableDeletionVectors, which is set when it
is created. Everything but a merge is done as for other Delta tables. A table with features that the
engine does not handle, but delta-rs does, is merged by delta-rs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from informix_cdc.lake.delta_tables import DeltaTarget
from informix_cdc.lake.merges import Merge
from informix_cdc.lake.mirrored_table import RELOAD, TableStopped
from informix_cdc.lake.table_changes import GONE, IS_STATE, TO, TO_TIME
from informix_cdc.merge_on_read import (
    Chosen,
    IndexedFile,
    MergeOnReadTable,
    NotHandled,
    Part,
    Rewritten,
    RowAction,
    TableLog,
)

# Features that delta-rs 1.6.6 enforces when it writes, with vectors or without.
_MERGED_BY_DELTA_RS = frozenset(
    {
        "partitions",
        "columnMapping",
        "checkConstraints",
        "generatedColumns",
        "changeDataFeed",
        "appendOnly",
        "invariants",
        "no deletionVectors",
    }
)


@dataclass(slots=True)
class OnReadTarget(DeltaTarget):
    """One Delta table, merged on read if it was created so.

    Attributes:
        index_folder: for the index of keys; a temporary one unless set.
    """

    index_folder: Path | None = None
    _merging: tuple[TableLog, tuple[str, ...], MergeOnReadTable] | None = field(
        default=None, init=False
    )

    def remove(self, keys: pa.Table, matching: Merge) -> None:
        """Remove the rows that match, as `of_keys` returns it."""
        if not self.merges_on_read or matching.matches_closed:
            return DeltaTarget.remove(self, keys, matching)
        actions = np.full(len(keys), RowAction.DELETE)
        return self._merged(lambda: [(keys, actions)], matching, None)

    def merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        """Merge rows."""
        self.merge_parts(lambda: iter([rows]), merge, batch)

    def merge_parts(self, parts: Callable[[], Iterator[pa.Table]], merge: Merge, batch: int) -> None:
        """Merge rows that come in parts; only some of them are in memory at a time."""
        if not self.merges_on_read or merge.rest:
            return DeltaTarget.merge(self, pa.concat_tables(parts()), merge, batch)
        flag, on_true, on_false = _ACTIONS[_form_of(merge)]

        def with_actions() -> Iterator[Part]:
            for rows in parts():
                is_so = np.asarray(rows.column(flag).to_numpy(), bool)
                yield rows, np.where(is_so, on_true, on_false)

        try:
            self._merged(with_actions, merge, batch)
        except NotHandled as found:
            if others := [each for each in found.features if each not in _MERGED_BY_DELTA_RS]:
                raise TableStopped(
                    f"its target has table features that the mirror cannot write: {', '.join(others)}.",
                    f"Remove them from the table. {RELOAD}",
                ) from None
            DeltaTarget.merge(self, pa.concat_tables(parts()), merge, batch)

    def rewritten(self, chosen: Chosen) -> Rewritten | IndexedFile:
        """Write the rows of files into a new one, and index them if the table has an index."""
        if self._merging is None or self._merging[0] is not self.log:
            return DeltaTarget.rewritten(self, chosen)
        return self._merging[2].rewritten(chosen, self.schema())

    def _compacted(self, new: Rewritten | IndexedFile) -> bool:
        if isinstance(new, Rewritten):
            return DeltaTarget._compacted(self, new)
        if self._merging is None or self._merging[0] is not self.log:  # the table was made anew
            return False
        return self._merging[2].compact(new, self._commit_of(None))

    def _merged(self, parts: Callable[[], Iterable[Part]], merge: Merge, batch: int | None) -> None:
        open_column = _OPEN if _OPEN in self.schema().names else ""
        known = self.log, tuple(merge.key)
        if self._merging is None or self._merging[:2] != known:
            folder = self.index_folder or Path(tempfile.gettempdir())
            sets = (TO, TO_TIME) if open_column else ()
            table = MergeOnReadTable(self.log, merge.key, folder, open_column, sets)
            self._merging = *known, table
        merging, schema = self._merging[2], self.schema()
        self._put(lambda: merging.merge(parts(), self._commit_of(batch), schema), batch)


_OPEN = TO  # NULL in the present states of a history
_CURRENT, _SOFT, _HISTORY = range(3)
# A flag of the rows to be merged, and what is done with a row if it is set, and if it is not.
_ACTIONS = {
    _CURRENT: (GONE, RowAction.DELETE, RowAction.PUT),
    _SOFT: (GONE, RowAction.PUT_IF_THERE, RowAction.PUT),
    _HISTORY: (IS_STATE, RowAction.ADD, RowAction.SET),
}


def _form_of(merge: Merge) -> int:
    if merge.deletes_if:
        return _CURRENT
    return _HISTORY if merge.matches_open else _SOFT
