"""The locks that transactions hold on rows and tables, as other sessions see them.

They are read from the engine's own state, so that the locks shown are those that make others wait. A
lock on a page is shown as that of its first row, as `rowidlk` shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..locks import HeldLock
from .storage import Storage, Store

SessionOf = Callable[[int], int]
_PAGE_BITS = 8
_TABLE_TYPES = {"shared": "S", "exclusive": "X"}


def owners_of(store: Store, storage: Storage, rows: set[int], number: int) -> set[int]:
    """Return which other works hold locks on these rows, or on their pages."""
    per_lock = storage.rows_per_lock
    locks = {rid // per_lock for rid in rows}
    if not storage.is_locked_by_others(number):
        return set()
    one = next(iter(rows)) if per_lock == 1 and len(rows) == 1 else None
    held = store.lockers_of(storage, one)
    return {work for rid, work in held if work != number and rid // per_lock in locks}


def locks_of(store: Store, session_of: SessionOf) -> list[HeldLock]:
    """Return all locks of a server."""
    return [lock for storage in store.storages for lock in _of_storage(store, storage, session_of)]


def _of_storage(store: Store, storage: Storage, session_of: SessionOf) -> Iterator[HeldLock]:
    name = storage.table.name

    def lock(kind: str, work: int, row: int = 0) -> HeldLock:
        waiter = store.waiting.first(str(name), work)
        return HeldLock(name.database, name.table, kind, session_of(work), row, waiter)

    for work, mode in storage.table_locks.items():
        yield lock(_TABLE_TYPES[mode], work)
    for work in storage.lockers - storage.table_locks.keys():
        yield lock("IX", work)
    changed = store.lockers_of(storage) if storage.lockers else []
    for work, row in dict.fromkeys((work, _shown(storage, rid)) for rid, work in changed):
        yield lock("X", work, row)


def _shown(storage: Storage, rid: int) -> int:
    per_lock = storage.rows_per_lock
    return rid if per_lock == 1 else (rid // per_lock + 1) << _PAGE_BITS
