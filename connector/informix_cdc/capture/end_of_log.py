"""Watch for the end that the server's log had when a capture began: a run of AvailableNow ends there.

Rule: `on_read` records what an answer shows; everything else only says it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from informix_capture_client.catalog import LogSpace
from informix_capture_client.stream import Answer, Read
from informix_capture_client.transactions import CommittedTransactions, PositionPassed, StreamEvent
from informix_cdc.capture.counts import Gauges
from informix_cdc.companions import Companion
from informix_cdc.table_changes import Absent

# How long a run of AvailableNow waits for a server that does not send what is in its log.
LATE_SECONDS = 90.0
JOIN_SECONDS = 90.0  # and for tables that are on their way into the stream
_NEAR_PAGES = 3  # TIMEOUT names the last record; the page after it may count as used


@dataclass(slots=True)
class EndOfLogWatch(Companion):
    """Says when everything has come that was in the log at the start, over all sessions of a capture.

    Args:
        gauges: of the capture; `is_caught_up` ends the watch.

    Attributes:
        target_position: beyond the log's end when the capture began; 0 while that is not known. Not its
            clock: that may be set back, and then half of what was committed would do.
        log_space: the log files when the capture began; None where the server does not tell.
        is_at_end: whether everything has come, or will have once absent tables have joined.
        is_late: whether the latest answer counts as the end since the server sent no more for long.
    """

    gauges: Gauges
    target_position: int = 0
    log_space: LogSpace | None = None
    is_at_end: bool = field(default=False, init=False)
    is_late: bool = field(default=False, init=False)
    _shows_end: bool = field(default=False, init=False)  # the latest answer
    _is_joining: bool = field(default=False, init=False)  # at that time
    _absent: Absent = field(default_factory=Absent, init=False)
    _joining_since: float | None = field(default=None, init=False)
    _late_since: float | None = field(default=None, init=False)

    def begin_session(self, absent: Absent, now: float) -> None:
        """Begin with another session, and with the tables that it does not capture yet."""
        self._absent = absent
        if absent.names and self._joining_since is None:
            self._joining_since = now

    def end_joining(self) -> None:
        """Record that no table is on its way into the stream any more."""
        self._joining_since = None

    def begin_stream(self) -> None:
        """Forget where the log ended: another stream begins, whose positions may be lower."""
        self.target_position = 0
        self.is_at_end = False

    @property
    def has_caught_up(self) -> bool:
        """Whether the latest answer is the first that lies beyond the capture's start."""
        return self._shows_end and not self._is_joining

    @property
    def is_urgent(self) -> bool:
        """Whether what came is to be in the spool now: somebody may wait for just that."""
        return self.has_caught_up

    def on_read(self, answer: Answer, now: float) -> Answer:
        """Record whether an answer shows the end; what it shows of a session that goes on does not."""
        since = self._joining_since
        # A run of AvailableNow would end without them, each time; others need not wait for them.
        self._is_joining = since is not None and now - since < JOIN_SECONDS
        self._shows_end = self.is_late = False
        is_known = self.gauges.is_caught_up or (self._is_joining and self.is_at_end)
        if not self.target_position or is_known or self._absent.rest_is_for_next_session:
            return answer
        if isinstance(answer, Read):
            self._shows_end = self._is_past_target(answer) or self._is_idle_at_end(answer, now)
            self.is_at_end |= self._shows_end
        return answer

    def _is_past_target(self, answer: Read) -> bool:
        # As long as the log may be another one, its positions say nothing.
        return answer.assembler.awaited_commit is None and (
            answer.reached >= self.target_position or any(map(self._is_past, answer.events))
        )

    def _is_past(self, event: StreamEvent) -> bool:
        if isinstance(event, PositionPassed):
            # `restart` stays behind while a transaction is open; `commit` moves with every COMMTX
            return max(event.position.commit, event.position.restart) >= self.target_position
        return (
            isinstance(event, CommittedTransactions) and event.position.commit >= self.target_position
        )

    def _is_idle_at_end(self, answer: Read, now: float) -> bool:
        """Tell whether a TIMEOUT means that all has come which was in the log at the start.

        A server may be late, or unable to read its log on; that is waited for, and logged.
        """
        if not any(isinstance(event, PositionPassed) and event.is_timeout for event in answer.events):
            return False
        space = self.log_space
        is_near = space is None or space.bytes_since(answer.reached) <= _NEAR_PAGES * space.page_bytes
        if is_near and answer.assembler.awaited_commit is None:
            return True
        self._late_since = now if self._late_since is None else self._late_since
        self.is_late = now - self._late_since >= LATE_SECONDS
        return self.is_late
