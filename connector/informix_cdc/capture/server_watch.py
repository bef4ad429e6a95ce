"""Read the server's facts about its log at intervals, in a separate thread and connection.

Rule: it only reads; `liveness.py` decides. A failed request is repeated later: if the server is down,
the capture's own connection reports it.
"""

from __future__ import annotations

import itertools
import logging
import threading
from dataclasses import replace
from typing import Protocol

from informix_capture_client.catalog import Catalog, OpenSample
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    InformixCdcError,
    ServerRefused,
    UnsupportedColumn,
)
from informix_capture_client.log_events import LOG_NOT_WATCHED, RESTART_NOT_BOUNDED
from informix_cdc.capture.liveness import LogFacts
from informix_cdc.capture.restart_bound import RestartBound
from informix_cdc.clock import Clock
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables, describe_tables, open_catalog

logger = logging.getLogger("informix_cdc.connector.server_watch")  # a logger name, not a module

INTERVAL_SECONDS = 15.0
SOON_SECONDS = 1.0  # until the second request, for the facts that a new session needs
SAMPLE_SECONDS = 2.0  # between two samples of open transactions, while the restart position needs one


class LogWatch(Protocol):
    """Has the latest facts about the server's log."""

    @property
    def facts(self) -> LogFacts | None:
        """The server's latest facts; None before the first answer."""
        ...

    def close(self) -> None:
        """Stop reading."""


class ServerWatch:
    """Reads facts at once and every `INTERVAL_SECONDS`; in between, the open transactions.

    Args:
        options: where to connect.
        source: the tables whose full row logging is checked.
        clock: of the capture.
        bound: receives the open transactions, while that may advance the restart position.
    """

    def __init__(
        self,
        options: SourceOptions,
        source: SourceTables,
        clock: Clock,
        bound: RestartBound,
    ) -> None:
        self._bound = bound
        self.facts: LogFacts | None = None
        self._options = options
        self._source = source
        self._clock = clock
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="informix-cdc watch", daemon=True).start()

    def close(self) -> None:
        """Stop reading; a request in flight is not awaited."""
        self._closed.set()

    def _run(self) -> None:
        has_warned = False
        while not self._closed.is_set():
            try:
                self._ask_on()
            except InformixCdcError as reason:
                if not has_warned and not self._closed.is_set():
                    LOG_NOT_WATCHED.log(logger, reason=reason)
                has_warned = True
            self._clock.wait(self._closed, INTERVAL_SECONDS)

    def _ask_on(self) -> None:
        """Read facts over one connection until it breaks or the watch is closed."""
        with open_catalog(self._options.connection) as catalog:
            for wait_seconds in itertools.chain([SOON_SECONDS], itertools.repeat(INTERVAL_SECONDS)):
                facts = log_facts(catalog, self._source, self._clock())
                if facts.unlogged_tables:
                    # Checked before a loss is reported: another server, or a dropped table, has no row
                    # logging either.
                    facts = replace(facts, source=_source_now(self._options, catalog))
                self.facts = facts
                if self.facts.unlogged_tables:
                    wait_seconds = SOON_SECONDS  # a loss is reported only after a second request
                if self._sample_for(catalog, wait_seconds):
                    return

    def _sample_for(self, catalog: Catalog, seconds: float) -> bool:
        """Sample the open transactions while needed; return whether the watch was closed."""
        until = self._clock() + min(seconds, INTERVAL_SECONDS)
        while (left := until - self._clock()) > 0:
            if self._clock.wait(self._closed, min(SAMPLE_SECONDS, left)):
                return True
            if self._bound.is_wanted:
                offer_sample(catalog, self._bound)
        return False


def _source_now(options: SourceOptions, catalog: Catalog) -> str:
    try:
        return describe_tables(options, catalog).identity
    except (BadOption, AccessRefused, UnsupportedColumn):
        return ""


def log_facts(catalog: Catalog, source: SourceTables, now: float) -> LogFacts:
    """Read the facts once."""
    unlogged = [str(table.name) for table in catalog.without_row_logging(source.tables)]
    current, oldest = catalog.current_position(), catalog.oldest_position()
    return LogFacts(now, current, oldest, tuple(unlogged), catalog.clock(), catalog.log_space())


def offer_sample(catalog: Catalog, bound: RestartBound) -> OpenSample | None:
    """Read the open transactions; if the server does not list them, the restart position stays."""
    try:
        sample = catalog.open_sample()
    except (AccessRefused, ServerRefused) as reason:
        if not bound.is_refused:
            RESTART_NOT_BOUNDED.log(logger, reason=reason)
        bound.is_refused = True
        return None
    bound.offer(sample)
    return sample
