"""What a user says about columns: an include list, and what to do with the awkward ones.

Rule: the text alone is judged here; `column_choice` holds it against the tables. Imports next to
nothing, since options are read before Arrow is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from informix_capture_client.sql_names import Path, read_paths

_MOST_PARTS = 3  # owner.table.column
_GRAMMAR = "must be names of columns, or table.column, with commas, each once"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChoice:
    """What the user wants of the columns.

    Attributes:
        names: the include list; a table that no name belongs to keeps all its columns.
        unsupported: what happens to columns that cannot be captured.
        lobs: what happens to BLOB and CLOB columns.
    """

    names: tuple[Path, ...] = ()
    unsupported: Literal["fail", "omit"] = "fail"
    lobs: Literal["handle", "omit"] = "handle"


def parse_names(text: str) -> tuple[Path, ...]:
    """Read an include list: `column`, `table.column` or `owner.table.column`, with commas.

    Raises:
        ValueError: it is none, or a name stands there twice.
    """
    try:
        names = tuple(read_paths(text))
    except ValueError as reason:
        raise ValueError(f"{_GRAMMAR} ({reason})") from None
    if any(len(name) > _MOST_PARTS for name in names) or len(set(names)) != len(names):
        raise ValueError(_GRAMMAR)
    return names
