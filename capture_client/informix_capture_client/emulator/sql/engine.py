"""One engine for a server: its rows, its sessions' transactions, and what the Python API writes.

Rule: a change that `EmulatedServer.transaction()` logs is made to the rows too, if the server keeps
rows or SQL made the table; it asks for no locks, as a program that tests the log has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .. import codes
from ..poses import DEFAULT_LOCALE
from ..server import EmulatedServer
from ..tables import Table
from ..transactions import Row, Transaction
from .language.values import store
from .reading import Reading
from .session import Session
from .storage import RowValues, Storage, Store, is_serial
from .transactions import Transactions
from .work import Undo, Work


@dataclass(slots=True)
class _Journal:
    """How the changes of a transaction of the Python API are undone, and from which record on."""

    undo: list[tuple[int, Undo]] = field(default_factory=list)
    records: int = 0


class Engine:
    """Rows and transactions of a server; `RowKeeper` of its log."""

    def __init__(self, server: EmulatedServer) -> None:
        self._server = server
        self._store = Store(server)
        self._works: dict[int, Work] = {}
        self._journals: dict[int, _Journal] = {}

    def open(self, user: str, database: str, delimits_names: bool, locale: str) -> Session:
        """Open a session."""
        reading = Reading(self._server, self._store, user, database, delimits_names)
        return Session(Transactions(reading, self._works), locale)

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open."""
        return not self._works and not self._journals

    def changed(self, transaction: Transaction, kind: int, table: Table, *rows: Row) -> None:
        """A transaction has logged a row; those of sessions have changed it themselves."""
        if self._work_of(transaction) is not None:
            return
        storage = self._store.of(table)
        if not (self._server.keeps_rows or storage.is_sql_made):
            return
        journal = self._journals.setdefault(id(transaction), _Journal())
        journal.records = transaction.record_count
        for undo in _CHANGES[kind](self._store, storage, *rows):
            journal.undo.append((journal.records, undo))

    def undone(self, transaction: Transaction, record_count: int) -> None:
        """What a transaction logged is void, but for so many records."""
        journal = self._journals.get(id(transaction))
        while journal is not None and journal.undo and journal.undo[-1][0] > record_count:
            journal.undo.pop()[1]()

    def ended(self, transaction: Transaction, *, is_committed: bool) -> None:
        """A transaction has ended: by its session, by the API, or by the server that recovers."""
        work = self._work_of(transaction)
        if work is not None:
            work.was_rolled_back()
            del self._works[work.number]
        if not is_committed:
            self.undone(transaction, -1)
        self._journals.pop(id(transaction), None)

    def _work_of(self, transaction: Transaction) -> Work | None:
        for work in self._works.values():
            if work.transaction is transaction:
                return work
        return None


def _values(storage: Storage, row: Row) -> RowValues:
    return tuple(store(column.type, row.get(column.name)) for column in storage.columns)


def _insert(rows: Store, storage: Storage, row: Row) -> list[Undo]:
    values = _values(storage, row)
    rid = rows.insert(storage, values, replaces=True)
    for column, value in zip(storage.columns, values, strict=True):
        if is_serial(column):
            storage.last_serial = max(storage.last_serial, int(value or 0))
    return [lambda: rows.delete(storage, rid)]


def _found(rows: Store, storage: Storage, values: RowValues) -> int:
    """Return the number of a row that has these values, 0 if there is none."""
    same = " AND ".join(f"{name} IS ?" for name in storage.names)
    found = rows.find(f"SELECT rid FROM {storage.rows} WHERE {same} LIMIT 1", values)
    return int(found[0][0] or 0) if found else 0


def _update(rows: Store, storage: Storage, before: Row, after: Row) -> list[Undo]:
    old, new = _values(storage, before), _values(storage, after)
    rid = _found(rows, storage, old)
    if not rid:
        return []
    rows.update(storage, rid, new)
    return [lambda: rows.restore(storage, rid, old)]


def _delete(rows: Store, storage: Storage, row: Row) -> list[Undo]:
    old = _values(storage, row)
    rid = _found(rows, storage, old)
    rows.delete(storage, rid)
    return [lambda: rows.restore(storage, rid, old)] if rid else []


def _truncate(rows: Store, storage: Storage) -> list[Undo]:
    taken = rows.emptied(storage)
    return [lambda: rows.restore_all(storage, taken)]


_CHANGES: dict[int, Callable[..., list[Undo]]] = {
    codes.INSERT: _insert,
    codes.UPDAFT: _update,
    codes.DELETE: _delete,
    codes.TRUNCATE: _truncate,
}


def engine_of(server: EmulatedServer) -> Engine:
    """Return the engine of a server; it is made when it is first asked for."""
    with server.log.changed:
        if not isinstance(server.row_keeper, Engine):
            server.row_keeper = Engine(server)
        return server.row_keeper


def open_session(
    server: EmulatedServer,
    user: str,
    database: str,
    delimits_names: bool,
    locale: str = DEFAULT_LOCALE,
) -> Session:
    """Open a session of a user in a database; `locale` is what a database is created in."""
    return engine_of(server).open(user, database, delimits_names, locale)


def keep_rows(server: EmulatedServer) -> None:
    """Let SELECT find what is written by `server.transaction()` from now on."""
    server.keeps_rows = True
    engine_of(server)
