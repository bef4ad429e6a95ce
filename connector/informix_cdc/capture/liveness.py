"""Decide whether a stream still advances, from its answers and the server's facts about its log.

Rule: pure; time and facts are arguments.

    dead        no bytes at all, not even TIMEOUT records, for longer than the server may be silent
    stalled     only TIMEOUT records, for minutes, while the server's log has advanced by pages
    unreadable  a stall, or reads that do not return, at the same position in a second session; a
                session that begins in the next log file receives records (decision 0013)
    late        the restart position is in the oldest part of the log that the server still has

A server that does not send records of other transactions looks like a stalled one; only a heartbeat, or
a session that receives records in the next log file, shows the difference. So after a stall the session
is opened again once; after that the stream warns. While a planned
batch is captured again, waiting does not help: the stream fails, and the error says that nothing is
lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from informix_capture_client.catalog import LogSpace
from informix_capture_client.errors import (
    NEW_STREAM,
    ConnectionLost,
    DataLoss,
    Gap,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.positions import log_number, log_page, show

_PAGES = log_page(0, 2)  # the current page may be half full; two more have been written
_LATE_SHARE = 0.2  # of the logs that the server keeps
# An open-source client has seen newest changes arrive tens of seconds late (docs/assumptions.md, 33).
_LATE_SECONDS = 60.0
_LONGEST_WAIT_SECONDS = 3600.0  # between two checks of a persistent stall

_OUT_OF_IT = (
    "Switch the log (onmode -l): a stream that begins there can read all later changes, and"
    " with onDataLoss=continue this query continues there without the changes in between. Or"
    " restart the server: then everything can be read. Nothing is lost until the log wraps"
    " around."
)
_UNREADABLE = (
    f"A session that reads to the end of the log can leave a server in this state. {_OUT_OF_IT}"
)
_STALL_STAYS = (
    "A new session did not help. If this server hides transactions of other sessions and no"
    " captured table has changed, nothing is wrong: set option heartbeatTable to find out."
    " Otherwise the log cannot be read past that position."
    f" {_OUT_OF_IT}"
)
_HEARTBEAT_MISSING = (
    "A new session did not help, and no change of the heartbeat table has arrived: the log"
    f" cannot be read past that position. {_OUT_OF_IT}"
)
_SILENCE_STAYS = (
    "A new session did not help. If no read ever returns, run informix-cdc record and send us"
    f" the file. Otherwise the log cannot be read past that position. {_OUT_OF_IT}"
)
_AGAIN = "Nothing is lost: start the query again."


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Facts from the server at one time: start and end of its log, tables without row logging.

    Its clock is in seconds since 1970, 0 if not read; `space` is None if the server does not report it.
    `source` is read only if a table has no row logging: the digest of the tables that the server now
    has under these names, empty if there are none.
    """

    asked_at: float
    current: int
    oldest: int
    unlogged_tables: tuple[str, ...] = ()
    server_clock: int = 0
    space: LogSpace | None = None
    source: str | None = None


class Response(Enum):
    """How to respond to a stall."""

    REOPEN = "open the session once more"
    WARN = "warn and continue"
    FAIL = "end the query"


@dataclass(frozen=True, slots=True)
class Stall:
    """A stream that does not advance while the server's log does.

    Attributes:
        response: what to do.
        sentence, remedy: of its error.
        place: position of the stream.
        current: end of the server's log; None if unknown.
        next_log: start of the first log file after `place`; None if there is no later one.
        is_silent: whether not even TIMEOUT records arrive.
        expected_commit: end of the planned batch that is captured again, if there is one.
        is_last_try: whether one more session is opened to rule out a coincidence.
        is_unreadable: whether it is proven that no session can read past `place`.
    """

    response: Response
    sentence: str
    remedy: str
    place: int = 0
    current: int | None = None
    next_log: int | None = None
    is_silent: bool = False
    expected_commit: int | None = None
    is_last_try: bool = False
    is_unreadable: bool = False

    def error(self) -> InformixCdcError:
        """Return the error for this stall."""
        if self.expected_commit is not None:
            return ConnectionLost(
                self.sentence,
                self.remedy,
                one_more_session=True,
                expected_commit=self.expected_commit,
            )
        if self.is_silent or self.response is Response.REOPEN:
            return ConnectionLost(self.sentence, self.remedy, one_more_session=self.is_last_try)
        return ServerRefused(self.sentence, self.remedy)

    def once_more(self) -> Stall:
        """Return the same stall with one more attempt before it counts as proven."""
        return replace(self, is_last_try=True)

    def proven(self) -> Stall:
        """Return the stall after a session has received records in the next log file."""
        came = "reads did not return" if self.is_silent else "only TIMEOUT records came"
        sentence = (
            f"the server's log cannot be read past {show(self.place)}: {came} there, in two"
            f" sessions, while the log has advanced to {show(self.current or 0)} and can be read"
            f" from {show(self.next_log or 0)}."
        )
        return replace(self, sentence=sentence, remedy=_UNREADABLE, is_unreadable=True)

    def loss(self) -> DataLoss:
        """Return the data loss if the stream continues at the next log file."""
        return DataLoss(
            f"{self.sentence} The log from {show(self.place)} to {show(self.next_log or 0)} is lost.",
            self.remedy,
            gap=Gap.LOG_UNREADABLE,
            goes_on_at=self.next_log,
            position=self.place,
        )


