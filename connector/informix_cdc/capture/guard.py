"""End a capture that does not move, or that misses changes; warn of what is about to go wrong.

Rule: asked by the capture loop after every read; `liveness.py` judges, this raises or logs. One guard
watches one connection: it counts the time of silence from when it is made.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from informix_capture_client.errors import DataLoss, Gap
from informix_capture_client.log_events import RESTART_POSITION_LATE, STREAM_STALLED
from informix_capture_client.positions import Position, log_number, show
from informix_capture_client.stream import Answer, Silence, Starting
from informix_cdc.capture.liveness import Liveness, LogFacts, Response, Stall
from informix_cdc.capture.server_watch import Watch
from informix_cdc.capture.state import CaptureState

logger = logging.getLogger("informix_cdc.connector.capture_guard")  # a name in logs, not a module


class Guard(Protocol):
    """Ends a capture that does not move; `CaptureGuard` does."""

    def excuse(self) -> None:
        """Reset the silence timer: reading was paused on purpose."""

    def hear(self, answer: Answer) -> None:
        """Note what the stream has answered."""

    def judge(self, mark: Position | None) -> None:
        """Judge once what was read is in the spool."""


class Unguarded:
    """Lets everything pass."""

    def excuse(self) -> None:
        """Do nothing."""

    def hear(self, answer: Answer) -> None:
        """Do nothing."""

    def judge(self, mark: Position | None) -> None:
        """Do nothing."""


@dataclass(slots=True)
class CaptureGuard:
    """Watches one connection of a stream."""

    liveness: Liveness
    watch: Watch
    state: CaptureState
    clock: Callable[[], float] = time.monotonic
    is_replaying: Callable[[], bool] = lambda: False
    known_loss: Callable[[], DataLoss | None] = lambda: None
    _begun_at: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.liveness.connect(self.clock())

    def excuse(self) -> None:
        """Reset the silence timer: reading was paused on purpose."""
        self.liveness.excuse(self.clock())

    def hear(self, answer: Answer) -> None:
        """Note what the stream has answered, before anything is done with it that takes time.

        Raises:
            ConnectionLost: the server is silent.
        """
        now = self.clock()
        if isinstance(answer, Starting):
            self.liveness.connect(now)  # connecting, or looking for older transactions, is no silence
            return
        if self._begun_at is None:
            self._begun_at = now  # what was said before, row logging for one, may have changed since
        if isinstance(answer, Silence):
            self.liveness.require_contact(now)
        else:
            self.liveness.hear(now, answer.reached)
            self.state.gauges.stalled_since = self.liveness.stalled_since

    def judge(self, mark: Position | None) -> None:
        """Judge what the server last said, once what was read is in the spool.

        Args:
            mark: the newest pair in the spool, if there is one.

        Raises:
            ConnectionLost: the stream stands still for the first time.
            ServerRefused: the stream stands still, and option `stalled` says fail.
            DataLoss: full row logging was switched off; a batch that was planned comes first.
        """
        if self._begun_at is None:
            return  # the session is not open yet
        if (loss := self.known_loss()) is not None and not self.is_replaying():
            raise loss
        facts = self.watch.facts
        if facts is not None and facts.asked_at > self._begun_at:
            self._judge(self.clock(), facts, mark)

    def _judge(self, now: float, facts: LogFacts, mark: Position | None) -> None:
        if facts.unlogged_tables and mark is not None and not self.is_replaying():
            raise row_logging_off(facts.unlogged_tables[0], mark)
        stall = self.liveness.verdict(now, facts)
        self.state.gauges.stalled_since = self.liveness.stalled_since
        if stall is not None:
            self._respond(stall)
        restart = self.state.spark.restart
        if mark and restart and (warning := self.liveness.lateness(restart, facts)):
            self._tell_late(restart, mark, facts.oldest, warning)

    def _respond(self, stall: Stall) -> None:
        self.state.counters.stalls += stall.response is Response.REOPEN  # once for each stall
        if stall.response is not Response.WARN:
            raise stall.error()
        STREAM_STALLED.log(logger, stream=self.state.stream, reason=stall.error())

    def _tell_late(self, restart: int, mark: Position, oldest: int, warning: str) -> None:
        begin, reason = _held_back(restart, mark, self.state.gauges.oldest_open_begin)
        RESTART_POSITION_LATE.log(
            logger,
            stream=self.state.stream,
            restart=show(restart),
            oldest=show(oldest),
            held_by=None if begin is None else show(begin),
            reason=f"{warning}; {reason}",
        )


def _held_back(restart: int, mark: Position, begin: int | None) -> tuple[int | None, str]:
    """Return what holds a restart position back: the BEGINTX, if a transaction does, and a reason."""
    if log_number(restart) < log_number(mark.restart):
        return None, f"Spark has not taken what was read since, up to {show(mark.commit)}"
    if begin is None:
        return None, "nothing captured has changed for long: see option heartbeatTable"
    return begin, f"the transaction that began at {show(begin)} is still open"


def row_logging_off(table: str, position: Position) -> DataLoss:
    """Return the error for a table whose full row logging is off."""
    return DataLoss(
        f"full row logging of {table} was switched off after {show(position.commit)}; what changed"
        " since is not in the log.",
        "Reload the table and start a new stream with a new checkpoint.",
        table=table,
        position=position.commit,
        gap=Gap.ROW_LOGGING_OFF,
    )
