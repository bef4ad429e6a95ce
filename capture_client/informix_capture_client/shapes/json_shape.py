"""The json shape, for any number of tables: one row per change, with before and after as JSON.

Rule: the schema is the same for every set of tables, so that Spark's plan and a row's cost do not grow
with them; a row has all columns in table order, NULL as null.

    INSERT          insert, after         DELETE     delete, before
    UPDBEF, UPDAFT  update, both          TRUNCATE   truncate, neither
    RangeKind       range_start and others, after: the key of a limit or of a row
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from informix_capture_client.records import RecordKind, is_one_of
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import Changes, RangeKind
from informix_capture_client.shapes.json_rows import JsonRows
from informix_capture_client.shapes.metadata import ChangeMetadata, metadata_schema
from informix_capture_client.shapes.stored_form import StoredForm

_IMAGES = pa.schema([("before", pa.string()), ("after", pa.string())])
_CHANGE_TYPES: dict[int, str] = {
    RecordKind.INSERT: "insert",
    RecordKind.DELETE: "delete",
    RecordKind.UPDAFT: "update",
    RecordKind.TRUNCATE: "truncate",
    **{kind: kind.name.lower() for kind in RangeKind},
}
_AFTER_IMAGES = is_one_of(RecordKind.INSERT, RecordKind.UPDAFT, *RangeKind)
_ANY_NUMBER = 2  # of tables: `_table` is there for one as well, so that a second changes no schema


class JsonShape:
    """One row per change; `before` of an update is NULL unless before-images are requested."""

    is_grouped = False

    def __init__(self, tables: CapturedTables, before_image: bool, metadata: str = "full") -> None:
        chosen = metadata_schema(metadata, _ANY_NUMBER)
        self._metadata = ChangeMetadata(tables, _CHANGE_TYPES, chosen)
        self.schema = pa.schema([*_IMAGES, *chosen])
        self._form = StoredForm(self.schema, self._metadata.texts, self._metadata.shared)
        self.stored_schema = self._form.schema
        self._rows = JsonRows(tables)
        self._of_before = is_one_of(RecordKind.DELETE, *([RecordKind.UPDBEF] if before_image else []))
        self._has_before = is_one_of(RecordKind.DELETE, *([RecordKind.UPDAFT] if before_image else []))

    def begin(self, present: Sequence[int]) -> None:
        """Start a new sequence of transactions; all records are of the tables `present`."""

    def encode(self, changes: Changes) -> pa.RecordBatch:
        """Return changes, whose update images are paired, as rows.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        events = changes.only(changes.kinds != RecordKind.UPDBEF)
        before, after = (np.flatnonzero(of[changes.kinds]) for of in (self._of_before, _AFTER_IMAGES))
        # Both images at once: a call for each type of their columns, not two.
        texts = self._rows.texts(changes.only(np.concatenate([before, after])))
        images = [
            texts.part(0, len(before), self._has_before[events.kinds]),
            texts.part(len(before), len(before) + len(after), _AFTER_IMAGES[events.kinds]),
        ]
        return self._form.batch([*images, *self._metadata.columns(events)], events)