def _next_log(place: int, facts: LogFacts) -> int | None:
    if log_number(facts.current) <= log_number(place):
        return None
    return max(log_page(log_number(place) + 1, 0), facts.oldest)


@dataclass(slots=True)
class Liveness:
    """Watches one stream over all its connections.

    Args:
        silent_seconds: maximum time without any bytes from a live server.
        stalled_seconds: maximum time that its log may advance while the stream does not.
        replay_seconds: maximum time that a planned batch may stall while it is captured again.
        has_heartbeat: whether changes must arrive, because a heartbeat table is captured.

    Attributes:
        stalled_since: when a stalled stream last advanced; else None.
    """

    silent_seconds: float
    stalled_seconds: float
    replay_seconds: float = _LATE_SECONDS
    has_heartbeat: bool = False
    stalled_since: float | None = field(default=None, init=False)
    _contact_at: float = field(default=0.0, init=False)
    _empty_reads: int = field(default=0, init=False)  # since the last contact
    _moved_at: float = field(default=0.0, init=False)
    _patience: float = field(default=0.0, init=False)
    _reached: int = field(default=0, init=False)
    _highest: int = field(default=0, init=False)  # of all connections
    _risen_at: float = field(default=0.0, init=False)  # when `_highest` was reached
    _begins_at: int = field(default=0, init=False)
    _log_then: int | None = field(default=None, init=False)
    _reopened_at: int | None = field(default=None, init=False)  # the position at that time
    _silent_at: int | None = field(default=None, init=False)
    _passed_by_at: int | None = field(default=None, init=False)
    _logged: set[tuple[int, int, bool]] = field(default_factory=set, init=False)
    _late_log: int | None = field(default=None, init=False)

    def begin_stream(self) -> None:
        """Forget the position: another stream begins, whose positions may be lower."""
        self._highest, self._begins_at, self.stalled_since = 0, 0, None
        self._reopened_at = self._silent_at = self._passed_by_at = None

    def connect(self, now: float, begins_at: int = 0) -> None:
        """Start with another connection, whose session reads from a position."""
        self._contact_at = self._moved_at = now
        self._patience, self._empty_reads = self.stalled_seconds, 0
        self._begins_at = max(begins_at, self._begins_at)
        self._log_then = None

    @property
    def _place(self) -> int:
        """The stream's position; a session that has received nothing is at its start."""
        return max(self._highest, self._begins_at)

    def on_read(self, now: float, reached: int) -> None:
        """Record that bytes arrived; `reached` is the highest sequence number received."""
        self._contact_at, self._empty_reads = now, 0
        if reached > self._highest:  # reading again in a new session is not progress
            self._highest, self._risen_at, self.stalled_since = reached, now, None
        if reached != self._reached:
            self._reached, self._moved_at, self._log_then = reached, now, None
            self._patience = self.stalled_seconds

    def reset_deadlines(self, now: float) -> None:
        """Reset the silence timer: reading was paused on purpose."""
        self._contact_at = self._moved_at = now
        self._empty_reads, self._log_then = 0, None

    def require_contact(self, now: float, empty_reads: int = 0) -> None:
        """Fail if the server has been silent for too long.

        Args:
            now: the time.
            empty_reads: number of reads that returned no bytes.

        Raises:
            ConnectionLost: not even a TIMEOUT record arrived.
        """
        self._empty_reads += empty_reads
        if (silence := now - self._contact_at) <= self.silent_seconds:
            return
        if self._empty_reads:
            raise ConnectionLost(
                f"ifx_lo_read returned {self._empty_reads:,} times in {silence:.0f} s, but"
                " without any bytes, not even a TIMEOUT record.",
                "Run informix-cdc record and send us the file.",
            )
        raise ConnectionLost(
            f"the server has sent nothing for {silence:.0f} s, not even a TIMEOUT record: a read"
            " does not return.",
            "The connection is considered dead. If this repeats, run informix-cdc record and send us"
            " the file.",
            is_silence=True,
        )

    def verdict(self, now: float, facts: LogFacts) -> Stall | None:
        """Return the stall, if there is one; repeat the call with newer facts."""
        if self._log_then is None or facts.asked_at < self._moved_at:
            self._log_then = facts.current if facts.asked_at >= self._moved_at else None
            return None
        has_moved = facts.current >= max(self._log_then, self._reached) + _PAGES
        if not has_moved or now - self._moved_at < self._patience:
            return None
        # do not check the next log file too often: each session is a load on the server
        elapsed = now - self._moved_at
        self._patience = elapsed + min(elapsed, _LONGEST_WAIT_SECONDS)
        return self._stall(facts)

    def _stall(self, facts: LogFacts) -> Stall:
        where = (
            f"only TIMEOUT records arrived for {self.stalled_seconds:.0f} s: the stream is at"
            f" {show(self._reached)}, while the server's log has advanced from"
            f" {show(self._log_then or 0)} to {show(facts.current)}."
        )
        self.stalled_since = self._risen_at
        if self._reopened_at != self._highest:
            self._reopened_at = self._highest
            return Stall(Response.REOPEN, where, "The session is opened once more.")
        next_log = _next_log(self._place, facts)
        remedy = _HEARTBEAT_MISSING if self.has_heartbeat else _STALL_STAYS
        return Stall(Response.WARN, where, remedy, self._place, facts.current, next_log)

    def record_passed_by(self, now: float) -> bool:
        """Record that another session read records in the next log; return whether that is proof.

        It is proof the second time at the same position, because newest changes may arrive late.
        """
        is_proof, self._passed_by_at = self._passed_by_at == self._place, self._place
        self._patience = now - self._moved_at + min(self.stalled_seconds, _LATE_SECONDS)
        return is_proof

    def silence(self, facts: LogFacts | None) -> Stall | None:
        """Return a stall if a session ended in silence at the same position as one before.

        Args:
            facts: the server's facts meanwhile; None if there are none, so that it may be down.
        """
        was_alive = (
            self._contact_at - self._moved_at > self.silent_seconds
        )  # TIMEOUTs arrived meanwhile
        is_again, self._silent_at = self._silent_at == self._place and not was_alive, self._place
        if not is_again or facts is None or facts.current < self._place + _PAGES:
            return None
        where = (
            f"reads at {show(self._place)} did not return, in two sessions, while the server's"
            f" log has advanced to {show(facts.current)}."
        )
        next_log = _next_log(self._place, facts)
        return Stall(
            Response.FAIL, where, _SILENCE_STAYS, self._place, facts.current, next_log, is_silent=True
        )

    def replay_stall(self, now: float, expected: int, facts: LogFacts | None) -> Stall | None:
        """Return the stall of a planned batch that is captured again, if there is one.

        It does not prove a loss: newest changes may arrive late, and a log that ends before `expected`
        may have it in its buffer. What the records prove is checked where they are read.

        Args:
            now: the time.
            expected: COMMTX at which the batch ends.
            facts: the server's facts since the session began; None if there are none.
        """
        if now - self._moved_at < self.replay_seconds:
            return None
        is_first, self._reopened_at = self._reopened_at != self._place, self._place
        response = Response.REOPEN if is_first else Response.FAIL
        current = None if facts is None else facts.current
        next_log = None if facts is None else _next_log(self._place, facts)
        sentence = (
            f"a batch that Spark has planned ends at commit {show(expected)}, but only TIMEOUT"
            f" records arrived for {self.replay_seconds:.0f} s at {show(self._place)};"
            f" {_end_of(current)}."
        )
        remedy = _AGAIN if current is None or current >= expected else _IN_THE_BUFFER
        return Stall(
            response, sentence, remedy, self._place, current, next_log, expected_commit=expected
        )

    def is_news(self, stall: Stall) -> bool:
        """Return whether to report a stall: once for each position, log and degree of certainty."""
        key = (stall.place, log_number(stall.current or 0), stall.is_unreadable)
        is_new = key not in self._logged
        self._logged.add(key)
        return is_new

    def lateness(self, restart: int, facts: LogFacts) -> str:
        """Return a warning if the restart position has little headroom, once for each log file.

        Measured in log files, not in bytes as `LogSpace.headroom`, because a server that hides the
        sizes of its files still reports the oldest one.
        """
        kept = log_number(facts.current) - log_number(facts.oldest)
        ahead = log_number(restart) - log_number(facts.oldest)
        if kept < 2 or ahead >= kept * _LATE_SHARE or self._late_log == log_number(facts.oldest):
            return ""
        self._late_log = log_number(facts.oldest)
        return (
            f"the restart position {show(restart)} is {max(ahead, 0)} log files above the oldest"
            f" of {kept + 1}: it will be overwritten soon, and a restart after that loses data"
        )


_IN_THE_BUFFER = (
    "Start the query again: the rest may still be in the server's log buffer. If the log still"
    " ends there after a checkpoint of the server (onmode -c), it is not the log that the"
    f" query's checkpoint was written for: {NEW_STREAM}."
)


def _end_of(current: int | None) -> str:
    if current is None:
        return "the end of the server's log is unknown"
    return f"the server's log ends at {show(current)}"
