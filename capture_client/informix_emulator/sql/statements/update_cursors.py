"""Rows of SELECT FOR UPDATE: each is locked when it is fetched, until the next one is.

An update lock lets others read the row, but not change it or take an update lock. With RETAIN UPDATE
LOCKS, and in Repeatable Read, it is held until the transaction ends. Sources: Guide to SQL: Syntax,
"Locking with an Update Cursor" and "SET ISOLATION"; Performance Guide, "Update cursors".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from ...answers import CursorKind
from ...sql_errors import sql_error
from ..held_locks import updaters_of
from ..language.values import Stored
from ..reading import SessionView
from ..sources import TableView
from ..storage import Storage
from ..work import Blocked
from .from_clause import ScanText
from .scans import RowBatch, Scan

_NUMBERS = count(1)


class UpdateScan(Scan):
    """One run of a query FOR UPDATE; UPDATE and DELETE find its row by the cursor's name."""

    def __init__(
        self,
        reading: SessionView,
        text: ScanText,
        table: Storage,
        given: Sequence[Stored],
        cursor: CursorKind,
    ) -> None:
        super().__init__(reading, text, table, given)
        self._number = next(_NUMBERS)
        self._name = cursor.name.lower()

    def begin(self) -> UpdateScan:
        """Stand before the first row, which is locked when it is fetched."""
        self._come_to(0)
        return self

    @property
    def _view(self) -> TableView:
        """Wait for rows that others have changed, independent of the isolation level."""
        return replace(self._reading.view, isolation="committed read")

    @property
    def _takes_locks(self) -> bool:
        """Whether rows are locked; without a log there is no transaction that could hold the locks."""
        return self._table.has_log and not self._table.is_temporary

    @property
    def _rows_per_step(self) -> int:
        return 1

    def _step(self) -> RowBatch:
        self._reading.must_be_in_transaction()
        if self._takes_locks:
            self._locker().must_be_writable(self._table, -244)
        return super()._step()

    def _must_be_free(self, rows: RowBatch) -> None:
        rids = {int(row[-1] or 0) for row in rows}
        if self._takes_locks and (owners := updaters_of(self._table, rids, self._locker().number)):
            raise Blocked(sql_error(-244), owners, self._table)

    def _lock_row(self) -> None:
        self._let_go()
        rid = 0 if self._is_done else int(self._position[-1] or 0)
        self._come_to(rid)
        if rid and self._takes_locks:
            self._locker().stand_on(self._table, self._number, rid)

    def _come_to(self, rid: int) -> None:
        if self._name:
            self._reading.positions[self._name] = self._table, rid

    def _let_go(self) -> None:
        if not self._reading.retains_update_locks and self._reading.isolation != "repeatable read":
            held = self._table.update_locks
            self._table.update_locks = {lock for lock in held if lock.cursor != self._number}
            self._reading.server.log.changed.notify_all()

    def _release(self) -> None:
        self._let_go()
        self._reading.positions.pop(self._name, None)
