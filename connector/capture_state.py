"""What the capture thread tells the rest of its process about itself.

Rule: written by the capture thread, read by anyone; whoever reads can wait for a change.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from informix_cdc.capture_client.committed import Event, Passed, Transactions
from informix_cdc.capture_client.errors import ConnectionLost, InformixCdcError
from informix_cdc.capture_client.transactions import AssemblyCounters, TransactionAssembler
from informix_cdc.checkpoints.spool import Spool

logger = logging.getLogger(__name__)

_LEFT_OUT = {
    "unseen_transactions": "they were open before the stream began",
    "abandoned_transactions": "their id was taken by another before they ended",
}


@dataclass(slots=True)
class CaptureState:
    """Where a capture stands; `is_caught_up` once it has passed everything older than its start."""

    server_clock: int = 0
    target_position: int = 0
    is_caught_up: bool = False
    reconnects: int = 0
    ignored_truncates: int = 0
    counters: AssemblyCounters = field(default_factory=AssemblyCounters)
    open_transactions: int = 0
    oldest_open_begin: int | None = None
    last_contact: float = field(default_factory=time.monotonic)
    spool: Spool | None = None
    error: BaseException | None = None
    is_stopped: bool = False
    _logged: dict[str, int] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def catches_up(self, events: Sequence[Event] | None) -> bool:
        """Tell whether these events are the first that lie beyond the capture's start."""
        return not self.is_caught_up and any(self._is_past_start(event) for event in events or ())

    def observe(
        self, events: Sequence[Event] | None, assembler: TransactionAssembler | None, catches_up: bool
    ) -> None:
        """Note what the latest bytes said, once what they complete is in the spool.

        Args:
            events: None means that there were no bytes.
            assembler: None as long as no session is active.
            catches_up: what `catches_up` said of these events.
        """
        if events is None or assembler is None:
            return
        self.last_contact = time.monotonic()
        self.open_transactions = assembler.open_count
        self.oldest_open_begin = assembler.lowest_open()
        self.is_caught_up |= catches_up
        self._log_what_is_left_out()
        if events:
            self.notify()

    def _log_what_is_left_out(self) -> None:
        for name, why in _LEFT_OUT.items():
            count = getattr(self.counters, name)
            if count > self._logged.get(name, 0):
                logger.warning("%d transactions left out so far: %s", count, why)
                self._logged[name] = count

    def _is_past_start(self, event: Event) -> bool:
        if isinstance(event, Passed):
            # `restart` stays behind while a transaction is open; `commit` moves with every COMMTX
            newest = max(event.position.commit, event.position.restart)
            return event.is_timeout or newest >= self.target_position
        return isinstance(event, Transactions) and (
            int(event.commit_times.max()) > self.server_clock
            or event.position.commit >= self.target_position
        )

    def notify(self) -> None:
        """Wake whoever waits."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Let nobody wait any longer."""
        self.is_stopped = True
        self.notify()

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

    def figures(self) -> dict[str, object]:
        """Return what a user may want to see in Spark's progress; no row values, no secrets."""
        spool = self.spool
        return {
            "openTransactions": self.open_transactions,
            "oldestOpenBegin": self.oldest_open_begin,
            "spoolRows": spool.rows if spool else 0,
            "spoolBytes": spool.size_bytes if spool else 0,
            "reconnects": self.reconnects,
            "ignoredTruncates": self.ignored_truncates,
            "isCaughtUp": self.is_caught_up,
            **{_camel(name): count for name, count in asdict(self.counters).items()},
        }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
