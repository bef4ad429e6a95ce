"""What the capture thread tells the rest of its process about itself, and what it is told.

Rule: whoever reads can wait for a change. Only `taken` and `stop` are said from outside.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from informix_cdc.capture_client.assembly_counters import AssemblyCounters
from informix_cdc.capture_client.change_stream import ChangeStream
from informix_cdc.capture_client.committed import Event, Passed, Transactions
from informix_cdc.capture_client.errors import ConnectionLost, InformixCdcError
from informix_cdc.capture_client.log_events import TRANSACTIONS_LEFT_OUT
from informix_cdc.checkpoints.spool import Spool

logger = logging.getLogger(__name__)

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
    """

    server_clock: int = 0
    target_position: int = 0
    is_caught_up: bool = False
    is_paused: bool = False
    former_streams: set[str] = field(default_factory=set)
    reconnects: int = 0
    stalls: int = 0
    data_losses: int = 0
    ignored_truncates: int = 0
    counters: AssemblyCounters = field(default_factory=AssemblyCounters)
    open_transactions: int = 0
    oldest_open_begin: int | None = None
    open_bytes_in_memory: int = 0
    open_bytes_spilled: int = 0
    contacts: int = 0
    spool: Spool | None = None
    error: BaseException | None = None
    is_stopped: bool = False
    _taken: dict[str, int] = field(default_factory=dict)  # by stream, as is the next one
    _planned: dict[str, int] = field(default_factory=dict)
    _logged: dict[str, int] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def stream(self) -> str | None:
        """The id of the stream that is captured; None before it has begun."""
        return self.spool.stream if self.spool else None

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
        self.open_transactions = assembler.open_count
        self.oldest_open_begin = assembler.lowest_open()
        self.open_bytes_in_memory = assembler.open_bytes_in_memory
        self.open_bytes_spilled = assembler.open_bytes_spilled
        self.is_caught_up |= catches_up
        self._log_what_is_left_out()
        if events or catches_up:
            self.notify()

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

    def take(self, stream: str, commit: int) -> None:
        """Note that Spark asks for what lies above a commit, so it is done with the rest."""
        if commit > self._taken.get(stream, -1):
            self._taken[stream] = commit
            self.notify()

    def plan(self, stream: str, commit: int) -> None:
        """Note that Spark asks for a range up to a commit: that must not wait for room."""
        self._planned[stream] = max(commit, self._planned.get(stream, 0))
        self.notify()

    def has_taken(self, spool: Spool) -> bool:
        """Tell whether Spark is done with everything that a spool holds."""
        return self._taken.get(spool.stream, -1) >= spool.end.commit

    def leave(self, former: Spool) -> None:
        """Forget a stream that is lost; another one begins."""
        self.former_streams.add(former.stream)
        self.data_losses += 1
        self.spool = None
        self.target_position, self.is_caught_up = 0, False
        self.notify()

    def has_left(self, stream: str) -> bool:
        """Tell whether a stream was lost: Spark was done with all its rows before it was left."""
        return stream in self.former_streams

    def bytes_ahead(self) -> int:
        """Return how much lies in the spool that Spark has not taken."""
        if self.spool is None:
            return 0
        stream = self.spool.stream
        return self.spool.bytes_above(max(self._taken.get(stream, 0), self._planned.get(stream, 0)))

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

    def figures(self) -> dict[str, object]:
        """Return what a user may want to see in Spark's progress; no row values, no secrets."""
        spool = self.spool
        return {
            "openTransactions": self.open_transactions,
            "oldestOpenBegin": self.oldest_open_begin,
            "openBytesInMemory": self.open_bytes_in_memory,
            "openBytesSpilled": self.open_bytes_spilled,
            "spoolRows": spool.rows if spool else 0,
            "spoolBytes": spool.size_bytes if spool else 0,
            "isPaused": self.is_paused,
            "reconnects": self.reconnects,
            "stalls": self.stalls,
            "dataLosses": self.data_losses,
            "ignoredTruncates": self.ignored_truncates,
            "isCaughtUp": self.is_caught_up,
            **{_camel(name): count for name, count in asdict(self.counters).items()},
        }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
