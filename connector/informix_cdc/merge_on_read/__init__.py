"""Writes into Delta tables whose cost follows what changed: appended rows, vectors, one log entry.

    TablePlace          where a table lies, and whether its store refuses to write a file twice
    TableLog            its log: what the table has, what others have put
    create_table        a table, with deletion vectors or without
    append              rows
    MergeOnReadTable    merges: rows are found by their keys, marked in vectors, and appended
    hashes_of           hashes of keys, equal for keys that are equal in SQL
    rewritten, compact  one file in place of many, while others write
    clean_log, remove_unused_files     what no version since a time needs
    files_at            the data files of a version, and their deleted rows

Rule: it takes Arrow tables, the columns of a key and a number, and knows nothing of Informix.
"""

from __future__ import annotations

from informix_cdc.merge_on_read.bounds import COLUMNS_WITH_BOUNDS, EXACT_DIGITS, columns_with_bounds
from informix_cdc.merge_on_read.cleaning import (
    Cleaned,
    clean_log,
    remove_unused_files,
)
from informix_cdc.merge_on_read.compaction import Chosen, Rewritten, files_to_rewrite, rewritten
from informix_cdc.merge_on_read.creation import create_table
from informix_cdc.merge_on_read.features import ENABLED, NotHandled
from informix_cdc.merge_on_read.key_hashes import hashes_of
from informix_cdc.merge_on_read.log import Action, LoggedState, TableLog
from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.reading import files_at, in_table_schema, rows_left
from informix_cdc.merge_on_read.table import (
    GROUP_ROWS,
    CommitOf,
    Conflict,
    IndexedFile,
    MergeOnReadTable,
    Part,
    RowAction,
    append,
    compact,
    set_properties,
)
from informix_cdc.merge_on_read.vectors import DamagedVector, file_of, id_of, rows_of

__all__ = [
    "COLUMNS_WITH_BOUNDS",
    "ENABLED",
    "EXACT_DIGITS",
    "GROUP_ROWS",
    "Action",
    "Chosen",
    "Cleaned",
    "CommitOf",
    "Conflict",
    "DamagedVector",
    "IndexedFile",
    "LoggedState",
    "MergeOnReadTable",
    "NotHandled",
    "Part",
    "Rewritten",
    "RowAction",
    "TableLog",
    "TablePlace",
    "append",
    "clean_log",
    "columns_with_bounds",
    "compact",
    "create_table",
    "file_of",
    "files_at",
    "files_to_rewrite",
    "hashes_of",
    "id_of",
    "in_table_schema",
    "remove_unused_files",
    "rewritten",
    "rows_left",
    "rows_of",
    "set_properties",
]
