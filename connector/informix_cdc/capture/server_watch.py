"""Ask the server now and then how its log stands, on a connection and in a thread of their own.

Rule: it only asks; `liveness.py` decides. What cannot be asked now is asked later: the capture's own
connection tells when the server is gone.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable
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
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables, describe_tables, open_catalog

logger = logging.getLogger("informix_cdc.connector.server_watch")  # a name in logs, not a module

INTERVAL_SECONDS = 15.0
SOON_SECONDS = 1.0  # the second time: what a new session has to know
SAMPLE_SECONDS = 2.0  # between two looks at who is open, while the restart position waits for one


class LogWatch(Protocol):
    """Knows the latest facts of the server's log."""

    @property
    def facts(self) -> LogFacts | None:
        """What the server said last; None before the first answer."""
        ...

    def close(self) -> None:
        """Ask no more."""


class ServerWatch:
    """Asks at once, and every `INTERVAL_SECONDS` until it is closed; in between, who is open.

    Args:
        options: where to connect.
        source: the tables whose full row logging is looked at.
        clock: a monotonic clock.
        bound: wants to know who is open, as long as that may move the restart position on.
    """

    def __init__(
        self,
        options: SourceOptions,
        source: SourceTables,
        clock: Callable[[], float],
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
        """Ask no more; a question in flight is left to itself."""
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
            self._closed.wait(INTERVAL_SECONDS)

    def _ask_on(self) -> None:
        """Ask over one connection until it breaks or the watch is closed."""
        with open_catalog(self._options) as catalog:
            for wait_seconds in itertools.chain([SOON_SECONDS], itertools.repeat(INTERVAL_SECONDS)):
                facts = log_facts(catalog, self._source, self._clock())
                if facts.unlogged_tables:
                    # Before a loss is told: a server that was switched, or a table that was dropped,
                    # shows no row logging either.
                    facts = replace(facts, source=_source_now(self._options, catalog))
                self.facts = facts
                if self.facts.unlogged_tables:
                    wait_seconds = SOON_SECONDS  # it is asked twice before it is believed
                if self._sample_for(catalog, wait_seconds):
                    return

    def _sample_for(self, catalog: Catalog, seconds: float) -> bool:
        """Sample the open transactions while that is wanted; return whether the watch was closed."""
        until = time.monotonic() + min(seconds, INTERVAL_SECONDS)
        while (left := until - time.monotonic()) > 0:
            if self._closed.wait(min(SAMPLE_SECONDS, left)):
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
    """Ask once."""
    unlogged = [str(table.name) for table in catalog.without_row_logging(source.tables)]
    current, oldest = catalog.current_position(), catalog.oldest_position()
    return LogFacts(now, current, oldest, tuple(unlogged), catalog.clock(), catalog.log_space())


def offer_sample(catalog: Catalog, bound: RestartBound) -> OpenSample | None:
    """Ask who is open; where the server does not say, the restart position stays where it is."""
    try:
        sample = catalog.open_sample()
    except (AccessRefused, ServerRefused) as reason:
        if bound.is_on and not bound.is_refused:
            RESTART_NOT_BOUNDED.log(logger, reason=reason)
        bound.is_refused = True
        return None
    bound.offer(sample)
    return sample
