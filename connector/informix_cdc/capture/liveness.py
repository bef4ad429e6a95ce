"""Judge whether a stream still moves, from what came over it and what the server says of its log.

Rule: pure; time and facts come in as values.

    dead        no bytes at all, not even TIMEOUT records, for longer than the server may be silent
    stalled     TIMEOUT records only, for minutes, while the server's log has moved on by pages
    unreadable  a stall, or reads that do not return, that a new session meets at the same place; a
                session that begins in the next log reads that (decision 0027)
    late        the restart position lies in the oldest part of the log that the server still has

A server that does not show foreign transactions is told from a stalled one by nothing but a heartbeat,
or by a session that finds records in the next log. So a stall opens the session again once, and then
warns, or fails if option `stalled` says so. While a planned batch is captured again, nobody is served
by waiting: there it fails, and says that nothing is lost.
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
# An open client saw newest changes come tens of seconds late (docs/assumptions.md, 33).
_LATE_SECONDS = 60.0
_LONGEST_WAIT_SECONDS = 3600.0  # between two looks at a stall that stays

_OUT_OF_IT = (
    "Switch the log (onmode -l): what changes from then on can be read by a stream that begins there;"
    " failOnDataLoss=false goes on there by itself, without what lies between. Or restart the server:"
    " then all of it can be read. Nothing is lost until the log wraps."
)
_UNREADABLE = f"A server can be left so by a session that met the end of its log. {_OUT_OF_IT}"
_STALL_STAYS = (
    "A new session did not mend it. If this server hides foreign transactions and nothing captured has"
    " changed, all is well: option heartbeatTable tells. Else the log cannot be read beyond that place."
    f" {_OUT_OF_IT}"
)
_HEARTBEAT_MISSING = (
    "A new session did not mend it, and no change of the heartbeat table has come by: the log cannot be"
    f" read beyond that place. {_OUT_OF_IT}"
)
_SILENCE_STAYS = (
    "A new session did not mend it. If no read ever returns, run informix-cdc record and send us the"
    f" file. Else the log cannot be read beyond that place. {_OUT_OF_IT}"
)
_AGAIN = "Nothing is lost: start the query again."


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the server said at a time: the end of its log, the oldest, tables without row logging.

    Its clock is in seconds since 1970, 0 where not asked; `space` is None where it does not say.
    `source` is looked up only where a table has no row logging: the digest of what the server has now
    under the names of the tables, empty if that is nothing.
    """

    asked_at: float
    current: int
    oldest: int
    unlogged_tables: tuple[str, ...] = ()
    server_clock: int = 0
    space: LogSpace | None = None
    source: str | None = None


class Response(Enum):
    """What is to be done about a stall."""

    REOPEN = "open the session once more"
    WARN = "say so, and go on"
    FAIL = "end the query"


