"""Locks as a server shows them, and lock waits.

Values only: the SQL engine holds the locks, `sysmaster` shows them, tests count the waits. Types are
those of `syslocks` (Administrator's Reference): IX and X, IS and S. A page counts as a row.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

_MOST_WAITS = 100_000
NO_SESSION = 0  # the owner of what the Python API changes


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock on a table, or on one of its rows."""

    database: str
    table: str
    type: str
    owner: int  # a session's number
    row: int = 0  # of the table as a whole
    waiter: int = NO_SESSION


@dataclass(frozen=True, slots=True)
class SqlSessionFacts:
    """Who a session is."""

    number: int
    user: str
    database: str


@dataclass(frozen=True, slots=True)
class LockWait:
    """That a statement met locks of others.

    Attributes:
        waiter: the session of the statement; NO_SESSION is the Python API, which asks for no locks.
        owners: the sessions that held the locks.
        is_refused: the session does not wait for locks, so that the statement was refused.
    """

    waiter: int
    owners: frozenset[int]
    table: str
    is_refused: bool = False


@dataclass(slots=True)
class Waiting:
    """Which sessions wait for locks now."""

    _of: dict[int, tuple[str, set[int]]] = field(default_factory=dict)  # table and works, by session

    def begin(self, session: int, table: str, owners: set[int]) -> None:
        """A session waits for locks that works have on a table."""
        self._of[session] = table, owners

    def end(self, session: int) -> None:
        """A session waits no more."""
        self._of.pop(session, None)

    def first(self, table: str, work: int) -> int:
        """Return the first session that waits for a work's lock on a table; 0: there is none."""
        return next(
            (s for s, (name, owners) in self._of.items() if name == table and work in owners), 0
        )


@dataclass(slots=True)
class LockWaits:
    """What has met a lock of somebody else's: the latest, of a server that runs for long."""

    seen: deque[LockWait] = field(default_factory=lambda: deque(maxlen=_MOST_WAITS))

    def for_locks_of(self, session: int) -> list[LockWait]:
        """Return who waited for, or was refused because of, a lock of one session."""
        return [wait for wait in self.seen if session in wait.owners]
