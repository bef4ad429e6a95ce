"""Wait until transactions have ended on the server, and until the stream has passed their ends.

Rule: the log must show it. Silence counts as proof only near the end of the log and after a minute, and
only if a commit is in the log before its locks are released: a stalled stream is silent too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from informix_capture_client.catalog import UNFLUSHED_LOG
from informix_capture_client.positions import log_page, page_after
from informix_capture_client.records import RecordKind
from informix_capture_client.stream import Answer, Read
from informix_capture_client.transactions import PositionPassed
from informix_cdc.options import ConnectionOptions
from informix_cdc.server import open_catalog

ASK_SECONDS = 1.0
# A stream that returns nothing more for so long, near the end of the log, has returned everything that
# was committed (docs/assumptions.md, 33).
QUIET_SECONDS = 60.0
_NEAR = log_page(0, 4)


class ServerSays(NamedTuple):
    """The open transactions on the server, then its time and the end of its log."""

    still_open: frozenset[int]
    clock: int
    log_end: int


def ask_server(connection: ConnectionOptions) -> ServerSays:
    """Read the open transactions and the end of the log over a separate connection."""
    with open_catalog(connection) as catalog:
        still_open = catalog.open_transactions()
        return ServerSays(still_open, catalog.clock(), page_after(catalog.current_position()))


@dataclass(slots=True)
class QuietTime:
    """Measures how long a stream has returned only TIMEOUTs; it must receive every answer."""

    _since: float | None = field(default=None, init=False)

    def restart(self) -> None:
        """Measure from the next TIMEOUT."""
        self._since = None

    def seconds(self, answer: Read, now: float) -> float:
        """Return the length of the silence up to this answer; 0 if the answer has another record."""
        if not answer.is_silent:
            self._since = None
            return 0.0
        if self._since is None:
            self._since = now
        return now - self._since


@dataclass(slots=True)
class AwaitedEnds:
    """Queries the server at intervals; once all have ended, the stream must pass the log's end of then.

    Args:
        ask: queries the server.
        is_buffered: whether commits may be missing in the readable log for a while.
        clock: a monotonic clock.
        silent_seconds: length of a silence that counts wherever the stream is; only for uses where a
            stalled stream loses nothing. By default the stream must be near the log's end, for a
            minute.
    """

    ask: Callable[[], ServerSays]
    is_buffered: bool
    clock: Callable[[], float] = time.monotonic
    silent_seconds: float = math.inf
    _asked_at: float = field(default=-ASK_SECONDS, init=False)
    _ended: tuple[float, ServerSays] | None = field(default=None, init=False)
    _quiet: QuietTime = field(default_factory=QuietTime, init=False)
    _quiet_seconds: float = field(default=0.0, init=False)

    def watch(self, answer: Read) -> None:
        """Measure the silence; every answer must be passed to this or to `are_passed`."""
        self._quiet_seconds = self._quiet.seconds(answer, self.clock())

    @property
    def have_ended(self) -> bool:
        """Whether the server has reported that all have ended: every position counts from here on."""
        return self._ended is not None

    def are_passed(self, answer: Read, is_open: Callable[[ServerSays], bool]) -> bool:
        """Return whether the stream has passed the end of all of them.

        Args:
            answer: of the stream.
            is_open: returns whether one of them is still open, given the server's facts.
        """
        self.watch(answer)
        if self._ended is None:
            self._ask_if_due(is_open)
            return False
        since, then = self._ended
        # Records written before the server answered may still arrive: silence counts from then on.
        seconds = min(self._quiet_seconds, self.clock() - since)
        if answer.latest_time > then.clock or (seconds >= self.silent_seconds and not self.is_buffered):
            return True
        return has_passed(answer, then.log_end, seconds, is_buffered=self.is_buffered)

    def _ask_if_due(self, is_open: Callable[[ServerSays], bool]) -> None:
        if self.clock() - self._asked_at < ASK_SECONDS:
            return
        self._asked_at = self.clock()
        says = self.ask()
        if not is_open(says):
            self._ended = (self.clock(), says)


def has_passed(answer: Read, log_end: int, quiet_seconds: float, *, is_buffered: bool) -> bool:
    """Return whether the stream has passed everything committed when the log ended there.

    Args:
        answer: of the stream.
        log_end: after every page that was written then, as `syslogs` counts pages.
        quiet_seconds: length of the stream's silence.
        is_buffered: whether commits may be in the log buffer, after the written pages
            (docs/assumptions.md, 15); silence proves nothing about them.
    """
    if is_buffered:
        return answer.reached >= log_end + UNFLUSHED_LOG
    return answer.reached >= (log_end - _NEAR if quiet_seconds >= QUIET_SECONDS else log_end)


def silent_since(answer: Answer) -> float | None:
    """Return when everything that the stream has passed was in the log; None if that is not known.

    A read that waited in vain has passed no commit of a captured table: all of them were sent before it
    began.
    """
    if not isinstance(answer, Read) or not answer.is_silent:
        return None
    return answer.began_at or None


def is_idle(answer: Read) -> bool:
    """Return whether the server has nothing more; a stream that has not begun has no events.

    Only the last record counts: after an earlier TIMEOUT more records may have arrived.
    """
    if answer.block is not None:
        return bool((answer.block.raw.kinds[-1:] == RecordKind.TIMEOUT).any())
    return any(isinstance(event, PositionPassed) and event.is_timeout for event in answer.events[-1:])
