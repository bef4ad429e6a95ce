"""Delta tables whose merges mark rows as deleted and append: their cost follows what changed.

Rule: the table says how it is merged, by the property delta.enableDeletionVectors, which is set when it
is created. Everything but a merge is done as for other Delta tables. A table with features that the
engine does not handle, but delta-rs does, is merged by delta-rs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import Schema
from deltalake.exceptions import CommitFailedError

from informix_cdc.lake.delta_tables import DeltaTarget, in_table_schema, without_inexact_bounds
from informix_cdc.lake.merges import Merge
from informix_cdc.lake.mirrored_table import RELOAD, TableStopped
from informix_cdc.merge_on_read import (
    Conflict,
    MergeOnReadTable,
    NotHandled,
    TablePlace,
    create_table,
)
from informix_cdc.version import __version__

_ENGINE = f"informix-cdc {__version__}"
# Features that delta-rs 1.6.6 enforces when it writes, with vectors or without.
_MERGED_BY_DELTA_RS = frozenset(
    {
        "partitions",
        "columnMapping",
        "checkConstraints",
        "generatedColumns",
        "changeDataFeed",
        "appendOnly",
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
    _merging: MergeOnReadTable | None = field(default=None, init=False)
    _key: tuple[str, ...] = field(default=(), init=False)

    def create(self, schema: pa.Schema, name: str, description: str, *, on_read: bool = False) -> None:
        """Create the table if it does not exist."""
        self._merging = None  # it knows the table that is no longer there
        if not on_read:
            return DeltaTarget.create(self, schema, name, description)
        create_table(
            TablePlace(self.place, self.storage_options),
            Schema.from_arrow(schema).to_json(),
            name=name,
            description=description,
            configuration=without_inexact_bounds({}, schema),
            text=self.end_of_batch.of(self.application, None),
            engine=_ENGINE,
        )
        self._opened = None

    def remove(self, keys: pa.Table, matching: Merge) -> None:
        """Remove the rows that match, as `of_keys` returns it."""
        if not self.merges_on_read or matching.matches_open or matching.matches_closed:
            return DeltaTarget.remove(self, keys, matching)
        every = np.ones(len(keys), bool)
        self._commit(lambda: self._merged(keys, every, matching.key, None))

    def _merge(self, rows: pa.Table, merge: Merge, batch: int) -> None:
        if not self.merges_on_read or merge.deletes_if is None:
            return DeltaTarget._merge(self, rows, merge, batch)
        gone = np.asarray(rows.column(merge.deletes_if).to_numpy(), bool)
        stored = in_table_schema(self.schema(), rows)
        try:
            self._merged(stored, gone, merge.key, batch)
        except NotHandled as found:
            if others := [each for each in found.features if each not in _MERGED_BY_DELTA_RS]:
                raise TableStopped(
                    f"its target has table features that the mirror cannot write: {', '.join(others)}.",
                    f"Remove them from the table. {RELOAD}",
                ) from None
            DeltaTarget._merge(self, rows, merge, batch)

    def _merged(self, rows: pa.Table, gone: np.ndarray, key: Sequence[str], batch: int | None) -> None:
        if self._merging is None or self._key != tuple(key):
            folder = self.index_folder or Path(tempfile.gettempdir())
            place = TablePlace(self.place, self.storage_options)
            self._merging = MergeOnReadTable(place, key, folder, _ENGINE)
            self._key = tuple(key)
        text = self.end_of_batch.of(self.application, batch)
        try:
            self._merging.merge(rows, gone, self.application, batch, text)
        except Conflict as reason:
            raise CommitFailedError(str(reason)) from None
        self.refresh()
