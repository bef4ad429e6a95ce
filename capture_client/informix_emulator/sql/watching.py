"""Limits of a running SQLite query: its client's cancel, and a maximum time.

Only queries are watched, never the undo or end of a transaction. The server's lock is held meanwhile,
so a query that would hold it for long (a join without a condition) is refused. SQLite counts only its
own steps, so our functions check the time as well: a slow function is a single step.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from sys import getsizeof

from ..answers import CheckStatement
from ..sql_errors import SqlError, sql_error
from .language.values import Stored

logger = logging.getLogger("informix_cdc.emulator")
STEPS_BETWEEN_LOOKS = 100_000  # of SQLite's machine: some milliseconds
LONGEST_QUERY_SECONDS = 10.0  # our choice: captures of other clients wait as long
SECONDS_BETWEEN_LOOKS = 0.05
_ROWS_AT_ONCE = 16


class QueryWatch:
    """Looks after the query that SQLite works on."""

    def __init__(self) -> None:
        self.error: BaseException | None = None  # SQLite only says that there was one
        self._check: CheckStatement | None = None
        self._ends_at: float | None = None
        self._looks_at = math.inf  # from when on a function looks

    @contextmanager
    def by(self, check: CheckStatement) -> Iterator[None]:
        """Let what `check` raises end the queries of a block."""
        previous, self._check = self._check, check
        try:
            yield
        finally:
            self._check = previous

    @contextmanager
    def over_query(self) -> Iterator[None]:
        """Watch one query."""
        now = time.monotonic()
        self.error, self._ends_at = None, now + LONGEST_QUERY_SECONDS
        self._looks_at = now + SECONDS_BETWEEN_LOOKS
        try:
            yield
        finally:
            self._ends_at, self._looks_at = None, math.inf

    def look_from_function(self) -> None:
        """Raise what ends the query; called by each of our functions, and looks now and then."""
        if (now := time.monotonic()) >= self._looks_at:
            self._looks_at = now + SECONDS_BETWEEN_LOOKS
            if self.check_time() and self.error is not None:
                raise self.error

    def check_time(self) -> int:
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


def fetched(cursor: sqlite3.Cursor, most_bytes: int) -> list[tuple[Stored, ...]]:
    """Return all rows; SqlError -208 if they take more bytes."""
    rows: list[tuple[Stored, ...]] = []
    size = 0
    while part := cursor.fetchmany(_ROWS_AT_ONCE):
        rows += part
        size += sum(getsizeof(row) + sum(map(getsizeof, row)) for row in part)
        if size > most_bytes:
            raise sql_error(-208)
    return rows
