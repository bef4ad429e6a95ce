"""Merges into Delta tables whose cost follows what changed: vectors, appended rows, one log entry.

    MergeOnReadTable    one table: merge(rows, gone, ...) and refresh()
    create_table        a table that can be merged into so
    files_at            the data files of a version, and their deleted rows
    TablePlace          where it lies, and whether its store refuses to write a file twice

Rule: it takes Arrow tables, the columns of a key and a number, and knows nothing of Informix.
"""

from __future__ import annotations

from informix_cdc.merge_on_read.creation import create_table
from informix_cdc.merge_on_read.features import ENABLED, NotHandled
from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.reading import files_at
from informix_cdc.merge_on_read.table import Conflict, MergeOnReadTable
from informix_cdc.merge_on_read.vectors import DamagedVector, file_of, id_of, rows_of

__all__ = [
    "ENABLED",
    "Conflict",
    "DamagedVector",
    "MergeOnReadTable",
    "NotHandled",
    "TablePlace",
    "create_table",
    "file_of",
    "files_at",
    "id_of",
    "rows_of",
]
