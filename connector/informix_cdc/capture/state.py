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

from informix_capture_client.errors import ConnectionLost, InformixCdcError
from informix_capture_client.log_events import (
    BEGIN_SHOWN_LATE,
    FORMER_ROWS_LEFT_OUT,
    LOG_END_NOT_REACHED,
    TRANSACTIONS_LEFT_OUT,
)
from informix_capture_client.positions import LogEnd, Position, RecordPlace, show
from informix_capture_client.stream import Answer, Read
from informix_cdc.capture.counts import Counters, Gauges
from informix_cdc.capture.end_of_log import EndOfLogWatch
from informix_cdc.capture.restart_bound import RestartBound
from informix_cdc.capture.server_watch import LogWatch
from informix_checkpoints.spool import Spool

logger = logging.getLogger("informix_cdc.connector.capture_state")  # a name in logs, not a module

_NOWHERE: RecordPlace = (-1, 0)


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
class SparkSide:
    """Up to where Spark is done with each stream, and up to where it has planned.

    Spark's threads write it, by stream; the capture reads it to know when it must wait.

    Attributes:
        restart: where a new session of the query would begin; None before the first batch.
    """

    restart: int | None = None
    _taken: dict[str, RecordPlace] = field(default_factory=dict)  # by stream, as in the next one
    _planned: dict[str, RecordPlace] = field(default_factory=dict)

    def ack(self, stream: str, position: Position) -> bool:
        """Record that Spark asks for what lies above a place, so is done with the rest; tell if new."""
        self.restart = position.restart or None
        is_news = position.place > self._taken.get(stream, _NOWHERE)
        if is_news:
            self._taken[stream] = position.place
        return is_news

    def plan(self, stream: str, up_to: RecordPlace) -> None:
        """Record that Spark asks for a range up to a place: that must not wait for room."""
        self._planned[stream] = max(up_to, self._planned.get(stream, _NOWHERE))

    def taken(self, stream: str) -> int | None:
        """Return the commit up to which Spark is done with a stream; None before its first batch."""
        place = self._taken.get(stream)
        return None if place is None else place[0]

    def has_taken(self, spool: Spool) -> bool:
        """Tell whether Spark is done with everything that a spool holds."""
        return self._taken.get(spool.stream, _NOWHERE) >= spool.manifest.end.place

    def bytes_ahead(self, spool: Spool) -> int:
        """Return how much lies in a spool that Spark has neither taken nor planned."""
        asked = [asked.get(spool.stream, _NOWHERE) for asked in (self._taken, self._planned)]
        return spool.bytes_above(max(asked))


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
        end_of_log: watches for the end that the log had when the capture began.
        clock: a monotonic clock.
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
    previous_streams: set[str] = field(default_factory=set)
    clock: Callable[[], float] = time.monotonic
    logged: LogEnd | None = None
    watch: LogWatch | None = None
    restart_bound: RestartBound = field(default_factory=RestartBound)
    server_version: str = ""
    end_of_log: EndOfLogWatch = field(init=False)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.end_of_log = EndOfLogWatch(self.gauges)

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
        return spool.manifest.row_count if (spool := self.spool) else 0

    @property
    def spool_bytes(self) -> int:
        """How many bytes they take there."""
        return spool.manifest.size_bytes if (spool := self.spool) else 0

    @property
    def bytes_ahead(self) -> int:
        """How much lies in the spool that Spark has not taken."""
        spool = self.spool  # read once: another thread may leave it meanwhile
        return 0 if spool is None else self.spark.bytes_ahead(spool)

    @property
    def taken_up_to(self) -> int | None:
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

    def record(self, answer: Answer) -> None:
        """Record what the latest bytes said, once what they complete is in the spool."""
        if not isinstance(answer, Read):
            return
        end = self.end_of_log
        self.gauges.record(answer, self.counters.received.timeouts)
        has_caught_up = end.has_caught_up
        self.gauges.is_caught_up |= has_caught_up
        if end.is_late:
            LOG_END_NOT_REACHED.log(
                logger,
                stream=self.stream,
                reached=show(answer.reached),
                log_end=show(end.target_position),
            )
        self.counters.record_read()
        for count, why in self.counters.newly_left_out():
            TRANSACTIONS_LEFT_OUT.log(logger, stream=self.stream, count=count, reason=why)
        if late := self.counters.newly_late_begin():
            begin, commit = map(show, late)
            BEGIN_SHOWN_LATE.log(logger, stream=self.stream, begin=begin, commit=commit)
        for rows in self.counters.newly_previous():
            FORMER_ROWS_LEFT_OUT.log(logger, **{**rows._asdict(), "commit": show(rows.commit)})
        if answer.events or has_caught_up:
            self.notify()

    def leave(self, previous: Spool) -> None:
        """Forget a stream that is lost; another one begins."""
        # The spool goes first, and all at once for whoever waits: a reader that still saw it among the
        # former streams would take its start for a new one, and an AvailableNow run would end there.
        with self._changed:
            self.spool = None
            self.end_of_log.begin_stream()
            self.gauges.is_caught_up = False
            self.previous_streams.add(previous.stream)
        self.counters.count_loss()
        self.counters.assembly.begin_stream()
        self.notify()

    def fail(self, reason: BaseException) -> None:
        """End the capture with an error, which is raised wherever somebody waits."""
        self.outcome.error = reason
        self.notify()

    # what Spark says

    def ack(self, stream: str, position: Position) -> None:
        """Record that Spark asks for what lies above a commit, so it is done with the rest."""
        if self.spark.ack(stream, position):
            if stream == self.stream:
                self.counters.appended.ack(position.place)
            self.notify()

    def plan(self, stream: str, up_to: RecordPlace) -> None:
        """Record that Spark asks for a range up to a place: that must not wait for room."""
        self.spark.plan(stream, up_to)
        self.notify()

    def has_left(self, stream: str) -> bool:
        """Tell whether a stream was lost: Spark was done with all its rows before it was left."""
        return stream in self.previous_streams

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
