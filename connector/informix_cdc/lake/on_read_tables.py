"""Delta tables whose merges mark rows as deleted and append: their cost follows what changed.

Rule: the table says how it is merged, by the property delta.enableDeletionVectors, which is set when it
is created. Everything but a merge is done as for other Delta tables. A table with features that the
engine does not handle, but delta-rs does, is merged by delta-rs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from informix_cdc.lake.delta_tables import DeltaTarget, in_table_schema
from informix_cdc.lake.merges import Merge
from informix_cdc.lake.mirrored_table import RELOAD, TableStopped
from informix_cdc.merge_on_read import (
    Chosen,
    IndexedFile,
    MergeOnReadTable,
    NotHandled,
    Part,
    Rewritten,
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
        if not self.merges_on_read or matching.matches_open or matching.matches_closed:
            return DeltaTarget.remove(self, keys, matching)
        self._merged(lambda: [(keys, np.ones(len(keys), bool))], matching.key, None)

    def merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        """Merge rows."""
        self.merge_parts(lambda: iter([rows]), merge, batch)

    def merge_parts(self, parts: Callable[[], Iterator[pa.Table]], merge: Merge, batch: int) -> None:
        """Merge rows that come in parts; only some of them are in memory at a time."""
        flag = merge.deletes_if
        if not self.merges_on_read or flag is None:
            return DeltaTarget.merge(self, pa.concat_tables(parts()), merge, batch)

        def in_schema() -> Iterator[Part]:
            for rows in parts():
                gone = np.asarray(rows.column(flag).to_numpy(), bool)
                yield in_table_schema(self.schema(), rows), gone

        try:
            self._merged(in_schema, merge.key, batch)
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

    def _merged(
        self, parts: Callable[[], Iterable[Part]], key: Sequence[str], batch: int | None
    ) -> None:
        if self._merging is None or self._merging[:2] != (self.log, tuple(key)):
            folder = self.index_folder or Path(tempfile.gettempdir())
            self._merging = self.log, tuple(key), MergeOnReadTable(self.log, key, folder)
        merging = self._merging[2]
        self._put(lambda: merging.merge(parts(), self._commit_of(batch)), batch)
