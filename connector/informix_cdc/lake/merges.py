"""What a MERGE does with a table, said once for delta-rs and for Spark.

Rule: columns of the source are set, never expressions, so that both engines do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from informix_cdc.lake.table_changes import AT, DELETED_AT, GONE, IS_STATE, TO, TO_TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """One MERGE of source rows `s` into a target `t`.

    Attributes:
        key: columns that identify a row in both.
        inserts: columns of a row that is inserted.
        inserts_if: a flag of the source, and what it is in rows that are inserted.
        updates: columns of a matched row that are set.
        deletes_if: a flag of the source: matched rows with it are deleted, not updated.
        matches_open: a column that must be NULL in a matched row of the target.
        matches_unless: a flag of the source: rows with it match nothing.
        rest: what is set in rows of the target that no source row matches, where the first of these
            columns is NULL; empty: nothing.
    """

    key: Sequence[str]
    inserts: Sequence[str]
    inserts_if: tuple[str, bool]
    updates: Sequence[str]
    deletes_if: str | None = None
    matches_open: str | None = None
    matches_unless: str | None = None
    rest: Mapping[str, int | datetime] = field(default_factory=dict)

    def condition(self, quoted: Callable[[str], str]) -> str:
        """Return which rows match."""
        parts = [f"t.{quoted(name)} = s.{quoted(name)}" for name in self.key]
        parts += [f"t.{self.matches_open} IS NULL"] if self.matches_open else []
        parts += [f"NOT s.{self.matches_unless}"] if self.matches_unless else []
        return " AND ".join(parts)

    def insert_condition(self) -> str:
        """Return which rows that match nothing are inserted."""
        flag, wanted = self.inserts_if
        return f"s.{flag}" if wanted else f"NOT s.{flag}"

    def rest_condition(self) -> str:
        """Return which rows of the target that nothing matches are set."""
        return f"t.{next(iter(self.rest))} IS NULL"


def of_images(images: pa.Table, key: Sequence[str]) -> Merge:
    """Give each key its last image, as `final_images` returns it; those that are gone go."""
    columns = [name for name in images.column_names if name not in (GONE, AT)]
    return Merge(key=key, inserts=columns, inserts_if=(GONE, False), updates=columns, deletes_if=GONE)


def of_images_kept(images: pa.Table, key: Sequence[str], emptied_at: datetime | None) -> Merge:
    """Give each key its last image, with the time in DELETED_AT if it is gone.

    Args:
        images: as `final_images` returns them, and with DELETED_AT.
        key: columns that identify a row.
        emptied_at: when a TRUNCATE has emptied the table before these changes.
    """
    columns = [name for name in images.column_names if name not in (GONE, AT)]
    rest = {} if emptied_at is None else {DELETED_AT: emptied_at}
    return Merge(key=key, inserts=columns, inserts_if=(GONE, False), updates=columns, rest=rest)


def of_states(states: pa.Table, key: Sequence[str], emptied: tuple[int, datetime] | None) -> Merge:
    """End the open states of keys and add those that begin.

    Args:
        states: as `states` returns them.
        key: columns that identify a row.
        emptied: commit and time of the first TRUNCATE among the changes.
    """
    columns = [name for name in states.column_names if name != IS_STATE]
    return Merge(
        key=key,
        inserts=columns,
        inserts_if=(IS_STATE, True),
        updates=(TO, TO_TIME),
        matches_open=TO,
        matches_unless=IS_STATE,
        rest={} if emptied is None else dict(zip((TO, TO_TIME), emptied, strict=True)),
    )