@dataclass(frozen=True, slots=True)
class Stall:
    """A stream that stands still while the server's log moves on.

    Attributes:
        response: what is to be done.
        sentence, remedy: of its error.
        place: where the stream stands.
        current: where the server's log ends; None if it did not say.
        next_log: where a session may begin behind the log of `place`; None if there is no later log.
        is_silent: whether reads do not even bring TIMEOUT records.
        expected_commit: the end of the planned batch that is captured again, if one is.
        is_last_try: whether one more session shall show that silence is no accident.
        is_unreadable: whether it is proven that no session reads on from `place`.
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
        """Return the error that says the same."""
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
        """Return what to do before it counts as proven."""
        return replace(self, is_last_try=True)

    def proven(self) -> Stall:
        """Return what to say once a session has read records in the next log."""
        came = "reads did not return" if self.is_silent else "only TIMEOUT records came"
        sentence = (
            f"the server's log cannot be read beyond {show(self.place)}: there {came}, in two sessions,"
            f" while the log has moved on to {show(self.current or 0)} and can be read from"
            f" {show(self.next_log or 0)} on."
        )
        return replace(self, sentence=sentence, remedy=_UNREADABLE, is_unreadable=True)

    def loss(self) -> DataLoss:
        """Return the loss that it is where the stream may go on at the next log."""
        return DataLoss(
            f"{self.sentence} What lies from {show(self.place)} to {show(self.next_log or 0)} is lost.",
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
        silent_seconds: how long a living server may send nothing at all.
        stalled_seconds: how long its log may move on while the stream stands still.
        stalled: what a stall that a new session does not mend does: `warn` or `fail`.
        replay_seconds: how long a planned batch may stand still while it is captured again.
        has_heartbeat: whether changes must come by, since a heartbeat table is captured.

    Attributes:
        stalled_since: when it moved last, while it stands still; else None.
    """

    silent_seconds: float
    stalled_seconds: float
    stalled: str = "warn"
    replay_seconds: float = _LATE_SECONDS
    has_heartbeat: bool = False
    stalled_since: float | None = field(default=None, init=False)
    _contact_at: float = field(default=0.0, init=False)
    _empty_reads: int = field(default=0, init=False)  # since then
    _moved_at: float = field(default=0.0, init=False)
    _patience: float = field(default=0.0, init=False)
    _reached: int = field(default=0, init=False)
    _highest: int = field(default=0, init=False)  # of all connections
    _risen_at: float = field(default=0.0, init=False)  # when it became so
    _begins_at: int = field(default=0, init=False)
    _log_then: int | None = field(default=None, init=False)
    _reopened_at: int | None = field(default=None, init=False)  # where the stream stood
    _silent_at: int | None = field(default=None, init=False)
    _passed_by_at: int | None = field(default=None, init=False)
    _logged: set[tuple[int, int, bool]] = field(default_factory=set, init=False)
    _late_log: int | None = field(default=None, init=False)

    def begin_stream(self) -> None:
        """Forget where the stream stood: another one begins, whose positions may be lower."""
        self._highest, self._begins_at, self.stalled_since = 0, 0, None
        self._reopened_at = self._silent_at = self._passed_by_at = None

    def connect(self, now: float, begins_at: int = 0) -> None:
        """Begin with another connection, whose session reads from a position on."""
        self._contact_at = self._moved_at = now
        self._patience, self._empty_reads = self.stalled_seconds, 0
        self._begins_at = max(begins_at, self._begins_at)
        self._log_then = None

    @property
    def _place(self) -> int:
        """Where the stream stands: a session that shows nothing stands where it began."""
        return max(self._highest, self._begins_at)

    def on_read(self, now: float, reached: int) -> None:
        """Record that bytes came; `reached` is the highest sequence number seen."""
        self._contact_at, self._empty_reads = now, 0
        if reached > self._highest:  # a new session that reads what was read before has not moved on
            self._highest, self._risen_at, self.stalled_since = reached, now, None
        if reached != self._reached:
            self._reached, self._moved_at, self._log_then = reached, now, None
            self._patience = self.stalled_seconds

    def reset_deadlines(self, now: float) -> None:
        """Reset the silence timer: reading was paused on purpose."""
        self._contact_at = self._moved_at = now
        self._empty_reads, self._log_then = 0, None

    def require_contact(self, now: float, empty_reads: int = 0) -> None:
        """Refuse to wait for a server that is silent for too long.

        Args:
            now: the time.
            empty_reads: how many reads came back without a byte.

        Raises:
            ConnectionLost: not even a TIMEOUT record came.
        """
        self._empty_reads += empty_reads
        if (silence := now - self._contact_at) <= self.silent_seconds:
            return
        if self._empty_reads:
            raise ConnectionLost(
                f"ifx_lo_read answered {self._empty_reads:,} times in {silence:.0f} s, but gave no"
                " bytes, not even a TIMEOUT record.",
                "Run informix-cdc record and send us the file.",
            )
        raise ConnectionLost(
            f"the server has sent nothing for {silence:.0f} s, not even a TIMEOUT record: a read does"
            " not return.",
            "The connection is taken for dead.",
            is_silence=True,
        )

    def verdict(self, now: float, facts: LogFacts) -> Stall | None:
        """Return how the stream stands still, if it does; ask again with newer facts."""
        if self._log_then is None or facts.asked_at < self._moved_at:
            self._log_then = facts.current if facts.asked_at >= self._moved_at else None
            return None
        has_moved = facts.current >= max(self._log_then, self._reached) + _PAGES
        if not has_moved or now - self._moved_at < self._patience:
            return None
        # who looks into the next log must not do so all the time: a session costs the server something
        elapsed = now - self._moved_at
        self._patience = elapsed + min(elapsed, _LONGEST_WAIT_SECONDS)
        return self._stall(facts)

    def _stall(self, facts: LogFacts) -> Stall:
        where = (
            f"only TIMEOUT records came for {self.stalled_seconds:.0f} s: the stream stands at"
            f" {show(self._reached)}, the server's log has moved from {show(self._log_then or 0)} to"
            f" {show(facts.current)}."
        )
        self.stalled_since = self._risen_at
        if self._reopened_at != self._highest:
            self._reopened_at = self._highest
            return Stall(Response.REOPEN, where, "The session is opened once more.")
        response = Response.WARN if self.stalled == "warn" else Response.FAIL
        next_log = _next_log(self._place, facts)
        remedy = _HEARTBEAT_MISSING if self.has_heartbeat else _STALL_STAYS
        return Stall(response, where, remedy, self._place, facts.current, next_log)

    def record_passed_by(self, now: float) -> bool:
        """Record that another session has read records in the next log; tell whether that is proof.

        It is the second time, if the stream still stands there: the newest changes may come late.
        """
        is_proof, self._passed_by_at = self._passed_by_at == self._place, self._place
        self._patience = now - self._moved_at + min(self.stalled_seconds, _LATE_SECONDS)
        return is_proof

    def silence(self, facts: LogFacts | None) -> Stall | None:
        """Return whether a session that has just ended in silence stands still where one did before.

        Args:
            facts: what the server said meanwhile; None if it said nothing, so may be dead.
        """
        was_alive = self._contact_at - self._moved_at > self.silent_seconds  # TIMEOUTs came meanwhile
        is_again, self._silent_at = self._silent_at == self._place and not was_alive, self._place
        if not is_again or facts is None or facts.current < self._place + _PAGES:
            return None
        where = (
            f"reads at {show(self._place)} did not return, in two sessions, while the server's log has"
            f" moved on to {show(facts.current)}."
        )
        next_log = _next_log(self._place, facts)
        return Stall(
            Response.FAIL, where, _SILENCE_STAYS, self._place, facts.current, next_log, is_silent=True
        )

    def replay_stall(self, now: float, expected: int, facts: LogFacts | None) -> Stall | None:
        """Return how a planned batch stands still that is captured again, if it does.

        That proves no loss: the newest changes may come late, and a log that ends before `expected` may
        have it in its buffer. What the records prove is checked where they are read.

        Args:
            now: the time.
            expected: the COMMTX at which the batch ends.
            facts: what the server said since the session began; None if it said nothing.
        """
        if now - self._moved_at < self.replay_seconds:
            return None
        is_first, self._reopened_at = self._reopened_at != self._place, self._place
        response = Response.REOPEN if is_first else Response.FAIL
        current = None if facts is None else facts.current
        next_log = None if facts is None else _next_log(self._place, facts)
        sentence = (
            f"a batch that Spark has planned ends at commit {show(expected)}, but only TIMEOUT records"
            f" came for {self.replay_seconds:.0f} s at {show(self._place)}; {_end_of(current)}."
        )
        remedy = _AGAIN if current is None or current >= expected else _IN_THE_BUFFER
        return Stall(
            response, sentence, remedy, self._place, current, next_log, expected_commit=expected
        )

    def is_news(self, stall: Stall) -> bool:
        """Tell whether a stall was not told yet: once for each place, log and degree of certainty."""
        key = (stall.place, log_number(stall.current or 0), stall.is_unreadable)
        is_new = key not in self._logged
        self._logged.add(key)
        return is_new

    def lateness(self, restart: int, facts: LogFacts) -> str:
        """Return a warning when the restart position has little headroom, once for each log.

        In log files, not in bytes as `LogSpace.headroom`: a server that hides the sizes of its files
        names its oldest one all the same.
        """
        kept = log_number(facts.current) - log_number(facts.oldest)
        ahead = log_number(restart) - log_number(facts.oldest)
        if kept < 2 or ahead >= kept * _LATE_SHARE or self._late_log == log_number(facts.oldest):
            return ""
        self._late_log = log_number(facts.oldest)
        return (
            f"the restart position {show(restart)} lies {max(ahead, 0)} logs above the oldest one"
            f" of {kept + 1}: it will be overwritten soon, and a restart after that is data loss"
        )


_IN_THE_BUFFER = (
    "Start the query again: the rest may still be in the server's log buffer. If the log's end stays"
    " there after a checkpoint (onmode -c), this is not the log that the checkpoint was written for:"
    f" {NEW_STREAM}."
)


def _end_of(current: int | None) -> str:
    if current is None:
        return "the server does not say where its log ends"
    return f"the server's log ends at {show(current)}"
