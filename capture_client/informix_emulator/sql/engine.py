"""The SQL engine of a server: its rows, its sessions' transactions, and changes by the Python API.

A change that `EmulatedServer.transaction()` logs is also made to the rows, if the server keeps rows or
SQL created the table. Other transactions find its rows locked until it ends. It does not wait for locks
itself, because tests of the log must not wait; a lock that it meets is counted in `lock_waits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from weakref import WeakValueDictionary

from ..answers import WireForm
from ..locks import NO_SESSION, HeldLock, LockWait, SqlSessionFacts
from ..log import codes
from ..log.transactions import EmulatedTransaction, NamedRow
from ..poses import DEFAULT_LOCALE
from ..server import EmulatedServer
from ..tables.tables import EmulatedTable
from .held_locks import locks_of, owners_of
from .language.values import DateForm, load, store
from .reading import SessionView
from .row_images import keep_images
from .session import Session
from .statements.rules import Rules
from .storage import RowValues, Storage, Store, is_serial
from .transactions import WORK_NUMBERS, SessionTransaction
from .work import Undo, Work

_FIRST_SESSION = 40  # lower numbers are the server's own threads': our choice


@dataclass(slots=True)
class _Journal:
    """How the changes of a transaction of the Python API are undone, and from which record on."""

    number: int = field(default_factory=WORK_NUMBERS.__next__)
    undo: list[tuple[int, Undo]] = field(default_factory=list)
    records: int = 0
    touched: set[Storage] = field(default_factory=set)


class Engine:
    """Rows and transactions of a server; `RowKeeper` of its log."""

    def __init__(self, server: EmulatedServer) -> None:
        self._server = server
        self._store = Store(server)
        self._works: dict[int, Work] = {}
        self._journals: dict[int, _Journal] = {}
        self._readings: WeakValueDictionary[int, SessionView] = WeakValueDictionary()
        self._session_numbers = count(_FIRST_SESSION)

    def open(
        self, user: str, database: str, delimits_names: bool, locale: str, date_form: str
    ) -> Session:
        """Open a session."""
        number = next(self._session_numbers)
        reading = SessionView(self._server, self._store, user, database, delimits_names, number)
        reading.date_form = DateForm(date_form) if date_form else None
        self._readings[number] = reading
        return Session(SessionTransaction(reading, self._works), locale)

    @property
    def store(self) -> Store:
        """Where the rows are."""
        return self._store

    def storage_of(self, table: EmulatedTable) -> Storage:
        """Return where the rows of a table are."""
        return self._store.of(table)

    def fill(self, storage: Storage, rows: Iterable[RowValues]) -> int:
        """Add rows without locks and log."""
        placeholders = "".join(", ?" for _ in storage.columns)
        self._store.run_many(f"INSERT INTO {storage.rows} VALUES (NULL{placeholders})", rows)
        ((found,),) = self._store.find(f"SELECT count(*) FROM {storage.rows}")
        storage.is_sql_made = True
        return int(found or 0)

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open."""
        return not self._works and not self._journals

    def changed(
        self, transaction: EmulatedTransaction, kind: int, table: EmulatedTable, *rows: NamedRow
    ) -> None:
        """A transaction has logged a row; those of sessions have changed it themselves."""
        if self._work_of(transaction) is not None:
            return
        storage = self._store.of(table)
        if not (self._server.keeps_rows or storage.is_sql_made):
            return
        journal = self._journals.setdefault(id(transaction), _Journal())
        journal.records = transaction.record_count
        journal.touched.add(storage)
        changes = _Changes(self._store, storage, journal.number)
        for undo in _CHANGES[kind](changes, *rows):
            journal.undo.append((journal.records, undo))
        self._record_lock_waits(storage, journal.number, changes.met)

    def undone(self, transaction: EmulatedTransaction, record_count: int) -> None:
        """What a transaction logged is void, but for so many records."""
        journal = self._journals.get(id(transaction))
        while journal is not None and journal.undo and journal.undo[-1][0] > record_count:
            journal.undo.pop()[1]()

    def ended(self, transaction: EmulatedTransaction, *, is_committed: bool) -> None:
        """A transaction has ended: by its session, by the API, or by the server that recovers."""
        work = self._work_of(transaction)
        if work is not None:
            end = work.release if is_committed else work.was_rolled_back
            end()
            del self._works[work.number]
        if not is_committed:
            self.undone(transaction, -1)
        journal = self._journals.pop(id(transaction), _Journal())
        for storage in journal.touched:
            self._store.unlock(storage, journal.number)

    def _record_lock_waits(self, storage: Storage, number: int, met: set[int]) -> None:
        """Count the locks of others that a change of the API would have waited for."""
        owners = frozenset(self._session_of(work) for work in met - {number})
        if owners:
            self._server.lock_waits.seen.append(
                LockWait(NO_SESSION, owners, str(storage.table.name), is_refused=True)
            )

    # --- what sysmaster shows -------------------------------------------------------------------

    def held_locks(self) -> list[HeldLock]:
        """Return all locks on tables and rows."""
        return locks_of(self._store, self._session_of)

    def open_sessions(self) -> list[SqlSessionFacts]:
        """Return who is connected."""
        known = sorted(self._readings.items())
        return [SqlSessionFacts(n, r.user, r.database) for n, r in known if not r.is_closed]

    def owner_of(self, transaction: EmulatedTransaction) -> int:
        """Return the session of a transaction."""
        work = self._work_of(transaction)
        return work.session if work else NO_SESSION

    def _session_of(self, number: int) -> int:
        return self._works[number].session if number in self._works else NO_SESSION

    def _work_of(self, transaction: EmulatedTransaction) -> Work | None:
        for work in self._works.values():
            if work.transaction is transaction:
                return work
        return None


