"""Find tables that match a pattern of option `table` and were created while the query runs.

Rule: a table that was found here, or that was dropped, never fails a query: it is skipped and logged
once per reason. Tables looked up when a query starts are checked as usual.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence

from informix_capture_client.catalog import Catalog, unqualified
from informix_capture_client.errors import ConnectionLost, DataLoss, InformixCdcError
from informix_capture_client.log_events import DISCOVERY_FAILED, TABLE_LEFT_OUT
from informix_capture_client.sql_names import TableName
from informix_cdc.clock import Clock
from informix_cdc.companions import Companion
from informix_cdc.options import SourceOptions
from informix_cdc.server import describe_tables, matched_tables, named_tables, open_catalog
from informix_cdc.snapshots import plan_snapshots
from informix_checkpoints.table_states import SnapshotState, TableState

logger = logging.getLogger("informix_cdc.connector.discovery")  # a logger name, not a module

_CAPTURED = TableState("", snapshot=SnapshotState(is_done=True))


class Discovery(Companion):
    """Knows the tables of a capture; searches for new ones once a minute.

    The thread of `begin` only sets `_found`; the capture uses everything else, over all its sessions.

    Args:
        options: as given by the user, with patterns.
        clock: of the capture.
    """

    def __init__(self, options: SourceOptions, clock: Clock) -> None:
        self._options, self._clock = options, clock
        self._choice = options.table_choice()
        self._seconds = options.stream.discovery_seconds if options.discovers_tables else 0
        self._due = clock() + self._seconds
        self._closed = threading.Event()
        self._names: tuple[TableName, ...] = ()
        self._found: tuple[TableName, ...] = ()
        self._joining: tuple[TableName, ...] = ()  # found, but not captured by a session yet
        self._failures: dict[TableName, tuple[float, int]] = {}  # next attempt at; number of failures
        self._logged: set[tuple[TableName | None, str]] = set()

    @property
    def is_over(self) -> bool:
        """Whether the session must end so that tables can join."""
        return bool(self._found)

    # called when the capture describes its tables

    def named(self, catalog: Catalog, *, may_change: bool, away: Collection[str] = ()) -> SourceOptions:
        """Return options that list the tables to capture by name.

        A reconnect keeps the previous tables; if they may change, dropped tables are removed, except
        those that are away for an ALTER, and found tables are added.

        Raises:
            BadOption: a pattern matches nothing when the query starts.
        """
        if not self._choice.patterns:
            return self._options
        if not self._names:
            self._names = named_tables(self._options, catalog)
        elif self._seconds and may_change:
            found, self._found = self._found, ()
            new = tuple(name for name in found if name not in self._names)
            self._names, self._joining = (*self._names, *new), (*self._joining, *new)
            for name in self._dropped(catalog):
                if unqualified(str(name)) in away:  # DROP and CREATE
                    continue
                self._leave_out(name, "it was dropped, or has become a table that is not logged.")
        return self._options.of_tables(self._names)

    def _dropped(self, catalog: Catalog) -> list[TableName]:
        """Return the tables that no longer match; none if no table would remain."""
        there = {*self._choice.names, *matched_tables(self._options, catalog)}
        dropped = [name for name in self._names if name not in there]
        return dropped if len(dropped) < len(self._names) else []

    def record_captured(self) -> None:
        """Record that a session over all tables has begun."""
        self._joining = ()

    def leaves_out(self, reason: InformixCdcError) -> bool:
        """Remove tables that may have caused a session to fail; return whether there are any.

        A lost connection is not caused by tables. A data loss is not caused by a joining table, unless
        that was dropped.
        """
        if isinstance(reason, ConnectionLost) or not self._seconds:
            return False
        if not isinstance(reason, DataLoss) and self._joining:
            for name in self._joining:
                _, count = self._failures.get(name, (0.0, 0))
                pause = self._seconds * 2 ** min(count, 10)
                self._failures[name] = self._clock() + pause, count + 1
                self._leave_out(name, str(reason))
            return True
        try:
            with open_catalog(self._options.connection) as catalog:
                return bool(self._dropped(catalog))
        except InformixCdcError:
            return False  # the session's own error is more precise

    def _leave_out(self, name: TableName, reason: str) -> None:
        self._names = tuple(each for each in self._names if each != name)
        self._joining = tuple(each for each in self._joining if each != name)
        self._log_left_out(name, reason)

    def _log_left_out(self, name: TableName, reason: str) -> None:
        if (name, reason) not in self._logged:
            self._logged.add((name, reason))
            TABLE_LEFT_OUT.log(logger, table=name, reason=reason)

    # in a separate thread

    def begin(self, is_wanted: Callable[[], bool]) -> None:
        """Search for tables in the background until `close`, while `is_wanted` returns true."""
        if self._seconds:
            self._closed = threading.Event()
            run = threading.Thread(
                target=self._run,
                args=(self._closed, is_wanted),
                name="informix-cdc discovery",
                daemon=True,
            )
            run.start()

    def close(self) -> None:
        """Stop searching; a request in flight is not awaited."""
        self._closed.set()

    def _run(self, closed: threading.Event, is_wanted: Callable[[], bool]) -> None:
        while not self._clock.wait(closed, max(0.0, self._due - self._clock())):
            self._due = self._clock() + self._seconds
            if not self._found and is_wanted():
                found = self._search()
                if not closed.is_set():
                    self._found = found

    def _search(self) -> tuple[TableName, ...]:
        """Return tables that may join; a table with which a session has failed is tried alone."""
        try:
            with open_catalog(self._options.connection) as catalog:
                matched = matched_tables(self._options, catalog)
                new = [name for name in matched if name not in self._names]
                found = self._that_can_be_captured(new, catalog)
        except (
            InformixCdcError
        ) as reason:  # if the server is down, the capture's own connection reports it
            if (None, str(reason)) not in self._logged:
                self._logged.add((None, str(reason)))
                DISCOVERY_FAILED.log(logger, reason=reason)
            return ()
        if fresh := tuple(name for name in found if name not in self._failures):
            return fresh
        due = (name for name in found if self._failures[name][0] <= self._clock())
        return tuple(sorted(due, key=lambda name: self._failures[name])[:1])

    def _that_can_be_captured(self, names: Sequence[TableName], catalog: Catalog) -> list[TableName]:
        if not names:
            return []
        try:
            self._require_capturable(names, catalog)
        except ConnectionLost:
            raise
        except InformixCdcError as reason:
            if len(names) == 1:
                self._log_left_out(names[0], str(reason))
                return []
            return [name for each in names for name in self._that_can_be_captured([each], catalog)]
        return [*names]

    def _require_capturable(self, names: Sequence[TableName], catalog: Catalog) -> None:
        """Check tables as at the start of the query, together with the captured ones.

        Raises:
            InformixCdcError: they cannot be captured, or their snapshot is not possible.
        """
        captured = self._names
        options = self._options.of_tables((*captured, *names))
        source = describe_tables(options, catalog)
        known = dict.fromkeys(source.names[: len(captured)], _CAPTURED)
        plan_snapshots(options, source, catalog, known)
