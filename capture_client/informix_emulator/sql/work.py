"""One client's transaction: its changes, its undo, its locks.

Each change is made to the rows and to the log in one step. Undo replays the images backwards, and the
log gets DISCARD or RBTX. A row that a transaction changed is locked until it ends. Error numbers:
finderr -243, -244, -263, -271 with ISAM -107 (the record is locked) and -113 (the file is).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..locks import NO_SESSION
from ..log.logical_log import LongTransactionError
from ..log.transactions import EmulatedTransaction, Savepoint
from ..server import EmulatedServer
from ..sql_errors import SqlError, sql_error
from ..tables.tables import EmulatedTable
from .held_locks import owners_of
from .language.values import load
from .storage import RowValues, Storage, Store

RECORD_IS_LOCKED, FILE_IS_LOCKED = -107, -113
_CONSTRAINT_IS_BROKEN = -268
Undo = Callable[[], None]


class Blocked(Exception):
    """Another transaction holds the lock; `error` is raised if the statement does not wait."""

    def __init__(self, error: SqlError, owners: set[int], storage: Storage) -> None:
        super().__init__(error, owners, storage)
        self.error = error
        self.owners = owners
        self.table = str(storage.table.name)


class UpdatedRow(NamedTuple):
    """What an UPDATE makes of a row."""

    rid: int
    old: RowValues
    new: RowValues


@dataclass(slots=True)
class Mark:
    """A place in a transaction: how much is to be kept when what came after it is undone."""

    undo_count: int
    savepoint: Savepoint | None


@dataclass(slots=True, eq=False)
class Work:
    """What a transaction does to rows and log."""

    number: int
    server: EmulatedServer
    store: Store
    is_explicit: bool = True
    session: int = NO_SESSION
    database: str = ""
    transaction: EmulatedTransaction | None = None
    undo: list[Undo] = field(default_factory=list)
    touched: set[Storage] = field(default_factory=set)
    locked_tables: set[Storage] = field(default_factory=set)
    savepoints: dict[str, tuple[Mark, bool]] = field(default_factory=dict)
    on_commit: list[Undo] = field(default_factory=list)
    is_over: bool = False  # for its session
    is_released: bool = False  # its locks are gone
    waits_for: set[int] = field(default_factory=set)

    # --- the log --------------------------------------------------------------------------------

    def log(self) -> EmulatedTransaction:
        """Return the transaction in the log; BEGINTX is written when it is first asked for."""
        if self.transaction is None:
            try:
                self.transaction = self.server.begin()
            except LongTransactionError:
                raise sql_error(-458) from None
            if self.database:
                self.transaction.databases.add(self.database)
        return self.transaction

    def _logs(self, storage: Storage) -> bool:
        return storage.has_log and storage.table.is_logged and not storage.is_temporary

    def _image(self, table: EmulatedTable, values: RowValues) -> dict[str, object]:
        pairs = zip(table.columns, values, strict=True)
        return {c.name: load(c.type, v) for c, v in pairs if c.type.is_capturable}

    # --- changes --------------------------------------------------------------------------------

    def insert(self, storage: Storage, values: RowValues) -> int:
        """Insert a row, and lock it."""
        self.must_be_writable(storage, -271)
        self._must_not_meet_keys(storage, values)
        rid = self.store.insert(storage, values)
        if storage.table.locks_pages and owners_of(self.store, storage, {rid}, self.number):
            self.store.delete(storage, rid)  # a page without other locks takes it: our choice
            rid = self.store.next_page(storage)
            self.store.put_row(storage, rid, values)
        if storage.has_log:
            self.undo.append(lambda: self.store.delete(storage, rid))
            self._lock(storage, rid, None)
        if self._logs(storage):
            self._written(lambda tx, name: tx.insert(name, self._image(storage.table, values)), storage)
        return rid

    def update(self, storage: Storage, changes: Sequence[UpdatedRow]) -> None:
        """Change rows, and lock them; a unique constraint must hold when all are changed.

        A unique index must hold after each row, and so must all in a table without a log: Guide to SQL:
        Syntax, "Differences Between a Unique Constraint and a Unique Index" and "SET Transaction Mode".
        """
        waiting = [change for change in changes if not self._changed(storage, change)]
        for change in waiting:
            self.store.put_row(storage, change.rid, change.new)
        for change in changes if self._logs(storage) else ():
            self._log_update(storage, change)

    def _log_update(self, storage: Storage, change: UpdatedRow) -> None:
        images = self._image(storage.table, change.old), self._image(storage.table, change.new)
        self._written(lambda tx, name: tx.update(name, *images), storage)

    def _changed(self, storage: Storage, change: UpdatedRow) -> bool:
        """Change a row, or take it out where another has its key as yet; whether it is changed."""
        rid, old, new = change
        if new != old:
            self._must_not_meet_keys(storage, new)
        try:
            self.store.update(storage, rid, new)
            is_changed = True
        except SqlError as error:
            if error.native != _CONSTRAINT_IS_BROKEN or not storage.has_log:
                raise
            self.store.delete(storage, rid)
            is_changed = False
        if storage.has_log:
            self.undo.append(lambda: self.store.restore(storage, rid, old))
            self._lock(storage, rid, old)
        return is_changed

    def delete(self, storage: Storage, rid: int, old: RowValues) -> None:
        """Delete a row, and lock its place."""
        self.store.delete(storage, rid)
        if storage.has_log:
            self.undo.append(lambda: self.store.restore(storage, rid, old))
            self._lock(storage, rid, old)
        if self._logs(storage):
            self._written(lambda tx, name: tx.delete(name, self._image(storage.table, old)), storage)

    def truncate(self, storage: Storage) -> None:
        """Empty a table, which no other transaction may be using."""
        self.take(storage)
        rows = self.store.emptied(storage)
        if storage.has_log:
            for rid, values in rows:
                self._lock(storage, rid, values)
            self.undo.append(lambda: self.store.restore_all(storage, rows))
        if self._logs(storage):
            self._written(lambda tx, name: tx.truncate(name), storage)

    def _written(self, write: Callable[[EmulatedTransaction, str], object], storage: Storage) -> None:
        try:
            write(self.log(), str(storage.table.name))
        except LongTransactionError:
            raise sql_error(-458) from None

    # --- locks ----------------------------------------------------------------------------------

    def _lock(self, storage: Storage, rid: int, committed: RowValues | None) -> None:
        if storage.is_temporary:
            self.log()  # its rows are logged too (Guide to SQL: Syntax, "CREATE TEMP TABLE")
            return
        self.store.lock(storage, rid, self.number, committed)
        self.touched.add(storage)

    def must_be_writable(self, storage: Storage, native: int) -> None:
        """Blocked if another transaction has locked the table."""
        if others := storage.table_locks.keys() - {self.number}:
            error = sql_error(native, storage.table.name.table, isam=FILE_IS_LOCKED)
            raise Blocked(error, set(others), storage)

    def must_not_meet(self, storage: Storage, rows: set[int], native: int) -> None:
        """Blocked if another transaction has locked one of these rows, or its page."""
        if owners := owners_of(self.store, storage, rows, self.number):
            raise Blocked(sql_error(native, storage.table.name.table), owners, storage)

    def _must_not_meet_keys(self, storage: Storage, values: RowValues) -> None:
        """Blocked if a key is taken by a row that another transaction has changed: it may come back."""
        if not storage.is_locked_by_others(self.number):
            return
        for key in storage.table.all_indexes:
            if key.kind == "D":
                continue
            places = [storage.place_of(name) for name in key.columns]
            same = " AND ".join(f"x.c{place} IS ?" for place in places)
            found = self.store.find(
                f"SELECT b.work FROM {storage.before} b WHERE b.work <> ?1 AND"
                f" (EXISTS (SELECT 1 FROM {storage.before} x"
                f" WHERE x.rid = b.rid AND x.existed AND {_numbered(same)})"
                f" OR EXISTS (SELECT 1 FROM {storage.rows} x"
                f" WHERE x.rid = b.rid AND {_numbered(same)}))",
                (self.number, *(values[place] for place in places)),
            )
            if found:
                raise Blocked(sql_error(-271), {int(row[0] or 0) for row in found}, storage)

    def take(self, storage: Storage) -> None:
        """Lock a table that is to be defined anew, emptied or dropped.

        IBM's support names -242 with ISAM -106 for DDL (swg21174239) and TRUNCATE (swg21674115).
        """
        self.lock_table(storage, "exclusive", -242)

    def lock_table(self, storage: Storage, mode: str, native: int = -289) -> None:
        """Lock a table until the transaction ends; Blocked if that is not possible now."""
        others = {owner for owner, held in storage.table_locks.items() if "exclusive" in (held, mode)}
        others |= storage.lockers
        others -= {self.number}
        if others:
            raise Blocked(sql_error(native, storage.table.name.table), others, storage)
        if storage.table_locks.get(self.number) != "exclusive":
            storage.table_locks[self.number] = mode
        self.locked_tables.add(storage)

    # --- undoing, and the end -------------------------------------------------------------------

    def mark(self) -> Mark:
        """Return the present place."""
        return Mark(len(self.undo), self.transaction.savepoint() if self.transaction else None)

    def undo_to(self, mark: Mark) -> None:
        """Undo what was done since a place; DISCARD is logged if anything was."""
        self._replay(mark.undo_count)
        if self.transaction is not None:
            self.transaction.rollback_to(mark.savepoint or Savepoint(self.transaction, 0))

    def _replay(self, count: int) -> None:
        while len(self.undo) > count:
            self.undo.pop()()

    def commit(self) -> None:
        """Commit, in the log too if it knows the transaction; the locks may stay for a while."""
        if self.transaction is None:
            return self.release()
        try:
            self.is_over = True
            self.transaction.commit(waits=False)  # calls `release`, now or later
        except LongTransactionError:
            self.rollback()
            raise sql_error(-458) from None

    def release(self) -> None:
        """Do what is left to be done when it is committed, and let its locks go."""
        for finish in self.on_commit:
            finish()
        self._end()

    def rollback(self) -> None:
        """Roll back, in the log too if it knows the transaction."""
        transaction, self.transaction = self.transaction, None
        self._replay(0)
        if transaction is not None:
            transaction.rollback()
        self._end()

    def was_rolled_back(self) -> None:
        """The server has rolled the transaction back, as it does when it recovers."""
        self.transaction = None
        self._replay(0)
        self._end()

    def _end(self) -> None:
        self.is_over = self.is_released = True
        for storage in self.touched:
            self.store.unlock(storage, self.number)
        for storage in self.locked_tables:
            storage.table_locks.pop(self.number, None)
        self.touched.clear()
        self.locked_tables.clear()


def _numbered(same: str) -> str:
    """Number the parameters of a comparison of keys from 2 on."""
    parts = same.split("?")
    return "".join(f"{part}?{n}" for n, part in enumerate(parts[:-1], 2)) + parts[-1]
