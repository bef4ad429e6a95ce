"""Writes into Delta tables whose cost follows what changed: appended rows, vectors, one log entry.

    TablePlace          where a table lies, and whether its store refuses to write a file twice
    TableLog            its log: what the table has, what others have put
    create_table        a table, with deletion vectors or without
    append              rows
    MergeOnReadTable    merges: rows are found by their keys, marked in vectors, and appended
    hashes_of           hashes of keys, equal for keys that are equal in SQL
    files_at            the data files of a version, and their deleted rows

Rule: it takes Arrow tables, the columns of a key and a number, and knows nothing of Informix.
"""

from __future__ import annotations

from informix_cdc.merge_on_read.bounds import COLUMNS_WITH_BOUNDS, EXACT_DIGITS, columns_with_bounds
from informix_cdc.merge_on_read.creation import create_table
from informix_cdc.merge_on_read.features import ENABLED, NotHandled
from informix_cdc.merge_on_read.key_hashes import hashes_of
from informix_cdc.merge_on_read.log import Action, LoggedState, TableLog
from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.reading import files_at
from informix_cdc.merge_on_read.table import CommitOf, Conflict, MergeOnReadTable, Part, append
from informix_cdc.merge_on_read.vectors import DamagedVector, file_of, id_of, rows_of

__all__ = [
    "COLUMNS_WITH_BOUNDS",
    "ENABLED",
    "EXACT_DIGITS",
    "Action",
    "CommitOf",
    "Conflict",
    "DamagedVector",
    "LoggedState",
    "MergeOnReadTable",
    "NotHandled",
    "Part",
    "TableLog",
    "TablePlace",
    "append",
    "columns_with_bounds",
    "create_table",
    "file_of",
    "files_at",
    "hashes_of",
    "id_of",
    "rows_of",
]
