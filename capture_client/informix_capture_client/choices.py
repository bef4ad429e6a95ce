"""What a user may choose about columns, values and the form of a row.

Rule: values made from the options once and handed down; the text alone is judged here, and
`catalog.column_choice` holds names against the tables. Imports next to nothing, since options are read
before Arrow is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from informix_capture_client.masks import MaskedName, MaskKey
from informix_capture_client.sql_names import NamePath, read_paths

_MOST_PARTS = 3  # owner.table.column
_GRAMMAR = "must be a comma-separated list of column or table.column names, each once"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChoice:
    """What the user wants of the columns.

    Attributes:
        names: the include list; a table that no name belongs to keeps all its columns.
        unsupported: what happens to columns that cannot be captured: of such a type, or behind a
            collection as well.
        lobs: what happens to BLOB and CLOB columns.
        simple_lobs: what happens to TEXT and BYTE columns.
        masks: columns whose values are replaced.
        mask_key: of hashes.
    """

    names: tuple[NamePath, ...] = ()
    unsupported: Literal["fail", "omit", "omit-following"] = "fail"
    lobs: Literal["handle", "content", "reselect", "omit"] = "handle"
    simple_lobs: Literal["unsupported", "reselect"] = "unsupported"
    masks: tuple[MaskedName, ...] = ()
    mask_key: MaskKey | None = None


def parse_names(text: str) -> tuple[NamePath, ...]:
    """Read an include list: `column`, `table.column` or `owner.table.column`, with commas.

    Raises:
        ValueError: the list is not valid, or has a name twice.
    """
    try:
        names = tuple(read_paths(text))
    except ValueError as reason:
        raise ValueError(f"{_GRAMMAR} ({reason})") from None
    if any(len(name) > _MOST_PARTS for name in names) or len(set(names)) != len(names):
        raise ValueError(_GRAMMAR)
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeRules:
    """What a column becomes where there is a choice.

    Attributes:
        codec: the Python codec of the database's code set.
        keep_blanks: whether CHAR and NCHAR keep their trailing blanks.
        bad_characters: what happens to bytes that are not valid in the code set.
        floating_decimal: what DECIMAL(p) without a scale becomes: exact text, a double, or a
            DECIMAL(38, n), given as n.
        intervals: whether intervals are typed or as Informix prints them.
        lobs: whether a BLOB or CLOB is its handle, or what that leads to, or what its row has now.
    """

    codec: str = "utf-8"
    keep_blanks: bool = False
    bad_characters: Literal["fail", "replace"] = "fail"
    floating_decimal: Literal["string", "double"] | int = "string"
    intervals: Literal["typed", "string"] = "typed"
    lobs: Literal["handle", "content", "reselect"] = "handle"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowForm:
    """What a reader makes of stored changes.

    Attributes:
        shape: the form of a row.
        truncate: what a TRUNCATE does.
        before_image: whether an update shows the row before it.
        server: the server's name, which the envelope states.
        metadata: which metadata columns are delivered with a row.
        table_events: whether rows that describe a chunk of rows that are read again are delivered.
    """

    shape: Literal["rows", "envelope", "json", "arrow"] = "rows"
    truncate: Literal["fail", "emit", "ignore"] = "fail"
    before_image: bool = True
    server: str = ""
    metadata: Literal["full", "minimal"] = "full"
    table_events: bool = False

    @property
    def has_fixed_schema(self) -> bool:
        """Whether delivered rows have the same columns for every set of tables."""
        return self.shape in ("json", "arrow")

    @property
    def joins_images(self) -> bool:
        """Whether an update is one row, made of both of its images."""
        return self.shape in ("json", "envelope")

    @property
    def of_keys(self) -> str:
        """The options that decide which rows a change becomes.

        `metadata` is none of them: rows and keys stay the same, so a planned batch may have either.
        """
        events = " tableEvents=true" if self.table_events else ""
        before_image = str(self.before_image).lower()
        return f"shape={self.shape} beforeImage={before_image} truncate={self.truncate}{events}"
