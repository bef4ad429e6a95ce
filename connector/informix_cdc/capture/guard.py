"""End a capture that does not move, or that misses changes; warn of what is about to go wrong.

Rule: asked by the capture loop after every read; `liveness.py` decides, this raises or logs. One guard
watches one connection: it counts the time of silence from when it is made.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from informix_capture_client.catalog import is_beyond_end
from informix_capture_client.errors import NEW_STREAM, ConnectionLost, DataLoss, Gap, InformixCdcError
from informix_capture_client.log_events import (
    LOG_UNREADABLE,
    RESTART_POSITION_LATE,
    STREAM_STALLED,
)
from informix_capture_client.positions import DeliveredCommit, Position, log_number, page_after, show
from informix_capture_client.stream import Answer, Silence, Starting
from informix_capture_client.transactions import other_log, replay_failed
from informix_cdc.capture.liveness import Liveness, LogFacts, Response, Stall
from informix_cdc.capture.server_watch import LogWatch
from informix_cdc.capture.state import CaptureState
from informix_cdc.table_changes import other_source

# A log that ends below what was delivered may still be on its way to the disk.
WITNESS_SECONDS = 60.0

logger = logging.getLogger("informix_cdc.connector.capture_guard")  # a name in logs, not a module


class Guard(Protocol):
    """Ends a capture that does not move; `CaptureGuard` does."""

    def reset_deadlines(self) -> None:
        """Reset the silence timer: reading was paused on purpose."""

    def watching_read(self) -> AbstractContextManager[None]:
        """Watch a read of the session, and what it brings."""
        ...

    def on_read(self, answer: Answer) -> None:
        """Record what the stream has answered."""

    def check(self, high_watermark: Position | None) -> None:
        """Check what the server says of its log, once what was read is in the spool."""


class Unguarded:
    """Lets everything pass."""

    def reset_deadlines(self) -> None:
        """Do nothing."""

    def watching_read(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def on_read(self, answer: Answer) -> None:
        """Do nothing."""

    def check(self, high_watermark: Position | None) -> None:
        """Do nothing."""


@dataclass(slots=True)
class CaptureGuard:
    """Watches one connection of a stream.

    Args:
        liveness: of the stream, over all its connections.
        watch: knows what the server says of its log.
        state: of the capture.
        clock: a monotonic clock.
        source: the digest of server, database and tables of the stream.
        expected: the COMMTX that a planned batch ends at, while it is captured again.
        scout_reads: how often the log was read for older transactions, before there is a session.
        known_loss: what is to be raised once no planned batch stands before it.
        reads_from: whether a session of its own that begins at a position is given records there.
        may_lose: whether the stream may go on behind what it cannot read (failOnDataLoss=false).
    """

    liveness: Liveness
    watch: LogWatch
    state: CaptureState
    clock: Callable[[], float] = time.monotonic
    source: str = ""
    expected: Callable[[], int | None] = lambda: None
    probe_reads: Callable[[], int] = lambda: 0
    known_loss: Callable[[], DataLoss | None] = lambda: None
    reads_from: Callable[[int], bool] = lambda _position: False
    may_lose: bool = False
    _begun_at: float | None = field(default=None, init=False)
    _awaited: DeliveredCommit | None = field(default=None, init=False)
    _probe_reads: int = field(default=0, init=False)
    _unlogged_at: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        spool = self.state.spool
        self.liveness.connect(self.clock(), spool.manifest.high_watermark.restart if spool else 0)

    def reset_deadlines(self) -> None:
        """Reset the silence timer: reading was paused on purpose."""
        self.liveness.reset_deadlines(self.clock())

    @contextmanager
    def watching_read(self) -> Iterator[None]:
        """Say why the session was lost in a block, where more is known than its error says.

        A silence of any other connection says nothing of the log.

        Raises:
            ConnectionLost: as it came, or with what is known of the stall.
            DataLoss: no session can read the log there, and the stream may go on behind that.
        """
        try:
            yield
        except ConnectionLost as reason:
            stall = self.liveness.silence(self._facts()) if reason.is_silence else None
            explained = self._answer(stall) if stall is not None else None
            if explained is not None:
                raise explained from reason
            raise

    def on_read(self, answer: Answer) -> None:
        """Record what the stream has answered, before anything is done with it that takes time.

        Raises:
            ConnectionLost: the server is silent.
        """
        now = self.clock()
        if isinstance(answer, Starting):
            self._check_start(now)
            return
        if self._begun_at is None:
            self._begun_at = now  # what was said before, row logging for one, may have changed since
        if isinstance(answer, Silence):
            self.liveness.require_contact(now, answer.empty_reads)
        else:
            self._awaited = answer.assembler.awaited_commit
            self.liveness.on_read(now, answer.reached)
            self.state.gauges.stalled_since = self.liveness.stalled_since

    def _check_start(self, now: float) -> None:
        """Check the time before there is a session: connecting is no silence, a read that hangs is."""
        reads = self.probe_reads()
        if not reads or reads != self._probe_reads:
            self.liveness.connect(now)
        else:
            self.liveness.require_contact(now)
        self._probe_reads = reads

    def check(self, high_watermark: Position | None) -> None:
        """Check what the server last said, once what was read is in the spool.

        Args:
            high_watermark: the newest pair in the spool, if there is one.

        Raises:
            ConnectionLost: the stream stands still for the first time, or a planned batch does.
            ServerRefused: the stream stands still, and option `stalled` says fail.
            DataLoss: full row logging was switched off, where no planned batch comes first; the log
                ends below what was delivered, or long before a planned batch does; or no session can
                read it, and the stream may go on behind that.
        """
        if self._begun_at is None:
            return  # the session is not open yet
        facts = self._facts()
        if (expected := self.expected()) is not None:
            self._check_replay(expected, facts)
        elif (loss := self.known_loss()) is not None:
            raise loss
        elif facts is not None:
            self._check_facts(facts, high_watermark)

    def _facts(self) -> LogFacts | None:
        """Return what the server has said since the session began."""
        facts, begun_at = self.watch.facts, self._begun_at
        is_known = facts is not None and begun_at is not None and facts.asked_at > begun_at
        return facts if is_known else None

    def _check_replay(self, expected: int, facts: LogFacts | None) -> None:
        if facts is not None and is_beyond_end(expected, facts.current):
            raise replay_failed(expected, f"the server's log ends at {show(facts.current)}")
        stall = self.liveness.replay_stall(self.clock(), expected, facts)
        if stall is not None and (error := self._answer(stall)) is not None:
            raise error

    def _check_facts(self, facts: LogFacts, high_watermark: Position | None) -> None:
        if facts.unlogged_tables and high_watermark is not None:
            self._check_unlogged(facts, high_watermark)
        else:
            self._unlogged_at = None
        self._check_continuity(self.clock(), facts.current)
        stall = self.liveness.verdict(self.clock(), facts)
        self.state.gauges.stalled_since = self.liveness.stalled_since
        if stall is not None and (error := self._answer(stall)) is not None:
            raise error
        restart = self.state.spark.restart
        if high_watermark and restart and (warning := self.liveness.lateness(restart, facts)):
            self._log_late_restart(restart, high_watermark, facts.oldest, warning)

    def _check_unlogged(self, facts: LogFacts, high_watermark: Position) -> None:
        """Refuse to go on when the server has said so twice: the checkpoint will remember it."""
        if facts.source not in (None, self.source):
            raise other_source(self.source, facts.source or "without these tables")
        if self._unlogged_at is not None and facts.asked_at > self._unlogged_at:
            raise row_logging_off(facts.unlogged_tables[0], high_watermark)
        if self._unlogged_at is None:
            self._unlogged_at = facts.asked_at

    def _check_continuity(self, now: float, log_end: int) -> None:
        """Refuse a log that has long ended below what was delivered from it."""
        known = self._awaited
        if known is None or page_after(log_end) > known.commit or self._begun_at is None:
            return
        if now - self._begun_at >= WITNESS_SECONDS:
            raise other_log(known, f"the log ends at {show(log_end)}")

    def _answer(self, stall: Stall) -> InformixCdcError | None:
        """Return the error that a stall ends the session or the query with, or tell of it."""
        if stall.response is Response.REOPEN:
            self.state.counters.stalls += 1  # once for each stall
            return stall.error()
        if stall.next_log is not None and self.reads_from(stall.next_log):
            # What Spark has planned is there: no late change is mistaken for what cannot be read.
            if self.liveness.record_passed_by(self.clock()) or stall.expected_commit is not None:
                return self._answer_unreadable(stall.proven())
            if not stall.is_silent:
                return None  # it may yet come; the next look is the last
            stall = stall.once_more()
        if stall.response is Response.FAIL:
            return stall.error()
        if self.liveness.is_news(stall):
            STREAM_STALLED.log(logger, stream=self.state.stream, reason=stall.error())
        return None

    def _answer_unreadable(self, stall: Stall) -> InformixCdcError | None:
        if self.may_lose and self.state.spool is not None:
            return stall.loss()
        if self.liveness.is_news(stall):
            LOG_UNREADABLE.log(
                logger,
                stream=self.state.stream,
                position=show(stall.place),
                current=show(stall.current or 0),
                reason=stall.error(),
            )
        return None if stall.response is Response.WARN else stall.error()

    def _log_late_restart(
        self, restart: int, high_watermark: Position, oldest: int, warning: str
    ) -> None:
        gauges, bound = self.state.gauges, self.state.restart_bound
        begin, reason = _what_delays(restart, high_watermark, gauges.oldest_open_begin, bound.is_wanted)
        RESTART_POSITION_LATE.log(
            logger,
            stream=self.state.stream,
            restart=show(restart),
            oldest=show(oldest),
            held_by=None if begin is None else show(begin),
            reason=f"{warning}; {reason}",
        )


def _what_delays(
    restart: int, high_watermark: Position, begin: int | None, is_bounded: bool
) -> tuple[int | None, str]:
    """Return what holds a restart position back: the BEGINTX, if a transaction does, and a reason."""
    if log_number(restart) < log_number(high_watermark.restart):
        return None, f"Spark has not taken what was read since, up to {show(high_watermark.commit)}"
    if begin is None and is_bounded:
        return None, (
            "a transaction that the server lists as open may have begun there (sysmaster:systrans,"
            " tx_logbeg), or the stream has not yet read what was written before it was listed"
        )
    if begin is None:
        return None, "nothing captured has changed for long: see option heartbeatTable"
    return begin, f"the transaction that began at {show(begin)} is still open"


def row_logging_off(table: str, position: Position) -> DataLoss:
    """Return the error for a table whose full row logging is off."""
    return DataLoss(
        f"full row logging of {table} was switched off after {show(position.commit)}; what changed"
        " since is not in the log.",
        f"To load the table again, {NEW_STREAM}. If informix-cdc release --receipt switched it off,"
        " nothing is lost: ALTER the table, run informix-cdc acquire with that receipt, and start the"
        " query with option schemaChange. It is also off on a server that was set up anew, such as an"
        " emulator that was started again.",
        table=table,
        position=position.commit,
        gap=Gap.ROW_LOGGING_OFF,
    )