@dataclass(slots=True)
class _Changes:
    """Changes rows for a transaction of the Python API."""

    store: Store
    storage: Storage
    number: int
    met: set[int] = field(default_factory=set)  # the works whose locks were in the way

    def lock(self, rid: int, committed: RowValues | None) -> None:
        """Lock a row for the transaction."""
        self.met |= owners_of(self.store, self.storage, {rid}, self.number)
        self.met |= self.storage.table_locks.keys()
        self.store.lock(self.storage, rid, self.number, committed)


def _values(storage: Storage, row: NamedRow) -> RowValues:
    return tuple(store(column.type, row.get(column.name)) for column in storage.columns)


def _insert(changes: _Changes, row: NamedRow) -> list[Undo]:
    rows, storage = changes.store, changes.storage
    values = _values(storage, row)
    rid = rows.insert(storage, values, replaces=True)
    changes.lock(rid, None)
    for column, value in zip(storage.columns, values, strict=True):
        if is_serial(column):
            storage.table.count_serial(column, int(value or 0))
    return [lambda: rows.delete(storage, rid)]


def _found(rows: Store, storage: Storage, values: RowValues) -> int:
    """Return the number of a row that has these values, 0 if there is none."""
    same = " AND ".join(f"{name} IS ?" for name in storage.names)
    found = rows.find(f"SELECT rid FROM {storage.rows} WHERE {same} LIMIT 1", values)
    return int(found[0][0] or 0) if found else 0


def _update(changes: _Changes, before: NamedRow, after: NamedRow) -> list[Undo]:
    rows, storage = changes.store, changes.storage
    old, new = _values(storage, before), _values(storage, after)
    rid = _found(rows, storage, old)
    if not rid:
        return []
    changes.lock(rid, old)
    rows.update(storage, rid, new)
    return [lambda: rows.restore(storage, rid, old)]


def _delete(changes: _Changes, row: NamedRow) -> list[Undo]:
    rows, storage = changes.store, changes.storage
    old = _values(storage, row)
    rid = _found(rows, storage, old)
    if not rid:
        return []
    changes.lock(rid, old)
    rows.delete(storage, rid)
    return [lambda: rows.restore(storage, rid, old)]


def _truncate(changes: _Changes) -> list[Undo]:
    rows, storage = changes.store, changes.storage
    taken = rows.emptied(storage)
    for rid, values in taken:
        changes.lock(rid, values)
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
    date_form: str = "",
) -> Session:
    """Open a session of a user in a database.

    `locale` is what a database is created in, `date_form` DBDATE of the login.
    """
    return engine_of(server).open(user, database, delimits_names, locale, date_form)


def row_as_stored(server: EmulatedServer, name: str, row: NamedRow, key: Iterable[str]) -> NamedRow:
    """Return the row with the same key as its table has it now: others may have changed or altered it.

    Without one, the table's columns from `row`, and their defaults; `row` itself if no rows are kept.
    """
    with server.log.changed:
        if not server.keeps_rows:
            return row
        engine, table = engine_of(server), server.table(name)
        storage = engine.storage_of(table)
        parts = {column: storage.place_of(column) for column in key}
        where = " AND ".join(f"c{place} IS ?" for place in parts.values())
        values = [store(storage.columns[place].type, row[column]) for column, place in parts.items()]
        sql = f"SELECT {', '.join(storage.names)} FROM {storage.rows} WHERE {where}"
        for found in engine.store.find(sql, values):
            pairs = [(c.name, c.type, value) for c, value in zip(storage.columns, found, strict=True)]
            now = {column: load(kind, value) for column, kind, value in pairs}
            same = {c: row[c] for c, kind, value in pairs if c in row and store(kind, row[c]) == value}
            return {**now, **same}  # what is the same keeps its Python type
        rules = Rules(SessionView(server, engine.store, server.owner, table.name.database, False))
        return {
            c.name: row[c.name] if c.name in row else load(c.type, rules.default(storage, c.name))
            for c in storage.columns
        }


def load_rows(server: EmulatedServer, name: str, rows: Iterable[NamedRow]) -> int:
    """Put rows into a table that the log knows nothing of, as an express load does; return how many."""
    with server.log.changed:
        storage = engine_of(server).storage_of(server.table(name))
        kinds = [(column.name, column.type) for column in storage.columns]
        stored = (tuple(store(kind, row.get(key)) for key, kind in kinds) for row in rows)
        return engine_of(server).fill(storage, stored)


def pack_rows(server: EmulatedServer, name: str, form: WireForm) -> None:
    """Have the rows of a table ready as a wire has them; those that are changed later are not."""
    with server.log.changed:
        engine = engine_of(server)
        keep_images(engine.store, engine.storage_of(server.table(name)), form)


def keep_rows(server: EmulatedServer) -> None:
    """Let SELECT find what is written by `server.transaction()` from now on."""
    server.keeps_rows = True
    engine_of(server)
