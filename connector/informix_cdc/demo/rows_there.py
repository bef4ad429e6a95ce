"""The existing rows of a demo, and the account of how they arrive.

Rule: an existing row arrives once and unchanged. Any other row of a snapshot must be the one that its
key has after the changes before it: nothing old may replace anything newer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from informix_capture_client.shapes import ChangeRow
from informix_emulator.shop import CUSTOMERS, ITEMS, KEYS, ORDERS, RowDict, database

FIRST_CUSTOMER, FIRST_ORDER = 101, 1001
_CUSTOMERS, _ORDERS = 300, 700
_MONTH_SECONDS = 30 * 24 * 3600.0
NEXT_CUSTOMER, NEXT_ORDER = FIRST_CUSTOMER + _CUSTOMERS, FIRST_ORDER + _ORDERS

_Key = tuple[object, ...]
_Place = tuple[str, _Key]


def rows_there(chance: random.Random, now: float) -> Iterator[tuple[str, RowDict]]:
    """Yield table and row of a shop that has been open for a month."""
    for number in range(FIRST_CUSTOMER, NEXT_CUSTOMER):
        yield CUSTOMERS, database.customer(chance, number)
    for number in range(FIRST_ORDER, NEXT_ORDER):
        content = list(database.items(chance, number))
        customer = chance.randrange(FIRST_CUSTOMER, NEXT_CUSTOMER)
        placed = now - chance.random() * _MONTH_SECONDS
        yield ORDERS, database.order(chance, number, customer, content, placed)
        for item in content:
            yield ITEMS, item


@dataclass(slots=True)
class RowsThere:
    """The existing rows that have not arrived, and the effect of concurrent changes on them.

    Attributes:
        total: number of existing rows.
        difference: the first wrong row that arrived; empty if there is none.
    """

    total: int = 0
    difference: str = ""
    _left: dict[_Place, RowDict] = field(default_factory=dict)
    _changed: dict[_Place, RowDict | None] = field(default_factory=dict)
    _is_over: bool = False

    def expect(self, table: str, row: RowDict) -> None:
        """Record an existing row."""
        self._left[_place(table, row)] = row
        self.total += 1

    @property
    def arrived(self) -> int:
        """The number of existing rows that have arrived."""
        return self.total - len(self._left)

    @property
    def is_complete(self) -> bool:
        """Whether all have arrived."""
        return not self._left

    def end(self) -> None:
        """Record that all snapshots are done, and free the state that was kept for them."""
        self._is_over = True
        self._changed.clear()

    def record(self, change: ChangeRow) -> None:
        """Record an arriving snapshot row or change, in order."""
        place = _place(change.table, change.row)
        if not change.metadata["_snapshot"]:
            if not self._is_over:
                gone = change.change_type in ("delete", "update_preimage")
                self._changed[place] = None if gone else change.row
            return
        wanted = self._left.pop(place, None)
        if wanted is None:
            wanted = self._changed.get(place)
        if wanted != change.row and not self.difference:
            self.difference = f"a snapshot row of {change.table}, {place[1]}, differs"


def key_of(table: str, row: RowDict) -> _Key:
    """Return the key of a row."""
    return tuple(row[name] for name in KEYS[table])


def _place(table: str, row: RowDict) -> _Place:
    return table, key_of(table, row)
