"""Judge whether a stream still moves, from what came over it and what the server says of its log.

Rule: pure; time and facts come in as values.

    dead     no bytes at all, not even TIMEOUT records, for longer than the server may be silent
    stalled  TIMEOUT records only, for minutes, while the server's log has moved on by pages
    late     the restart position lies in the oldest part of the log that the server still has

A server that does not show foreign transactions is told from a stalled one by nothing but a heartbeat,
so that a stall opens the session again once, and then warns, or fails if option `stalled` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from informix_capture_client.catalog import LogSpace
from informix_capture_client.errors import ConnectionLost, InformixCdcError, ServerRefused
from informix_capture_client.positions import log_number, log_page, show

_PAGES = log_page(0, 2)  # the current page may be half full; two more have been written
_LATE_SHARE = 0.2  # of the logs that the server keeps


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
    """A stream that stands still while the server's log moves on."""

    response: Response
    sentence: str
    remedy: str

    def error(self) -> InformixCdcError:
        """Return the error that says the same."""
        kind = ConnectionLost if self.response is Response.REOPEN else ServerRefused
        return kind(self.sentence, self.remedy)


@dataclass(slots=True)
class Liveness:
    """Watches one stream over all its connections.

    Args:
        silent_seconds: how long a living server may send nothing at all.
        stalled_seconds: how long its log may move on while the stream stands still.
        stalled: what a stall that a new session does not mend does: `warn` or `fail`.

    Attributes:
        stalled_since: when it moved last, while it stands still; else None.
    """

    silent_seconds: float
    stalled_seconds: float
    stalled: str = "warn"
    stalled_since: float | None = field(default=None, init=False)
    _contact_at: float = field(default=0.0, init=False)
    _moved_at: float = field(default=0.0, init=False)
    _reached: int = field(default=0, init=False)
    _highest: int = field(default=0, init=False)  # of all connections
    _risen_at: float = field(default=0.0, init=False)  # when it became so
    _log_then: int | None = field(default=None, init=False)
    _reopened_at: int | None = field(default=None, init=False)  # where the stream stood
    _warned_at: int | None = field(default=None, init=False)
    _late_log: int | None = field(default=None, init=False)

    def begin_stream(self) -> None:
        """Forget where the stream stood: another one begins, whose positions may be lower."""
        self._highest, self.stalled_since = 0, None

    def connect(self, now: float) -> None:
        """Begin with another connection."""
        self._contact_at = self._moved_at = now
        self._log_then = None

    def hear(self, now: float, reached: int) -> None:
        """Note that bytes came; `reached` is the highest sequence number seen."""
        self._contact_at = now
        if reached > self._highest:  # a new session that reads what was read before has not moved on
            self._highest, self._risen_at, self.stalled_since = reached, now, None
        if reached != self._reached:
            self._reached, self._moved_at, self._log_then = reached, now, None

    def excuse(self, now: float) -> None:
        """Reset the silence timer: reading was paused on purpose."""
        self._contact_at = self._moved_at = now
        self._log_then = None

    def require_contact(self, now: float) -> None:
        """Refuse to wait for a server that is silent for too long.

        Raises:
            ConnectionLost: not even a TIMEOUT record came.
        """
        if (silence := now - self._contact_at) > self.silent_seconds:
            raise ConnectionLost(
                f"the server has sent nothing for {silence:.0f} s, not even a TIMEOUT record.",
                "The connection is taken for dead.",
            )

    def verdict(self, now: float, facts: LogFacts) -> Stall | None:
        """Return how the stream stands still, if it does; ask again with newer facts."""
        if self._log_then is None or facts.asked_at < self._moved_at:
            self._log_then = facts.current if facts.asked_at >= self._moved_at else None
            return None
        has_moved = facts.current >= max(self._log_then, self._reached) + _PAGES
        if not has_moved or now - self._moved_at < self.stalled_seconds:
            return None
        return self._stall(facts)

    def _stall(self, facts: LogFacts) -> Stall | None:
        where = (
            f"only TIMEOUT records came for {self.stalled_seconds:.0f} s: the stream stands at"
            f" {show(self._reached)}, the server's log has moved from {show(self._log_then or 0)} to"
            f" {show(facts.current)}."
        )
        self.stalled_since = self._risen_at
        if self._reopened_at != self._highest:
            self._reopened_at = self._highest
            return Stall(Response.REOPEN, where, "The session is opened once more.")
        if self._warned_at == self._highest:
            return None
        self._warned_at = self._highest
        remedy = (
            "A new session did not mend it. If this server hides foreign transactions, set option"
            " heartbeatTable; else look at its sessions (syscdcsess) and log."
        )
        return Stall(Response.WARN if self.stalled == "warn" else Response.FAIL, where, remedy)

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
