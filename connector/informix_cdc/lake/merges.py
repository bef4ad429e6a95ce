"""The definition of a MERGE, for both delta-rs and Spark.

Rule: columns of the source are set, never expressions, so that both engines do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from informix_cdc.lake.table_changes import AT, DELETED_AT, GONE, IS_STATE, TO, TO_TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """One MERGE of source rows `s` into a target `t`.

    Attributes:
        key: columns that identify a row in both.
        inserts: columns of an inserted row.
        inserts_if: a flag of the source, and its value in rows that are inserted.
        updates: columns of a matched row that are set.
        deletes_if: a flag of the source: matched rows with it are deleted instead of updated.
        matches_open: a column that must be NULL in a matched row of the target.
        matches_closed: a column that must not be NULL in a matched row of the target.
        matches_unless: a flag of the source: rows with it never match.
        rest: values to set in rows of the target that match no source row, if the first of these
            columns is NULL there; empty: none.
    """

    key: Sequence[str]
    inserts: Sequence[str]
    inserts_if: tuple[str, bool]
    updates: Sequence[str]
    deletes_if: str | None = None
    matches_open: str | None = None
    matches_closed: str | None = None
    matches_unless: str | None = None
    rest: Mapping[str, int | datetime] = field(default_factory=dict)

    def condition(self, quoted: Callable[[str], str]) -> str:
        """Return the condition for matching rows."""
        parts = [f"t.{quoted(name)} = s.{quoted(name)}" for name in self.key]
        parts += [f"t.{self.matches_open} IS NULL"] if self.matches_open else []
        parts += [f"t.{self.matches_closed} IS NOT NULL"] if self.matches_closed else []
        parts += [f"NOT s.{self.matches_unless}"] if self.matches_unless else []
        return " AND ".join(parts)

    def insert_condition(self) -> str:
        """Return the condition for inserting rows that match nothing."""
        flag, wanted = self.inserts_if
        return f"s.{flag}" if wanted else f"NOT s.{flag}"

    def rest_condition(self) -> str:
        """Return the condition for setting rows of the target that match nothing."""
        return f"t.{next(iter(self.rest))} IS NULL"


def of_keys(key: Sequence[str], *, is_null: str | None = None, is_set: str | None = None) -> Merge:
    """Return the MERGE that only matches keys, of rows in which a column is NULL, or is not."""
    return Merge(
        key=key,
        inserts=(),
        inserts_if=("", False),
        updates=(),
        matches_open=is_null,
        matches_closed=is_set,
    )


def of_images(columns: Sequence[str], key: Sequence[str]) -> Merge:
    """Return the MERGE that sets each key to its last image, as returned by `final_images`."""
    columns = [name for name in columns if name not in (GONE, AT)]
    return Merge(key=key, inserts=columns, inserts_if=(GONE, False), updates=columns, deletes_if=GONE)


def of_images_kept(columns: Sequence[str], key: Sequence[str], emptied_at: datetime | None) -> Merge:
    """Return the MERGE that sets each key to its last image, with DELETED_AT set if it is deleted.

    Args:
        columns: of images as returned by `final_images`, with DELETED_AT.
        key: columns that identify a row.
        emptied_at: when a TRUNCATE emptied the table before these changes.
    """
    columns = [name for name in columns if name not in (GONE, AT)]
    rest = {} if emptied_at is None else {DELETED_AT: emptied_at}
    return Merge(key=key, inserts=columns, inserts_if=(GONE, False), updates=columns, rest=rest)


def of_states(
    columns: Sequence[str], key: Sequence[str], emptied: tuple[int, datetime] | None
) -> Merge:
    """Return the MERGE that ends the open states of keys and adds new ones.

    Args:
        columns: of states as returned by `states`.
        key: columns that identify a row.
        emptied: commit and time of the first TRUNCATE among the changes.
    """
    columns = [name for name in columns if name != IS_STATE]
    return Merge(
        key=key,
        inserts=columns,
        inserts_if=(IS_STATE, True),
        updates=(TO, TO_TIME),
        matches_open=TO,
        matches_unless=IS_STATE,
        rest={} if emptied is None else dict(zip((TO, TO_TIME), emptied, strict=True)),
    )
