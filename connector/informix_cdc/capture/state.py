"""State shared by the capture thread and Spark's threads. Readers can wait for a change.

Rule: split by writer. The capture writes `counters` and `gauges`. The query, or the process of a shared
capture, writes `reader`. `outcome` has the end; other fields are written when a stream begins, ends or
is left.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from informix_capture_client.errors import ConnectionLost, InformixCdcError
from informix_capture_client.log_events import (
    BEGIN_SHOWN_LATE,
    FORMER_ROWS_LEFT_OUT,
    LOG_END_NOT_REACHED,
    TRANSACTIONS_LEFT_OUT,
)
from informix_capture_client.positions import LogEnd, Position, RecordPlace, SettlingRestart, show
from informix_capture_client.stream import Answer, Read
from informix_cdc.capture.counts import Counters, Gauges
from informix_cdc.capture.end_of_log import EndOfLogWatch
from informix_cdc.capture.restart_bound import RestartBound
from informix_cdc.capture.server_watch import LogWatch
from informix_cdc.clock import MONOTONIC, Clock
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.readers import ReaderState
from informix_checkpoints.spool import Spool

logger = logging.getLogger("informix_cdc.connector.capture_state")  # a logger name, not a module

_NOWHERE: RecordPlace = (-1, 0)


@dataclass(slots=True)
class CaptureOutcome:
    """How a capture ended; the capture thread writes `error`, and `stop` sets `is_stopped`."""

    error: BaseException | None = None
    is_stopped: bool = False

    @property
    def has_come(self) -> bool:
        """Whether the capture has ended."""
        return self.error is not None or self.is_stopped

    def raise_(self) -> None:
        """Raise the error that ended the capture, if it has ended.

        Raises:
            InformixCdcError: the capture failed, or was stopped.
            RuntimeError: it failed because of a bug.
        """
        if isinstance(self.error, InformixCdcError):
            raise self.error  # Spark shows its message; the traceback is in the log
        if self.error is not None:
            raise RuntimeError(f"the capture failed; this is a bug: {self.error!r}") from self.error
        if self.is_stopped:
            raise ConnectionLost("the capture was stopped while its rows were awaited.")


@dataclass(slots=True)
class CaptureState:
    """The state of a capture.

    Attributes:
        counters: passed on from capture to capture of a query.
        gauges: of this capture.
        reader: the query whose capture it is, or the slowest of all readers: what it has taken decides
            when the capture must wait. The restart position is that of a new session.
        waiting: the place of the reader that waits for the next rows; None: of the same one.
        outcome: how it ended, if it has.
        spool: of the current stream; None before it has begun, or after it was abandoned.
        previous_streams: streams that this one continues after a data loss, with the end of their rows.
        is_shared: whether readers in other processes read the spool: rows of a previous stream are kept
            for them, and not waited for.
        end_of_log: detects the end that the log had when the capture began.
        clock: of the capture, and of all that waits for it.
        logged: as in `StreamOffset`.
        watch: has the latest facts about the server's log.
        restart_bound: limits the restart position.
        server_version: as reported by the server; empty until then, or if nothing displays it.
    """

    counters: Counters = field(default_factory=Counters)
    gauges: Gauges = field(default_factory=Gauges)
    reader: ReaderState = field(default_factory=lambda: ReaderState(name=""))
    waiting: RecordPlace | None = None
    outcome: CaptureOutcome = field(default_factory=CaptureOutcome)
    spool: Spool | None = None
    previous_streams: dict[str, RecordPlace] = field(default_factory=dict)
    is_shared: bool = False
    clock: Clock = MONOTONIC
    logged: LogEnd | None = None
    watch: LogWatch | None = None
    restart_bound: RestartBound = field(default_factory=RestartBound)
    server_version: str = ""
    end_of_log: EndOfLogWatch = field(init=False)
    _planned: tuple[str, RecordPlace] = ("", _NOWHERE)  # a stream, and where a batch of it ends
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.end_of_log = EndOfLogWatch(self.gauges, self.clock)

    def successor(self) -> CaptureState:
        """Return the state of another capture of the same query, which continues the counters."""
        gauges, reader = Gauges.after(self.counters), replace(self.reader, stream="")
        return CaptureState(self.counters, gauges, reader, clock=self.clock)

    @property
    def stream(self) -> str | None:
        """The id of the captured stream; None before it has begun."""
        return spool.stream if (spool := self.spool) else None

    @property
    def spool_rows(self) -> int:
        """The number of rows in the spool."""
        return spool.manifest.row_count if (spool := self.spool) else 0

    @property
    def spool_bytes(self) -> int:
        """The size of the spool in bytes."""
        return spool.manifest.size_bytes if (spool := self.spool) else 0

    @property
    def bytes_ahead(self) -> int:
        """The bytes in the spool that Spark has neither processed nor planned."""
        if (spool := self.spool) is None:
            return 0
        stream, planned = self._planned
        return spool.bytes_above(
            max(self._taken(spool), planned if stream == spool.stream else _NOWHERE)
        )

    @property
    def taken_up_to(self) -> int | None:
        """The position up to which Spark has the log; None before the stream has begun."""
        if (spool := self.spool) is None:
            return None
        place = self._taken(spool)
        return self.gauges.reached if self.has_taken(spool) else None if place < (0, 0) else place[0]

    @property
    def has_all(self) -> bool:
        """Whether all changes and snapshots from before the capture's start are in the spool."""
        return self.gauges.is_caught_up and not self.counters.snapshots.tables_left

    @property
    def settling(self) -> SettlingRestart | None:
        """As in `StreamOffset`."""
        return self.restart_bound.settling

    @property
    def waits_for_spark(self) -> bool:
        """Whether the log or a snapshot is not read further until Spark has read more."""
        return self.gauges.is_paused or self.counters.snapshots.is_paused

    def has_taken(self, spool: Spool) -> bool:
        """Return whether Spark has processed everything in a spool."""
        return self._taken(spool) >= spool.manifest.end.place

    @property
    def segments_ahead(self) -> tuple[int, int]:
        """The numbers of segments that the reader has not processed, and the one that waits."""
        if (spool := self.spool) is None:
            return 0, 0
        taken, manifest = self._taken(spool), spool.manifest
        place = max(taken, self.waiting or taken)
        return manifest.waiting_above(taken).segments, manifest.waiting_above(place).segments

    def _taken(self, spool: Spool) -> RecordPlace:
        reader = self.reader  # read once: another thread may replace it
        return reader.taken.place if reader.stream == spool.stream else _NOWHERE

    def offset(self, spool: Spool) -> StreamOffset:
        """Return the newest offset of the spool's stream."""
        manifest = spool.manifest
        return StreamOffset(
            spool.stream,
            manifest.source,
            manifest.high_watermark,
            self.logged,
            tables=manifest.present_tables,
            settling=self.settling,
            left=manifest.present_left,
        )

    # called by the capture

    def record(self, answer: Answer) -> None:
        """Record an answer, once the transactions that it completes are in the spool."""
        if not isinstance(answer, Read):
            return
        end = self.end_of_log
        self.gauges.record(answer, self.counters.received.timeouts, self.clock())
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
        """Abandon a stream that has lost data; another one begins."""
        # The spool is removed first, and in one step for waiting threads: a reader that still saw it
        # among the previous streams would take its start for a new one, and an AvailableNow run would
        # end there.
        with self._changed:
            self.spool = None
            self.end_of_log.begin_stream()
            self.gauges.is_caught_up = False
            self.previous_streams[previous.stream] = previous.manifest.end.place
        self.counters.count_loss()
        self.counters.assembly.begin_stream()
        self.notify()

    def fail(self, reason: BaseException) -> None:
        """End the capture with an error, which is raised in all waiting threads."""
        self.outcome.error = reason
        self.notify()

    # called by Spark's threads

    def ack(self, stream: str, position: Position) -> None:
        """Record that Spark requests rows after a commit, so it has processed the rest."""
        former = self.reader
        self.reader = replace(former, stream=stream, taken=position)
        if (stream, position.place) != (former.stream, former.taken.place):
            if stream == self.stream:
                self.counters.appended.ack(position.place)
            self.notify()

    def plan(self, stream: str, up_to: RecordPlace) -> None:
        """Record that Spark requests a range up to a place, which must not wait for room."""
        known, place = self._planned
        self._planned = (stream, max(up_to, place) if stream == known else up_to)
        self.notify()

    def has_left(self, stream: str) -> bool:
        """Return whether a stream was abandoned; Spark had processed all its rows before."""
        return stream in self.previous_streams

    # waiting

    def notify(self) -> None:
        """Wake all waiting threads."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Wake all waiting threads for good."""
        self.outcome.is_stopped = True
        self.notify()

    def wait_for_spark(self, is_over: Callable[[], bool], timeout_seconds: float) -> None:
        """Wait for Spark, in the capture thread."""
        with self._changed:
            self._changed.wait_for(lambda: self.outcome.is_stopped or is_over(), timeout_seconds)

    def wait_for(self, is_true: Callable[[], bool], timeout_seconds: float | None) -> None:
        """Wait until a condition holds; available rows are delivered even after an error.

        Raises:
            InformixCdcError: the condition does not hold, and the capture has ended.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.outcome.has_come or is_true(), timeout_seconds)
            if not is_true():
                self.outcome.raise_()
