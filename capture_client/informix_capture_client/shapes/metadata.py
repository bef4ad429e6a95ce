"""The metadata columns of a change.

Rule: names follow Delta's change data feed. Columns that minimal metadata omits can be joined by
(`_commit_version`, `_change_ordinal`), which is a row's key and order in every shape that has it. The
ordinal is the place of the stored change in its transaction, not of a row that a reader makes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from informix_capture_client.records import Integers
from informix_capture_client.shapes.stored_changes import CHANGE_TYPES, ChangeGroup
from informix_capture_client.values import pick

_INSTANT = pa.timestamp("us", "UTC")

METADATA = pa.schema(
    [
        ("_change_type", pa.string()),
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", _INSTANT),
        ("_change_ordinal", pa.int32()),
        ("_change_seq", pa.int64()),
        ("_transaction_id", pa.int32()),
        ("_begin_timestamp", _INSTANT),
        ("_user_id", pa.int32()),
        ("_table", pa.string()),
        ("_snapshot", pa.bool_()),
    ]
)

# The three names of Delta's change data feed, of which an upsert takes kind and order and a watermark
# the time, and the place in the transaction, without which two changes of one row have no order.
_MINIMAL = ("_change_type", "_commit_version", "_commit_timestamp", "_change_ordinal")
_TABLE = "_table"
_CHANGE_TYPES = tuple(CHANGE_TYPES.values())


def metadata_schema(choice: str, table_count: int) -> pa.Schema:
    """Return the metadata columns for option metadata; with several tables, including the table."""
    if choice == "full":
        return METADATA
    named = (*_MINIMAL, _TABLE) if table_count > 1 else _MINIMAL
    return pa.schema([field for field in METADATA if field.name in named])


def metadata_columns(
    group: ChangeGroup,
    chosen: Integers,
    names: Sequence[str],
    change_types: Sequence[str] = _CHANGE_TYPES,
) -> list[pa.Array]:
    """Return metadata columns of some changes.

    Args:
        group: the changes.
        chosen: which of them.
        names: of the columns, among `METADATA`.
        change_types: the text of each kind.
    """
    of_texts = {
        "_change_type": lambda: texts(change_types, group.kinds[chosen]),
        _TABLE: lambda: texts(group.tables, group.places[chosen]),
    }
    return [of_texts[n]() if n in of_texts else group.column(n, chosen) for n in names]


def texts(words: Sequence[str], numbers: NDArray[Any]) -> pa.StringArray:
    """Return words by their numbers."""
    if len(words) == 1:
        return pa.repeat(pa.scalar(words[0], pa.string()), len(numbers))
    return pick(_words(tuple(words)), numbers)


@lru_cache(maxsize=256)
def _words(words: tuple[str, ...]) -> pa.StringArray:
    return pa.array(words, pa.string())
