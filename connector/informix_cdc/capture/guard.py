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
from informix_capture_client.positions import Position, Witness, log_number, page_after, show
from informix_capture_client.stream import Answer, Silence, Starting
from informix_capture_client.transactions import other_log
from informix_cdc.capture.liveness import Liveness, LogFacts, Response, Stall
from informix_cdc.capture.server_watch import Watch
from informix_cdc.capture.state import CaptureState

# A log that ends below what was delivered may still be on its way to the disk.
WITNESS_SECONDS = 60.0

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
    source: str = ""  # what the stream was begun on
    is_replaying: Callable[[], bool] = lambda: False
    known_loss: Callable[[], DataLoss | None] = lambda: None
    _begun_at: float | None = field(default=None, init=False)
    _awaited: Witness | None = field(default=None, init=False)

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
            self._awaited = answer.assembler.awaited_witness
            self.liveness.hear(now, answer.reached)
            self.state.gauges.stalled_since = self.liveness.stalled_since

    def judge(self, mark: Position | None) -> None:
        """Judge what the server last said, once what was read is in the spool.

        Args:
            mark: the newest pair in the spool, if there is one.

        Raises:
            ConnectionLost: the stream stands still for the first time.
            ServerRefused: the stream stands still, and option `stalled` says fail.
            DataLoss: full row logging was switched off, a batch that was planned comes first; or the
                log ends below what was delivered.
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
            if facts.source not in (None, self.source):
                raise other_source(self.source, facts.source or "without these tables")
            raise row_logging_off(facts.unlogged_tables[0], mark)
        self._require_witness(now, facts.current)
        stall = self.liveness.verdict(now, facts)
        self.state.gauges.stalled_since = self.liveness.stalled_since
        if stall is not None:
            self._respond(stall)
        restart = self.state.spark.restart
        if mark and restart and (warning := self.liveness.lateness(restart, facts)):
            self._tell_late(restart, mark, facts.oldest, warning)

    def _require_witness(self, now: float, log_end: int) -> None:
        """Refuse a log that has long ended below what was delivered from it."""
        known = self._awaited
        if known is None or page_after(log_end) > known.commit or self._begun_at is None:
            return
        if now - self._begun_at >= WITNESS_SECONDS:
            raise other_log(known, f"the log ends at {show(log_end)}")

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


def other_source(begun_on: str, found: str) -> DataLoss:
    """Return the error for a server or tables that are not those of the stream."""
    return DataLoss(
        f"the stream was begun on source {begun_on}, but server, database and tables now make source"
        f" {found}.",
        "A table was dropped, re-created or altered, another server answers, or the options changed:"
        " start a new stream with a new checkpoint.",
        expected=begun_on,
        found=found,
        gap=Gap.OTHER_SOURCE,
    )


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
