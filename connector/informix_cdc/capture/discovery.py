"""Find tables that match a pattern of option `table` and were created while the query runs.

Rule: a query is never ended by a table that was found here, or that was dropped: it is left out, and
logged once for each reason. What is looked up when a query starts is refused as ever.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import ConnectionLost, DataLoss, InformixCdcError
from informix_capture_client.log_events import DISCOVERY_FAILED, TABLE_LEFT_OUT
from informix_capture_client.sql_names import TableName
from informix_cdc.companions import Companion
from informix_cdc.options import SourceOptions
from informix_cdc.server import describe_tables, matched_tables, named_tables, open_catalog
from informix_cdc.snapshots import plan_snapshots
from informix_checkpoints.table_states import SnapshotState, TableState

logger = logging.getLogger("informix_cdc.connector.discovery")  # a name in logs, not a module

_CAPTURED = TableState("", snapshot=SnapshotState(is_done=True))


class Discovery(Companion):
    """Knows which tables a capture has; looks for more every `discoverySeconds`.

    The thread of `begin` only sets `_found`; all else belongs to the capture, over all its sessions.

    Args:
        options: as the user gave them, with patterns.
        clock: a monotonic clock.
    """

    def __init__(self, options: SourceOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options, self._clock = options, clock
        self._choice = options.table_choice()
        self._seconds = options.discovery_seconds if self._choice.patterns else 0
        self._due = clock() + self._seconds
        self._closed = threading.Event()
        self._names: tuple[TableName, ...] = ()
        self._found: tuple[TableName, ...] = ()
        self._joining: tuple[TableName, ...] = ()  # found, and no session has captured them yet
        self._failures: dict[TableName, tuple[float, int]] = {}  # not again before; how often
        self._logged: set[tuple[TableName | None, str]] = set()

    @property
    def is_over(self) -> bool:
        """Whether there are tables for which the session is to end."""
        return bool(self._found)

    # the capture describes its tables

    def named(self, catalog: Catalog, *, may_change: bool) -> SourceOptions:
        """Return options that name the tables to capture one by one.

        A reconnect keeps the tables of before; if they may change, without those that were dropped,
        and with those that were found.

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
                self._leave_out(name, "it was dropped, or has become a table that is not logged.")
        return self._options.of_tables(self._names)

    def _dropped(self, catalog: Catalog) -> list[TableName]:
        """Return the tables that match no more; none if no table would be left."""
        there = {*self._choice.names, *matched_tables(self._options, catalog)}
        dropped = [name for name in self._names if name not in there]
        return dropped if len(dropped) < len(self._names) else []

    def record_captured(self) -> None:
        """Record that a session over all tables has begun."""
        self._joining = ()

    def leaves_out(self, reason: InformixCdcError) -> bool:
        """Leave out tables that may be why a session failed; tell whether there are any.

        A lost connection says nothing of tables. A loss of data says nothing of one that is joining,
        unless it was dropped.
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
            with open_catalog(self._options) as catalog:
                return bool(self._dropped(catalog))
        except InformixCdcError:
            return False  # what ended the session says more

    def _leave_out(self, name: TableName, reason: str) -> None:
        self._names = tuple(each for each in self._names if each != name)
        self._joining = tuple(each for each in self._joining if each != name)
        self._log_left_out(name, reason)

    def _log_left_out(self, name: TableName, reason: str) -> None:
        if (name, reason) not in self._logged:
            self._logged.add((name, reason))
            TABLE_LEFT_OUT.log(logger, table=name, reason=reason)

    # in a thread of its own

    def begin(self, is_wanted: Callable[[], bool]) -> None:
        """Look for tables while a session runs, until `close`; not while it is not wanted."""
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
        """Look no more; a question in flight is left to itself."""
        self._closed.set()

    def _run(self, closed: threading.Event, is_wanted: Callable[[], bool]) -> None:
        while not closed.wait(max(0.0, self._due - self._clock())):
            self._due = self._clock() + self._seconds
            if not self._found and is_wanted():
                found = self._search()
                if not closed.is_set():
                    self._found = found

    def _search(self) -> tuple[TableName, ...]:
        """Return tables that may join; what a session has failed with once is tried alone."""
        try:
            with open_catalog(self._options) as catalog:
                matched = matched_tables(self._options, catalog)
                new = [name for name in matched if name not in self._names]
                found = self._that_can_be_captured(new, catalog)
        except InformixCdcError as reason:  # the capture's own connection shows when a server is gone
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
        """Refuse tables as a start of the query would: the others are described with them.

        Raises:
            InformixCdcError: they cannot be captured, or their snapshot cannot be made.
        """
        captured = self._names
        options = self._options.of_tables((*captured, *names))
        source = describe_tables(options, catalog)
        known = dict.fromkeys(source.names[: len(captured)], _CAPTURED)
        plan_snapshots(options, source, catalog, known)
