"""The delay between a COMMIT record in the log and the release of the transaction's locks.

By default there is none. A real server writes and flushes the COMMIT record first and releases the
locks afterwards (Administrator's Guide, ids_admin_0417); with a synchronous secondary it waits for the
secondary's answer in between. During that time the transaction is in `systrans`, its rows are locked,
and LAST COMMITTED shows their old values, although every capture session can read its COMMTX.

    seconds     delays the answer to COMMIT, as a server with a secondary does
    hold()      answers COMMIT at once and keeps the locks until `release()`, for tests in one thread
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition


class LateRelease:
    """Which transactions have committed and keep their locks."""

    def __init__(self, changed: Condition) -> None:
        self._changed = changed
        self._waiting: dict[int, Callable[[], None]] = {}
        self._is_held = False
        self.seconds = 0.0

    @property
    def waiting(self) -> list[int]:
        """The numbers of the transactions that have committed and keep their locks."""
        with self._changed:
            return list(self._waiting)

    def hold(self) -> None:
        """Let transactions that commit from now on keep their locks until `release`."""
        with self._changed:
            self._is_held = True

    def release(self, *transaction_ids: int) -> None:
        """Let the locks of these transactions go, of all that wait if none is named."""
        with self._changed:
            for number in transaction_ids or list(self._waiting):
                self._waiting.pop(number)()
            self._changed.notify_all()

    def let_go(self) -> None:
        """Hold no more, and let all locks go that were held."""
        with self._changed:
            self._is_held = False
            self.release()

    @contextmanager
    def held(self) -> Iterator[LateRelease]:
        """Hold the locks of what commits in a block."""
        self.hold()
        try:
            yield self
        finally:
            self.let_go()

    def committed(self, transaction_id: int, finish: Callable[[], None]) -> None:
        """A COMMIT record is in the log: `finish` lets the locks go."""
        if not self._is_held and not self.seconds:
            finish()
        else:
            self._waiting[transaction_id] = finish

    def wait_for(self, transaction_id: int) -> None:
        """Return when a COMMIT is to be answered; the locks are gone then, unless they are held."""
        with self._changed:
            ends_at = time.monotonic() + self.seconds
            finish = self._waiting.get(transaction_id)  # another may have the slot before this wakes
            while finish and self._waiting.get(transaction_id) is finish and not self._is_held:
                if (left := ends_at - time.monotonic()) <= 0:
                    return self.release(transaction_id)
                self._changed.wait(left)
