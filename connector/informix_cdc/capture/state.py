"""What the capture thread tells the rest of its process about itself, and what it is told.

Rule: whoever reads can wait for a change. Only `taken` and `stop` are said from outside.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from informix_capture_client.errors import ConnectionLost, InformixCdcError
from informix_capture_client.log_events import TRANSACTIONS_LEFT_OUT
from informix_capture_client.positions import Position
from informix_capture_client.stream import ChangeStream
from informix_capture_client.transactions import (
    AssemblyCounters,
    Event,
    Passed,
    StreamCounters,
    Transactions,
)
from informix_cdc.capture.server_watch import Watch
from informix_cdc.capture.spooled import Appended
from informix_checkpoints.spool import Spool

logger = logging.getLogger("informix_cdc.connector.capture_state")

_LEFT_OUT = {
    "unseen_transactions": "they were open before the stream began",
    "abandoned_transactions": "their id was taken by another before they ended",
}


@dataclass(slots=True)
class CaptureState:
    """Where a capture stands.

    Attributes:
        server_clock, target_position: the server's time and log position when the capture began.
        is_caught_up: whether everything that committed before that is in the spool.
        is_paused: reading waits until Spark has taken more.
        former_streams: streams that this one goes on from after a loss of data.
        oldest_open_begin, oldest_open_time: BEGINTX of the oldest open transaction, and its time.
        reached: the highest sequence number that the present connection has shown.
        latest_time: the latest time of a BEGINTX or COMMTX, by the server's clock.
        heard_at: when a TIMEOUT said last that there is nothing more, by our clock; None if rows
            have come since.
        stalled_since: when a stream that stands still moved last, by the monotonic clock.
        reconnects, reconnect_attempts: outages, and how often a connection was tried again.
        restart: where a new session of the query would begin.
    """

    server_clock: int = 0
    target_position: int = 0
    is_caught_up: bool = False
    is_paused: bool = False
    former_streams: set[str] = field(default_factory=set)
    reconnects: int = 0
    reconnect_attempts: int = 0
    stalls: int = 0
    stalled_since: float | None = None
    data_losses: int = 0
    pauses: int = 0
    ignored_truncates: int = 0
    counters: AssemblyCounters = field(default_factory=AssemblyCounters)
    received: StreamCounters = field(default_factory=StreamCounters)
    appended: Appended = field(default_factory=Appended)
    watch: Watch | None = None
    open_transactions: int = 0
    oldest_open_begin: int | None = None
    oldest_open_time: int | None = None
    reached: int = 0
    heard_at: float | None = None
    latest_time: int = 0
    restart: int | None = None
    open_bytes_in_memory: int = 0
    open_bytes_spilled: int = 0
    contacts: int = 0
    spool: Spool | None = None
    error: BaseException | None = None
    is_stopped: bool = False
    _taken: dict[str, int] = field(default_factory=dict)  # by stream, as is the next one
    _planned: dict[str, int] = field(default_factory=dict)
    _logged: dict[str, int] = field(default_factory=dict)
    _timeouts: int = 0
    _is_loss_counted: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def stream(self) -> str | None:
        """The id of the stream that is captured; None before it has begun."""
        return spool.stream if (spool := self.spool) else None

    @property
    def is_stalled(self) -> bool:
        """Whether the stream stands still while the server's log has moved on."""
        return self.stalled_since is not None

    def successor(self) -> CaptureState:
        """Return the state of another capture of the same query, which counts on from here."""
        return CaptureState(
            reconnects=self.reconnects,
            reconnect_attempts=self.reconnect_attempts,
            stalls=self.stalls,
            data_losses=self.data_losses,
            pauses=self.pauses,
            ignored_truncates=self.ignored_truncates,
            counters=self.counters,
            received=self.received,
            appended=self.appended,
            restart=self.restart,
            _logged=self._logged,
            _timeouts=self.received.timeouts,
            _is_loss_counted=self._is_loss_counted,
        )

    def catches_up(self, events: Sequence[Event] | None, stream: ChangeStream) -> bool:
        """Tell whether what came is the first that lies beyond the capture's start."""
        if self.is_caught_up or events is None or not self.target_position:
            return False
        is_past = stream.reached >= self.target_position or stream.latest_time > self.server_clock
        return is_past or any(self._is_past_start(event) for event in events)

    def observe(self, events: Sequence[Event] | None, stream: ChangeStream, catches_up: bool) -> None:
        """Note what the latest bytes said, once what they complete is in the spool.

        Args:
            events: None means that there were no bytes.
            stream: where they came from.
            catches_up: what `catches_up` said of these events.
        """
        if events is None or (assembler := stream.assembler) is None:
            return
        self.contacts += 1
        self._is_loss_counted = False
        self.open_transactions = assembler.open_count
        if (begin := assembler.lowest_open()) != self.oldest_open_begin:
            self.oldest_open_begin, self.oldest_open_time = begin, assembler.lowest_open_time()
        self._note_progress(stream)
        self.open_bytes_in_memory = assembler.open_bytes_in_memory
        self.open_bytes_spilled = assembler.open_bytes_spilled
        self.is_caught_up |= catches_up
        self._log_what_is_left_out()
        if events or catches_up:
            self.notify()

    def _note_progress(self, stream: ChangeStream) -> None:
        self.reached = stream.reached or self.reached
        self.latest_time = max(stream.latest_time, self.latest_time)
        if self.received.timeouts > self._timeouts:
            self._timeouts, self.heard_at = self.received.timeouts, time.time()
        else:
            self.heard_at = None

    def _log_what_is_left_out(self) -> None:
        for name, why in _LEFT_OUT.items():
            count = getattr(self.counters, name)
            if count > self._logged.get(name, 0):
                TRANSACTIONS_LEFT_OUT.log(logger, stream=self.stream, count=count, reason=why)
                self._logged[name] = count

    def _is_past_start(self, event: Event) -> bool:
        if isinstance(event, Passed):
            # `restart` stays behind while a transaction is open; `commit` moves with every COMMTX
            newest = max(event.position.commit, event.position.restart)
            return event.is_timeout or newest >= self.target_position
        return isinstance(event, Transactions) and event.position.commit >= self.target_position

    def take(self, stream: str, position: Position) -> None:
        """Note that Spark asks for what lies above a commit, so it is done with the rest."""
        self.restart = position.restart or None
        if position.commit > self._taken.get(stream, -1):
            self._taken[stream] = position.commit
            if stream == self.stream:
                self.appended.take(position.commit)
            self.notify()

    def plan(self, stream: str, commit: int) -> None:
        """Note that Spark asks for a range up to a commit: that must not wait for room."""
        self._planned[stream] = max(commit, self._planned.get(stream, 0))
        self.notify()

    def delivered(self) -> int | None:
        """Return up to where the log is with Spark; None before the stream has begun."""
        if (spool := self.spool) is None:
            return None
        return self.reached if self.has_taken(spool) else self._taken.get(spool.stream)

    def has_taken(self, spool: Spool) -> bool:
        """Tell whether Spark is done with everything that a spool holds."""
        return self._taken.get(spool.stream, -1) >= spool.end.commit

    def leave(self, former: Spool) -> None:
        """Forget a stream that is lost; another one begins."""
        self.former_streams.add(former.stream)
        self.count_loss()
        self.counters.begin_stream()
        self.spool = None
        self.target_position, self.is_caught_up = 0, False
        self.notify()

    def count_loss(self) -> None:
        """Count a loss of data; all that goes wrong before anything is read again is the same one."""
        self.data_losses += not self._is_loss_counted
        self._is_loss_counted = True

    def has_left(self, stream: str) -> bool:
        """Tell whether a stream was lost: Spark was done with all its rows before it was left."""
        return stream in self.former_streams

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
        """Return how much lies in the spool that Spark has not taken."""
        if (spool := self.spool) is None:  # read once: another thread may leave it meanwhile
            return 0
        taken, planned = self._taken.get(spool.stream, 0), self._planned.get(spool.stream, 0)
        return spool.bytes_above(max(taken, planned))

    def notify(self) -> None:
        """Wake whoever waits."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Let nobody wait any longer."""
        self.is_stopped = True
        self.notify()

    def pause(self, is_over: Callable[[], bool], timeout_seconds: float) -> None:
        """Wait for Spark, in the capture thread."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_stopped or is_over(), timeout_seconds)

    def wait_for(self, is_true: Callable[[], bool], timeout_seconds: float | None) -> None:
        """Wait until a condition holds; what is there already is not held back by a later error.

        Raises:
            InformixCdcError: the condition does not hold, and the capture has ended.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or is_true(), timeout_seconds)
            if not is_true():
                self._raise_end()

    @property
    def _has_ended(self) -> bool:
        return self.error is not None or self.is_stopped

    def _raise_end(self) -> None:
        if isinstance(self.error, InformixCdcError):
            raise self.error.with_traceback(None) from None  # Spark shows nothing but this text
        if self.error is not None:
            raise RuntimeError(f"the capture failed; this is a bug: {self.error!r}") from self.error
        if self.is_stopped:
            raise ConnectionLost("the capture was stopped while its rows were waited for.")
