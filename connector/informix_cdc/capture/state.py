"""State shared by the capture thread and Spark's threads. Readers can wait for a change.

Rule: split by who writes. `counters` and `gauges` are the capture's, `spark` is written for Spark,
`outcome` says how it ended; what is left here is written where a stream begins, ends or is left.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from informix_capture_client.catalog import LogSpace
from informix_capture_client.errors import ConnectionLost, InformixCdcError
from informix_capture_client.log_events import (
    BEGIN_SHOWN_LATE,
    FORMER_ROWS_LEFT_OUT,
    LOG_END_NOT_REACHED,
    TRANSACTIONS_LEFT_OUT,
)
from informix_capture_client.positions import LogEnd, Position, RecordPlace, show
from informix_capture_client.stream import Answer, Read
from informix_capture_client.transactions import CommittedTransactions, PositionPassed, StreamEvent
from informix_cdc.capture.counts import Counters, Gauges
from informix_cdc.capture.restart_bound import RestartBound
from informix_cdc.capture.server_watch import LogWatch
from informix_cdc.capture.spark_side import SparkSide
from informix_checkpoints.spool import Spool

logger = logging.getLogger("informix_cdc.connector.capture_state")  # a name in logs, not a module

# How long a run of AvailableNow waits for a server that does not send what is in its log.
LATE_SECONDS = 90.0
JOIN_SECONDS = 90.0  # and for tables that are on their way into the stream
_NEAR_PAGES = 3  # TIMEOUT names the last record; the page after it may count as used


@dataclass(slots=True)
class CaptureOutcome:
    """How a capture ended; the capture thread writes `error`, who stops it `is_stopped`."""

    error: BaseException | None = None
    is_stopped: bool = False

    @property
    def has_come(self) -> bool:
        """Whether nothing more is to be waited for."""
        return self.error is not None or self.is_stopped

    def raise_(self) -> None:
        """Raise what ended the capture, if it has ended.

        Raises:
            InformixCdcError: the capture failed, or was stopped.
            RuntimeError: it failed by a bug.
        """
        if isinstance(self.error, InformixCdcError):
            raise self.error  # Spark is shown its text, and the log its frames
        if self.error is not None:
            raise RuntimeError(f"the capture failed; this is a bug: {self.error!r}") from self.error
        if self.is_stopped:
            raise ConnectionLost("the capture was stopped while its rows were waited for.")


@dataclass(slots=True)
class CaptureState:
    """Where a capture stands.

    Attributes:
        counters: handed on from capture to capture of a query.
        gauges: of this capture.
        spark: what Spark has asked for.
        outcome: how it ended, if it has.
        spool: of the present stream; None before it has begun, or once it was left.
        former_streams: streams that this one goes on from after a loss of data.
        target_position: beyond the log's end when the capture began; 0 while that is not known. Not its
            clock: that may be set back, and then half of what was committed would do.
        log_space: the log files when the capture began; None where the server does not tell.
        clock: seconds from anywhere.
        logged: as `StreamOffset` has it.
        watch: knows how the server's log stands.
        restart_bound: how far restart positions may go.
        server_version: as the server tells it; empty until then, or if nobody shows it.
    """

    counters: Counters = field(default_factory=Counters)
    gauges: Gauges = field(default_factory=Gauges)
    spark: SparkSide = field(default_factory=SparkSide)
    outcome: CaptureOutcome = field(default_factory=CaptureOutcome)
    spool: Spool | None = None
    former_streams: set[str] = field(default_factory=set)
    target_position: int = 0
    log_space: LogSpace | None = None
    clock: Callable[[], float] = time.monotonic
    logged: LogEnd | None = None
    watch: LogWatch | None = None
    restart_bound: RestartBound = field(default_factory=RestartBound)
    server_version: str = ""
    _joining_since: float | None = field(default=None, init=False)
    _late_since: float | None = field(default=None, init=False)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def successor(self) -> CaptureState:
        """Return the state of another capture of the same query: it counts on from here."""
        return CaptureState(self.counters, Gauges.after(self.counters), SparkSide(self.spark.restart))

    @property
    def stream(self) -> str | None:
        """The id of the stream that is captured; None before it has begun."""
        return spool.stream if (spool := self.spool) else None

    @property
    def spool_rows(self) -> int:
        """How many rows are in the spool."""
        return spool.rows if (spool := self.spool) else 0

    @property
    def spool_bytes(self) -> int:
        """How many bytes they take there."""
        return spool.size_bytes if (spool := self.spool) else 0

    @property
    def bytes_ahead(self) -> int:
        """How much lies in the spool that Spark has not taken."""
        spool = self.spool  # read once: another thread may leave it meanwhile
        return 0 if spool is None else self.spark.bytes_ahead(spool)

    @property
    def taken_upto(self) -> int | None:
        """Up to where the log is with Spark; None before the stream has begun."""
        if (spool := self.spool) is None:
            return None
        return self.gauges.reached if self.spark.has_taken(spool) else self.spark.taken(spool.stream)

    @property
    def has_all(self) -> bool:
        """Whether all that was there when the capture began is in the spool: changes, and snapshots."""
        return self.gauges.is_caught_up and not self.counters.snapshots.tables_left

    @property
    def waits_for_spark(self) -> bool:
        """Whether something is not read on until Spark has taken more: the log, or a snapshot."""
        return self.gauges.is_paused or self.counters.snapshots.is_paused

    # what the capture says

    def catches_up(self, answer: Answer) -> bool:
        """Tell whether what came is the first that lies beyond the capture's start."""
        if self.gauges.is_caught_up or not isinstance(answer, Read) or not self.target_position:
            return False
        since = self._joining_since
        # A run of AvailableNow would end without them, each time; others need not wait for them.
        is_joining = since is not None and self.clock() - since < JOIN_SECONDS
        if is_joining and self.gauges.is_at_end:
            return False
        is_at_end = self._is_at_end(answer)
        self.gauges.is_at_end |= is_at_end
        return is_at_end and not is_joining

    def _is_at_end(self, answer: Read) -> bool:
        # As long as the log may be another one, its positions say nothing.
        is_known = answer.assembler.awaited_commit is None
        is_past = answer.reached >= self.target_position or any(map(self._is_past, answer.events))
        if is_known and is_past:
            return True
        is_idle = any(isinstance(event, PositionPassed) and event.is_timeout for event in answer.events)
        return is_idle and self._is_end_of_log(answer)

    def _is_past(self, event: StreamEvent) -> bool:
        if isinstance(event, PositionPassed):
            # `restart` stays behind while a transaction is open; `commit` moves with every COMMTX
            return max(event.position.commit, event.position.restart) >= self.target_position
        return (
            isinstance(event, CommittedTransactions) and event.position.commit >= self.target_position
        )

    def _is_end_of_log(self, answer: Read) -> bool:
        """Tell whether a TIMEOUT means that all has come which was in the log at the start.

        A server may be late, or unable to read its log on; that is waited for, and told.
        """
        space = self.log_space
        is_near = space is None or space.bytes_since(answer.reached) <= _NEAR_PAGES * space.page_bytes
        if is_near and answer.assembler.awaited_commit is None:
            return True
        now = self.clock()
        self._late_since = now if self._late_since is None else self._late_since
        if now - self._late_since < LATE_SECONDS:
            return False
        LOG_END_NOT_REACHED.log(
            logger,
            stream=self.stream,
            reached=show(answer.reached),
            log_end=show(self.target_position),
        )
        return True

    def note(self, answer: Answer, catches_up: bool = False) -> None:
        """Note what the latest bytes said, once what they complete is in the spool.

        Args:
            answer: of the stream.
            catches_up: what `catches_up` said of it.
        """
        if not isinstance(answer, Read):
            return
        self.gauges.note(answer, self.counters.received.timeouts)
        self.gauges.is_caught_up |= catches_up
        self.counters.note_read()
        for count, why in self.counters.newly_left_out():
            TRANSACTIONS_LEFT_OUT.log(logger, stream=self.stream, count=count, reason=why)
        if late := self.counters.newly_late_begin():
            begin, commit = map(show, late)
            BEGIN_SHOWN_LATE.log(logger, stream=self.stream, begin=begin, commit=commit)
        for rows in self.counters.newly_former():
            FORMER_ROWS_LEFT_OUT.log(logger, **{**rows._asdict(), "commit": show(rows.commit)})
        if answer.events or catches_up:
            self.notify()

    def join(self, since: float | None) -> None:
        """Note since when tables are on their way into the stream; None: they are in it."""
        if since is None or self._joining_since is None:
            self._joining_since = since
        self.notify()

    def leave(self, former: Spool) -> None:
        """Forget a stream that is lost; another one begins."""
        # The spool goes first, and all at once for whoever waits: a reader that still saw it among the
        # former streams would take its start for a new one, and an AvailableNow run would end there.
        with self._changed:
            self.spool = None
            self.target_position = 0
            self.gauges.is_caught_up = self.gauges.is_at_end = False
            self.former_streams.add(former.stream)
        self.counters.count_loss()
        self.counters.assembly.begin_stream()
        self.notify()

    def fail(self, reason: BaseException) -> None:
        """End the capture with an error, which is raised wherever somebody waits."""
        self.outcome.error = reason
        self.notify()

    # what Spark says

    def take(self, stream: str, position: Position) -> None:
        """Note that Spark asks for what lies above a commit, so it is done with the rest."""
        if self.spark.take(stream, position):
            if stream == self.stream:
                self.counters.appended.take(position.place)
            self.notify()

    def plan(self, stream: str, upto: RecordPlace) -> None:
        """Note that Spark asks for a range up to a place: that must not wait for room."""
        self.spark.plan(stream, upto)
        self.notify()

    def has_left(self, stream: str) -> bool:
        """Tell whether a stream was lost: Spark was done with all its rows before it was left."""
        return stream in self.former_streams

    # waiting

    def notify(self) -> None:
        """Wake whoever waits."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Let nobody wait any longer."""
        self.outcome.is_stopped = True
        self.notify()

    def wait_for_spark(self, is_over: Callable[[], bool], timeout_seconds: float) -> None:
        """Wait for Spark, in the capture thread."""
        with self._changed:
            self._changed.wait_for(lambda: self.outcome.is_stopped or is_over(), timeout_seconds)

    def wait_for(self, is_true: Callable[[], bool], timeout_seconds: float | None) -> None:
        """Wait until a condition holds; what is there already is not held back by a later error.

        Raises:
            InformixCdcError: the condition does not hold, and the capture has ended.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.outcome.has_come or is_true(), timeout_seconds)
            if not is_true():
                self.outcome.raise_()
