"""Detect that a capture has read up to the end that the log had when it began, for AvailableNow.

Rule: `on_read` records what an answer shows; everything else only reads that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from informix_capture_client.catalog import LogSpace
from informix_capture_client.stream import Answer, Read
from informix_capture_client.transactions import CommittedTransactions, PositionPassed, StreamEvent
from informix_cdc.capture.counts import Gauges
from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.companions import Companion

# How long a run of AvailableNow waits for a server that does not send the rest of its log.
LATE_SECONDS = 90.0
JOIN_SECONDS = 90.0  # and for tables that are joining the stream
_NEAR_PAGES = 3  # TIMEOUT names the last record; the page after it may count as used


@dataclass(slots=True)
class EndOfLogWatch(Companion):
    """Detects that everything in the log at the start has been read, over all sessions of a capture.

    Args:
        gauges: of the capture; `is_caught_up` ends the watch.
        clock: of the capture.

    Attributes:
        target_position: after the end of the log when the capture began; 0 while unknown. Its time is
            not used, because a clock may be set back; then only a part of the commits would be read.
        log_space: the log files when the capture began; None if the server does not list them.
        is_at_end: whether everything has been read, except for tables that have not joined yet.
        is_late: whether the end is only assumed, because the server has sent nothing more for long.
    """

    gauges: Gauges
    clock: Clock = MONOTONIC
    target_position: int = 0
    log_space: LogSpace | None = None
    is_at_end: bool = field(default=False, init=False)
    is_late: bool = field(default=False, init=False)
    questions: int = field(default=0, init=False)  # how many calls of `watch_for` have begun
    _asked: tuple[int, LogSpace | None] | None = field(default=None, init=False)
    _asked_at: float = field(default=0.0, init=False)  # a TIMEOUT of an earlier read proves nothing
    _shows_end: bool = field(default=False, init=False)  # the latest answer
    _is_joining: bool = field(default=False, init=False)  # at that time
    _joining_since: float | None = field(default=None, init=False)
    _late_since: float | None = field(default=None, init=False)

    def begin_session(self, now: float, *, is_joining: bool) -> None:
        """Start with another session; `is_joining`: it does not capture some tables yet."""
        if is_joining and self._joining_since is None:
            self._joining_since = now

    def watch_for(self, target_position: int, log_space: LogSpace | None) -> None:
        """Detect another end of the log, which was just read, from the next answer on.

        Other threads may call this. `gauges.is_caught_up` is about this end as soon as `questions` has
        been raised.
        """
        self._asked_at = self.clock()
        self._asked = target_position, log_space

    def end_joining(self) -> None:
        """Record that no more tables are joining the stream."""
        self._joining_since = None

    def end_without_reading(self) -> None:
        """Record that nothing is left to read: no table is in the stream."""
        self.is_at_end = self.gauges.is_caught_up = True

    def begin_stream(self) -> None:
        """Forget the end of the log: another stream begins, whose positions may be lower."""
        self.target_position = 0
        self.is_at_end = False

    @property
    def has_caught_up(self) -> bool:
        """Whether the latest answer is the first one past the capture's start."""
        return self._shows_end and not self._is_joining

    @property
    def is_urgent(self) -> bool:
        """Whether the data read so far must go to the spool now, because a run may wait for it."""
        return self.has_caught_up

    def on_read(self, answer: Answer, now: float) -> Answer:
        """Record whether an answer shows the end; pass the answer on unchanged."""
        if (asked := self._asked) is not None:
            self._asked = None
            self.target_position, self.log_space = asked
            self.is_at_end = self.gauges.is_caught_up = False
            self._late_since = None
            self.questions += 1
        since = self._joining_since
        # A run of AvailableNow would always end without joining tables; other runs need not wait for
        # them.
        self._is_joining = since is not None and now - since < JOIN_SECONDS
        self._shows_end = self.is_late = False
        is_known = self.gauges.is_caught_up or (self._is_joining and self.is_at_end)
        if not self.target_position or is_known:
            return answer
        if isinstance(answer, Read):
            self._shows_end = self._is_past_target(answer) or self._is_idle_at_end(answer, now)
            self.is_at_end |= self._shows_end
        return answer

    def _is_past_target(self, answer: Read) -> bool:
        # While the log may be another one, its positions prove nothing.
        return answer.assembler.awaited_commit is None and (
            answer.reached >= self.target_position or any(map(self._is_past, answer.events))
        )

    def _is_past(self, event: StreamEvent) -> bool:
        if isinstance(event, PositionPassed):
            # `restart` does not advance while a transaction is open; `commit` advances with every
            # COMMTX
            return max(event.position.commit, event.position.restart) >= self.target_position
        return (
            isinstance(event, CommittedTransactions) and event.position.commit >= self.target_position
        )

    def _is_idle_at_end(self, answer: Read, now: float) -> bool:
        """Return whether a TIMEOUT means that everything in the log at the start has been read.

        A server may be late, or unable to continue reading its log; both are awaited and logged.
        """
        passed = [event for event in answer.events if isinstance(event, PositionPassed)]
        if not any(event.is_timeout or answer.is_silent for event in passed):  # or begins the stream
            return False
        if answer.began_at < self._asked_at:
            return False
        space = self.log_space
        is_near = space is None or space.bytes_since(answer.reached) <= _NEAR_PAGES * space.page_bytes
        if is_near and answer.assembler.awaited_commit is None:
            return True
        self._late_since = now if self._late_since is None else self._late_since
        self.is_late = now - self._late_since >= LATE_SECONDS
        return self.is_late
