"""What ends a query while SQLite works on it: its client, or a limit of time.

Rule: only queries are watched, never what undoes or ends a transaction. The server's lock is held
meanwhile, so a query that would hold it for long (a join without a condition) is refused.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..answers import Check
from ..sql_errors import SqlError, sql_error

logger = logging.getLogger("informix_cdc.emulator")
STEPS_BETWEEN_LOOKS = 100_000  # of SQLite's machine: some milliseconds
LONGEST_QUERY_SECONDS = 10.0  # our choice: captures of other clients wait as long


class Watch:
    """Looks after the query that SQLite works on."""

    def __init__(self) -> None:
        self.error: BaseException | None = None  # SQLite only says that there was one
        self._check: Check | None = None
        self._ends_at: float | None = None

    @contextmanager
    def by(self, check: Check) -> Iterator[None]:
        """Let what `check` raises end the queries of a block."""
        former, self._check = self._check, check
        try:
            yield
        finally:
            self._check = former

    @contextmanager
    def over_query(self) -> Iterator[None]:
        """Watch one query."""
        self.error, self._ends_at = None, time.monotonic() + LONGEST_QUERY_SECONDS
        try:
            yield
        finally:
            self._ends_at = None

    def look(self) -> int:
        """Tell SQLite whether to stop."""
        if self._ends_at is None:
            return 0
        try:
            if self._check is not None:
                self._check()
            if time.monotonic() > self._ends_at:
                logger.warning("query_too_long seconds=%s", LONGEST_QUERY_SECONDS)
                raise sql_error(-213)
        except (SqlError, EOFError, OSError) as error:
            self.error = error
            return 1
        return 0
