"""End a capture that does not move, or that misses changes; warn of what is about to go wrong.

Rule: asked by the capture loop after every read; `liveness.py` judges, this raises or logs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from informix_cdc.capture_client.errors import DataLoss, ServerRefused
from informix_cdc.capture_client.positions import Position, show
from informix_cdc.connector.capture_state import CaptureState
from informix_cdc.connector.liveness import Liveness, LogFacts
from informix_cdc.connector.server_watch import Watch

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class CaptureGuard:
    """Watches one connection of a stream."""

    liveness: Liveness
    watch: Watch
    state: CaptureState
    clock: Callable[[], float] = time.monotonic

    def connect(self) -> None:
        """Begin to count the time of silence."""
        self.liveness.connect(self.clock())

    def excuse(self) -> None:
        """Take that the capture did not read."""
        self.liveness.excuse(self.clock())

    def check(self, reached: int | None, mark: Position | None) -> None:
        """Judge after a read.

        Args:
            reached: the highest sequence number seen; None when no bytes came.
            mark: the newest pair in the spool, if there is one.

        Raises:
            ConnectionLost: the server is silent, or its stream stands still for the first time.
            ServerRefused: the stream stands still, and option `stalled` says fail.
            DataLoss: full row logging was switched off.
        """
        now = self.clock()
        if reached is None:
            self.liveness.require_contact(now)
        else:
            self.liveness.hear(now, reached)
        if (facts := self.watch.facts) is not None:
            self._judge(now, facts, mark)

    def _judge(self, now: float, facts: LogFacts, mark: Position | None) -> None:
        if facts.unlogged_tables and mark is not None:
            raise row_logging_off(facts.unlogged_tables[0], mark)
        verdict = self.liveness.verdict(now, facts)
        self.state.stalls = self.liveness.stalls
        if isinstance(verdict, ServerRefused) and verdict.facts["is_warning"]:
            logger.warning("%s", verdict)
        elif verdict is not None:
            raise verdict
        if mark and (warning := self.liveness.lateness(mark.restart, facts)):
            logger.warning("%s; %s", warning, self._held_back())

    def _held_back(self) -> str:
        begin = self.state.oldest_open_begin
        if begin is None:
            return "nothing captured has changed for long: see option heartbeatTable"
        return f"the transaction that began at {show(begin)} is still open"


def row_logging_off(table: str, position: Position) -> DataLoss:
    """Return the error for a table whose full row logging is off."""
    return DataLoss(
        f"full row logging of {table} was switched off after {show(position.commit)}; what changed"
        " since is not in the log.",
        "Reload the table and start a new stream with a new checkpoint.",
        table=table,
        position=position.commit,
        is_gap=True,
    )
