"""End a capture that stalls or misses changes; warn about imminent problems.

Rule: the capture loop calls it after every read; `liveness.py` decides, this module raises or logs. One
guard watches one connection, and measures silence from its creation.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
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

# The end of a log that is before the last delivered commit may not be on disk yet.
WITNESS_SECONDS = 60.0
_MOST_NAMES = 5  # of tables in a message

logger = logging.getLogger("informix_cdc.connector.capture_guard")  # a logger name, not a module


class Guard(Protocol):
    """Ends a capture that stalls; implemented by `CaptureGuard`."""

    def reset_deadlines(self) -> None:
        """Reset the silence timer: reading was paused on purpose."""

    def watching_read(self) -> AbstractContextManager[None]:
        """Watch a read of the session."""
        ...

    def on_read(self, answer: Answer) -> None:
        """Record an answer of the stream."""

    def check(self, high_watermark: Position | None) -> None:
        """Check what the server reports about its log, once the data read so far is in the spool."""


class Unguarded:
    """Accepts everything."""

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
        watch: has the server's latest facts about its log.
        state: of the capture.
        clock: a monotonic clock.
        source: digest of the stream's server, database and tables.
        expected: COMMTX at which a planned batch ends, while it is captured again.
        probe_reads: number of reads for older transactions before there is a session.
        known_loss: data loss to raise after the planned batch, if any.
        reads_from: whether another session that begins at a position receives records there.
        may_lose: whether the stream may continue after unreadable log (onDataLoss=continue).
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
        """Replace the error of a lost session by a more specific one, if possible.

        Silence of another connection does not concern the log.

        Raises:
            ConnectionLost: unchanged, or with details of the stall.
            DataLoss: no session can read the log there, and the stream may continue after that.
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
        """Record an answer of the stream, before anything else is done with it.

        Raises:
            ConnectionLost: the server is silent.
        """
        now = self.clock()
        if isinstance(answer, Starting):
            self._check_start(now)
            return
        if self._begun_at is None:
            self._begun_at = now  # earlier facts, such as row logging, may have changed since
        if isinstance(answer, Silence):
            self.liveness.require_contact(now, answer.empty_reads)
        else:
            self._awaited = answer.assembler.awaited_commit
            self.liveness.on_read(now, answer.reached)
            self.state.gauges.stalled_since = self.liveness.stalled_since

    def _check_start(self, now: float) -> None:
        """Check the time before there is a session: connecting is not silence, a read that hangs is."""
        reads = self.probe_reads()
        if not reads or reads != self._probe_reads:
            self.liveness.connect(now)
        else:
            self.liveness.require_contact(now)
        self._probe_reads = reads

    def check(self, high_watermark: Position | None) -> None:
        """Check the server's latest facts, once the data read so far is in the spool.

        Args:
            high_watermark: newest position in the spool, if there is one.

        Raises:
            ConnectionLost: the stream has stalled for the first time, or a planned batch has stalled.
            ServerRefused: two sessions have ended in silence at the same position.
            DataLoss: full row logging was switched off, and no planned batch comes first; the log ends
                before the last delivered commit, or long before the end of a planned batch; or no
                session can read it, and the stream may continue after that.
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
        """Return the server's facts since the session began."""
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
        restart = self.state.reader.taken.restart
        if high_watermark and restart and (warning := self.liveness.lateness(restart, facts)):
            self._log_late_restart(restart, high_watermark, facts.oldest, warning)

    def _check_unlogged(self, facts: LogFacts, high_watermark: Position) -> None:
        """Raise the loss when the server has reported it twice: it is recorded in the checkpoint."""
        if facts.source not in (None, self.source):
            raise other_source(self.source, facts.source or "without these tables")
        if self._unlogged_at is not None and facts.asked_at > self._unlogged_at:
            raise row_logging_off(facts.unlogged_tables, high_watermark)
        if self._unlogged_at is None:
            self._unlogged_at = facts.asked_at

    def _check_continuity(self, now: float, log_end: int) -> None:
        """Refuse a log that ends before the last delivered commit for a long time."""
        known = self._awaited
        if known is None or page_after(log_end) > known.commit or self._begun_at is None:
            return
        if now - self._begun_at >= WITNESS_SECONDS:
            raise other_log(known, f"the log ends at {show(log_end)}")

    def _answer(self, stall: Stall) -> InformixCdcError | None:
        """Return the error with which a stall ends the session or the query, or log the stall."""
        if stall.response is Response.REOPEN:
            self.state.counters.stalls += 1  # once for each stall
            return stall.error()
        if stall.next_log is not None and self.reads_from(stall.next_log):
            # The planned batch is complete, so a late change is not mistaken for unreadable log.
            if self.liveness.record_passed_by(self.clock()) or stall.expected_commit is not None:
                return self._answer_unreadable(stall.proven())
            if not stall.is_silent:
                return None  # it may still arrive; the next check is the last
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
    """Return why the restart position cannot advance: the BEGINTX of a transaction, and a reason."""
    if log_number(restart) < log_number(high_watermark.restart):
        return None, f"Spark has not read the rows up to {show(high_watermark.commit)} yet"
    if begin is None and is_bounded:
        return None, (
            "a transaction that the server lists as open may have begun there"
            " (sysmaster:systrans, tx_logbeg), or the stream has not yet read the log that was"
            " written before it was listed"
        )
    if begin is None:
        return None, "no captured table has changed for a long time: see option heartbeatTable"
    return begin, f"the transaction that began at {show(begin)} is still open"


def row_logging_off(tables: Sequence[str], position: Position) -> DataLoss:
    """Return the error for tables whose full row logging is off."""
    shown = ", ".join(tables[:_MOST_NAMES])
    if len(tables) > _MOST_NAMES:
        shown += f" and {len(tables) - _MOST_NAMES} more tables"
    return DataLoss(
        f"full row logging of {shown} was switched off after {show(position.commit)};"
        " changes since then are not completely in the log.",
        f"To load the table again, {NEW_STREAM}. Row logging is also off on a server"
        " that was set up anew, such as an emulator that was restarted.",
        tables=tuple(tables),
        position=position.commit,
        gap=Gap.ROW_LOGGING_OFF,
    )
