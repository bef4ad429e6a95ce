"""The arrow shape, for any number of tables: a row has typed changes of one table, as Arrow.

Rule: the delivered schema is the same for every set of tables; a table's columns are in the schema of
the Arrow stream with its changes. Stored like rows of several tables.

    _table                    database:owner.table
    _commit_version           of the first change, and its index among the changes of that transaction:
    _change_ordinal           the rows of a table are applied in this order
    _last_commit_version      of the last change
    _last_commit_timestamp
    _snapshot                 whether all changes are snapshot rows
    truncates                 whether the first change is a TRUNCATE; the others never are
    changes                   the number of changes; an update has two, before and after
    arrow                     an Arrow IPC stream: metadata of each change, and `row`, a struct of the
                              table's columns, NULL for a TRUNCATE
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from informix_capture_client.records import RecordKind
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import Changes
from informix_capture_client.shapes.grouped_form import GroupedForm
from informix_capture_client.shapes.metadata import METADATA, ChangeMetadata
from informix_capture_client.shapes.row_shape import CHANGE_TYPES, grouped_rows

_ALWAYS = ("_change_type", "_commit_version", "_commit_timestamp", "_change_ordinal", "_snapshot")


class ArrowShape:
    """Changes of each table as Arrow streams with that table's columns."""

    is_grouped = True
    schema = pa.schema(
        [
            ("_table", pa.string()),
            ("_commit_version", pa.int64()),
            ("_change_ordinal", pa.int32()),
            ("_last_commit_version", pa.int64()),
            ("_last_commit_timestamp", pa.timestamp("us", "UTC")),
            ("_snapshot", pa.bool_()),
            ("truncates", pa.bool_()),
            ("changes", pa.int32()),
            ("arrow", pa.binary()),
        ]
    )

    def __init__(self, tables: CapturedTables, metadata: str = "full") -> None:
        chosen = [field for field in METADATA if field.name in _ALWAYS or metadata == "full"]
        about = pa.schema([field for field in chosen if field.name != "_table"])
        self._metadata = ChangeMetadata(tables, CHANGE_TYPES, about)
        form = replace(
            grouped_rows(self._metadata), delivered=[*about.names, "row"], named=None, form=b"arrow"
        )
        self._form = GroupedForm(form, tables, [str(table.name) for table in tables.tables])

    @property
    def stored_schema(self) -> pa.Schema:
        """The schema of what `encode` returns."""
        return self._form.schema

    def begin(self, present: Sequence[int]) -> None:
        """Start a new sequence of transactions; all records are of the tables `present`."""
        self._form.begin(present)

    def encode(self, changes: Changes) -> pa.RecordBatch:
        """Return changes as a group.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        images = changes.only(changes.kinds != RecordKind.TRUNCATE)
        return self._form.batch(self._metadata.coded(changes), changes, images)
