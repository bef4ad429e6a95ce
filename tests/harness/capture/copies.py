"""A sink for shape=json with tableEvents: a copy of each table, row by row, as the manual describes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Key = tuple[Any, ...]
Row = dict[str, Any]


class Copies:
    """Copies of tables by owner.table, each by the values of its key.

    Args:
        keys: the key columns of each table.
    """

    def __init__(self, keys: Mapping[str, tuple[str, ...]]) -> None:
        self._keys = keys
        self.rows: dict[str, dict[Key, Row]] = {name: {} for name in keys}
        self.repaired = dict.fromkeys(keys, 0)  # changes that intervals have made
        self._open: dict[str, tuple[Key, set[Key]]] = {}

    def apply(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Apply delivered rows, in the order of the stream."""
        for row in sorted(rows, key=lambda row: (row["_commit_version"], row["_change_ordinal"])):
            table = row["_table"].partition(":")[2]
            before, after = (row[name] and json.loads(row[name]) for name in ("before", "after"))
            getattr(self, f"_{row['_change_type']}")(table, before, after)

    def _key(self, table: str, row: Row) -> Key:
        values = (row[name] for name in self._keys[table])
        return tuple(each.rstrip() if isinstance(each, str) else each for each in values)

    def _insert(self, table: str, _before: None, after: Row) -> None:
        key = self._key(table, after)
        if table in self._open:
            self.repaired[table] += self.rows[table].get(key) != after
            self._open[table][1].add(key)
        self.rows[table][key] = after

    def _delete(self, table: str, before: Row, _after: None) -> None:
        self.rows[table].pop(self._key(table, before), None)

    def _update(self, table: str, before: Row, after: Row) -> None:
        self._delete(table, before, None)
        self.rows[table][self._key(table, after)] = after

    def _update_preimage(self, table: str, before: Row, _after: None) -> None:
        self._delete(table, before, None)

    def _update_postimage(self, table: str, _before: None, after: Row) -> None:
        self._insert(table, None, after)

    def _truncate(self, table: str, _before: None, _after: None) -> None:
        self.rows[table].clear()

    def _resync_begin(self, table: str, before: None, after: Row) -> None:
        pass  # a copy that is behind could follow from here on

    def _range_start(self, table: str, _before: None, after: Row) -> None:
        self._open[table] = self._key(table, after), set()

    def _range_skip(self, table: str, _before: None, after: Row) -> None:
        self._open[table][1].add(self._key(table, after))

    def _range_end(self, table: str, _before: None, after: Row) -> None:
        (low, known), high = self._open.pop(table), self._key(table, after)
        ghosts = [k for k in self.rows[table] if _is_above(k, low) and _is_up_to(k, high)]
        for key in ghosts:
            if key not in known:
                self.repaired[table] += 1
                del self.rows[table][key]


def _given(limit: Key) -> Key:
    return tuple(value for value in limit if value is not None)


def _is_above(key: Key, low: Key) -> bool:
    """Return whether a key is above a limit, or has it as a prefix."""
    limit = _given(low)
    return key > limit if len(limit) == len(key) else key[: len(limit)] >= limit


def _is_up_to(key: Key, high: Key) -> bool:
    limit = _given(high)
    return not limit or key[: len(limit)] <= limit
