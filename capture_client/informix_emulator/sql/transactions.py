"""A session's transaction: BEGIN, COMMIT, ROLLBACK and savepoints.

Each takes the log's condition, so that a client may call it from any thread. The end of a transaction
wakes those that wait for its locks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from ..locks import NO_SESSION
from ..log.transactions import EmulatedTransaction
from ..sql_errors import sql_error
from .reading import SessionView
from .work import Work

WORK_NUMBERS = count(1)
NO_WAIT, FOREVER = 0.0, float("inf")


class SessionTransaction:
    """A session's transaction; what is open is known to what the session reads by."""

    def __init__(self, reading: SessionView, works: dict[int, Work]) -> None:
        self.reading = reading
        self.server = reading.server
        self.works = works
        self.patience = NO_WAIT  # how many seconds a statement waits for a lock
        self._keeps_locks: EmulatedTransaction | None = (
            None  # that has committed, and is not released yet
        )

    def begun(self, *, is_explicit: bool) -> Work:
        """Return a transaction that has changed nothing yet."""
        work = Work(
            next(WORK_NUMBERS),
            self.server,
            self.reading.store,
            is_explicit,
            self.reading.session,
            self.reading.database,
        )
        self.works[work.number] = work
        return work

    def session_of(self, work: int) -> int:
        """Return the session of a transaction; the Python API has none."""
        return self.works[work].session if work in self.works else NO_SESSION

    def settle(self, work: Work) -> None:
        """Forget a transaction that has ended, and wake who waits for its locks."""
        if work.is_over:
            if work.is_released:
                self.works.pop(work.number, None)
            elif work.transaction is not None:
                self._keeps_locks = work.transaction
            if self.reading.work is work:
                self.reading.work = None
            self.server.log.changed.notify_all()

    def wait_for_release(self) -> None:
        """Return when the last COMMIT is to be answered."""
        transaction, self._keeps_locks = self._keeps_locks, None
        if transaction is not None:
            transaction.wait_for_release()

    def is_ansi(self) -> bool:
        """Whether every statement is in a transaction without BEGIN WORK."""
        database = self.server.databases.get(self.reading.database)
        return database is not None and database.is_ansi

    def begin(self) -> None:
        """Begin a transaction; SqlError -535 if there is one, -256 if the database has no log."""
        with self.server.log.changed:
            database = self.server.databases.get(self.reading.database)
            if database is None:
                raise sql_error(-349)
            if not database.is_logged:
                raise sql_error(-256)
            if self.reading.work is not None and not self.reading.work.is_over:
                raise sql_error(-535)
            self.reading.work = self.begun(is_explicit=True)
            self.reading.work.log()

    def _open_work(self) -> Work:
        database = self.server.databases.get(self.reading.database)
        if database is not None and not database.is_logged:
            raise sql_error(-256)
        if self.reading.work is None or self.reading.work.is_over:
            raise sql_error(-255)
        return self.reading.work

    def commit(self) -> None:
        """Commit; SqlError -255 if there is no transaction."""
        self._finish(Work.commit)

    def rollback(self) -> None:
        """Roll back; SqlError -255 if there is no transaction."""
        self._finish(Work.rollback)

    def _finish(self, finish: Callable[[Work], None]) -> None:
        with self.server.log.changed:
            work = self._open_work()
            try:
                finish(work)
            finally:
                self.settle(work)

    def savepoint(self, name: str, *, is_unique: bool = False) -> None:
        """Mark a place in the transaction."""
        with self.server.log.changed:
            work = self._open_work()
            known = work.savepoints.get(name)
            if known is not None and (known[1] or is_unique):
                raise sql_error(-880, name)
            work.savepoints.pop(name, None)
            work.savepoints[name] = work.mark(), is_unique

    def rollback_to(self, name: str) -> None:
        """Undo what was done since a savepoint; later savepoints go."""
        with self.server.log.changed:
            work = self._open_work()
            self._forget_after(work, name)
            work.undo_to(work.savepoints[name][0])

    def release(self, name: str) -> None:
        """Forget a savepoint, and those that came after it."""
        with self.server.log.changed:
            work = self._open_work()
            self._forget_after(work, name)
            del work.savepoints[name]

    def _forget_after(self, work: Work, name: str) -> None:
        if name not in work.savepoints:
            raise sql_error(-881, name)
        names = list(work.savepoints)
        for later in names[names.index(name) + 1 :]:
            del work.savepoints[later]

    def close(self) -> None:
        """Roll back what is open and drop temporary tables, as when a client goes."""
        with self.server.log.changed:
            if self.reading.work is not None and not self.reading.work.is_over:
                self.rollback()
            for work in [w for w in self.works.values() if w.session == self.reading.session]:
                if work.transaction is None:  # of a cursor that was not closed
                    work.release()
                    self.settle(work)
            for storage in self.reading.finder.temporary.values():
                self.reading.store.forget(storage)
            self.reading.finder.temporary.clear()
            self.reading.is_closed = True
            database = self.server.databases.get(self.reading.database)
            if database is not None and database.is_buffered:
                self.server.log.flush()
