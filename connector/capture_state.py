"""What the capture thread tells the rest of its process about itself.

Rule: written by the capture thread, read by anyone; whoever reads can wait for a change.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from informix_cdc.capture_client.errors import InformixCdcError
from informix_cdc.capture_client.transactions import (
    AssemblyCounters,
    Event,
    Passed,
    Transaction,
    TransactionAssembler,
)
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
    _logged: dict[str, int] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def observe(self, events: Sequence[Event] | None, assembler: TransactionAssembler | None) -> None:
        """Note what the latest bytes said; `events` None means that there were none."""
        if events is None or assembler is None:
            return
        self.last_contact = time.monotonic()
        self.open_transactions = assembler.open_count
        self.oldest_open_begin = assembler.lowest_open
        self._log_what_is_left_out()
        if not self.is_caught_up and any(self._is_past_start(event) for event in events):
            self.is_caught_up = True
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
            return event.is_timeout or event.position.restart >= self.target_position
        return isinstance(event, Transaction) and (
            event.commit.commit_time > self.server_clock
            or event.commit.sequence_number >= self.target_position
        )

    def notify(self) -> None:
        """Wake whoever waits."""
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, is_true: Callable[[], bool], timeout_seconds: float | None) -> bool:
        """Wait until a condition holds, or the capture has failed; tell whether the condition holds.

        Raises:
            InformixCdcError: what ended the capture.
        """
        with self._changed:
            held = self._changed.wait_for(lambda: self.error is not None or is_true(), timeout_seconds)
        self.raise_error()
        return held

    def raise_error(self) -> None:
        """Raise what ended the capture, if it has ended so."""
        if isinstance(self.error, InformixCdcError):
            raise self.error.with_traceback(None) from None  # Spark shows nothing but this text
        if self.error is not None:
            raise RuntimeError("the capture thread failed; this is a bug") from self.error

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
