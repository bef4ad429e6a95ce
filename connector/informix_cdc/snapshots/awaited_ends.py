"""Wait until transactions have ended on the server, and until the stream has shown that.

Rule: the log must show it. Silence says so only near the log's end and after a minute, and only where a
commit is in the log before its locks go: a stalled stream is silent too, with changes still to come.
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
from informix_capture_client.stream import Read
from informix_capture_client.transactions import PositionPassed
from informix_cdc.options import SourceOptions
from informix_cdc.server import open_catalog

ASK_SECONDS = 1.0
# A stream that shows nothing more for so long, and stands so near to the log's end, has shown what had
# been committed (docs/assumptions.md, 33).
QUIET_SECONDS = 60.0
_NEAR = log_page(0, 4)


class ServerSays(NamedTuple):
    """What is open on the server, and then its clock and where its log ends."""

    still_open: frozenset[int]
    clock: int
    log_end: int


def ask_server(options: SourceOptions) -> ServerSays:
    """Ask who is open, and where the log ends, over a connection of its own."""
    with open_catalog(options) as catalog:
        still_open = catalog.open_transactions()
        return ServerSays(still_open, catalog.clock(), page_after(catalog.current_position()))


@dataclass(slots=True)
class QuietTime:
    """Measures how long a stream has returned only TIMEOUTs; it must see every answer."""

    _since: float | None = field(default=None, init=False)

    def restart(self) -> None:
        """Count from the next TIMEOUT on."""
        self._since = None

    def seconds(self, answer: Read, now: float) -> float:
        """Return the length of the silence up to this answer; 0 if the answer holds another record."""
        if answer.block is None or not (answer.block.raw.kinds == RecordKind.TIMEOUT).all():
            self._since = None
            return 0.0
        if self._since is None:
            self._since = now
        return now - self._since


@dataclass(slots=True)
class AwaitedEnds:
    """Asks now and then; once all have ended, the stream must pass what the log was then.

    Args:
        ask: asks the server.
        is_buffered: whether commits may be in no log that can be read.
        clock: a monotonic clock.
        silent_seconds: of silence that count wherever the stream stands: only where nothing is lost by
            a stream that is stalled. Else it must stand near the log's end, for a minute.
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
        """Measure the silence; every answer must come here or to `are_passed`."""
        self._quiet_seconds = self._quiet.seconds(answer, self.clock())

    @property
    def have_ended(self) -> bool:
        """Whether the server has said that all have ended: every position counts from here on."""
        return self._ended is not None

    def are_passed(self, answer: Read, is_open: Callable[[ServerSays], bool]) -> bool:
        """Tell whether the stream has passed the end of all of them.

        Args:
            answer: of the stream.
            is_open: tells, by what the server says, whether one of them is open still.
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
    """Tell whether the stream has shown what was committed when the log ended there.

    Args:
        answer: of the stream.
        log_end: beyond every page that was written then, as `syslogs` counts pages.
        quiet_seconds: how long the stream has shown nothing.
        is_buffered: whether commits may be in the log buffer: they lie behind the pages that were
            written (docs/assumptions.md, 15), and silence says nothing of them.
    """
    if is_buffered:
        return answer.reached >= log_end + UNFLUSHED_LOG
    return answer.reached >= (log_end - _NEAR if quiet_seconds >= QUIET_SECONDS else log_end)


def is_idle(answer: Read) -> bool:
    """Tell whether the server has nothing more; a stream that has not begun has no events.

    Only what came last says so: behind a TIMEOUT of before there may be more that is on its way.
    """
    if answer.block is not None:
        return bool((answer.block.raw.kinds[-1:] == RecordKind.TIMEOUT).any())
    return any(isinstance(event, PositionPassed) and event.is_timeout for event in answer.events[-1:])
