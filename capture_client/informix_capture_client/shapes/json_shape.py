"""The json shape, for any number of tables: one row per change, with before and after as JSON.

Rule: the schema is the same for every set of tables, so that Spark's plan and a row's cost do not grow
with them; a row has all columns in table order, NULL as null.

    INSERT          insert, after         DELETE     delete, before
    UPDBEF, UPDAFT  update, both          TRUNCATE   truncate, neither
    RangeKind       range_start and others, after: the key of a limit or of a row
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from informix_capture_client.choices import RowForm
from informix_capture_client.records import Integers
from informix_capture_client.shapes.json_rows import JsonRows
from informix_capture_client.shapes.metadata import metadata_columns, metadata_schema
from informix_capture_client.shapes.row_shape import DeliveredTable, Images, delivered_changes
from informix_capture_client.shapes.stored_changes import AFTER, CHANGE_TYPES, ChangeGroup

_IMAGES = [("before", pa.string()), ("after", pa.string())]
_CHANGE_TYPES = ["update" if code == AFTER else text for code, text in enumerate(CHANGE_TYPES.values())]
_ANY_NUMBER = 2  # of tables: `_table` is there for one as well, so that a second changes no schema
_ROWS_AT_ONCE = 8192


def json_schema(_tables: Sequence[DeliveredTable], form: RowForm) -> pa.Schema:
    """Return the schema of shape=json."""
    return pa.schema([*_IMAGES, *metadata_schema(form.metadata, _ANY_NUMBER)])


class JsonShape:
    """Makes rows of `schema`, which is that of `json_schema`."""

    def __init__(self, form: RowForm, schema: pa.Schema) -> None:
        self._form, self._schema = form, schema

    def batches(self, group: ChangeGroup) -> Iterator[pa.RecordBatch]:
        """Yield the changes of a group, in order."""
        rows = JsonRows(group)
        events = delivered_changes(group, self._form, one_row_per_update=True)
        for first, end in pairwise([*range(0, len(events), _ROWS_AT_ONCE), len(events)]):
            yield self._batch(group, events[first:end], rows)

    def _batch(self, group: ChangeGroup, events: Integers, rows: JsonRows) -> pa.RecordBatch:
        of_events = Images.of(group, events, self._form)
        before, after = of_events.before[of_events.has_before], events[of_events.has_after]
        # Both images at once: a call for each type of their columns, not two.
        found = rows.texts(np.concatenate([before, after]))
        images = [
            found.part(0, len(before), of_events.has_before),
            found.part(len(before), len(before) + len(after), of_events.has_after),
        ]
        about = metadata_columns(group, events, self._schema.names[len(_IMAGES) :], _CHANGE_TYPES)
        return pa.RecordBatch.from_arrays([*images, *about], schema=self._schema)
