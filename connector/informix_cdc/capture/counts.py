"""Counters and gauges of a capture.

Rule: only the capture thread writes a value, unless its class documents otherwise; any thread may read.
One object of counters is passed on over all captures of a query; each capture has its own gauges.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from informix_capture_client.positions import RecordPlace
from informix_capture_client.stream import Read
from informix_capture_client.transactions import AssemblyCounters, PreviousRows, StreamCounters
from informix_cdc.object_contents import ContentFigures
from informix_cdc.snapshots import SnapshotFigures
from informix_checkpoints.spool import Segment

_LEFT_OUT = {
    "unseen_transactions": "they were open before the stream began",
    "abandoned_transactions": "another transaction reused their id before they ended",
}


@dataclass(slots=True)
class Appended:
    """Counts since the process began.

    Attributes:
        rows, transactions, size_bytes: of all segments written.
    """

    rows: int = 0
    transactions: int = 0
    size_bytes: int = 0
    _waiting: deque[tuple[RecordPlace, int | None]] = field(default_factory=deque)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def record(self, segment: Segment, first_commit_time: int) -> None:
        """Record a segment and the time of its first COMMTX; ignore one without rows."""
        if segment.rows:
            with self._changing:
                self.rows += segment.rows
                self.transactions += segment.transactions
                self.size_bytes += segment.size_bytes
                self._waiting.append((segment.place, first_commit_time))

    def begin(self, last: RecordPlace | None) -> None:
        """Start with another spool; the commit times of its segments up to a place are unknown."""
        with self._changing:
            self._waiting.clear()
            if last is not None:
                self._waiting.append((last, None))

    def ack(self, up_to: RecordPlace) -> None:
        """Record that Spark has processed everything up to a place."""
        with self._changing:
            while self._waiting and self._waiting[0][0] <= up_to:
                self._waiting.popleft()

    def waiting_since(self) -> tuple[bool, int | None]:
        """Return whether rows wait for Spark, and the commit time of the oldest if known."""
        with self._changing:
            return (True, self._waiting[0][1]) if self._waiting else (False, None)


@dataclass(slots=True)
class Counters:
    """Counts since the query began.

    Attributes:
        reconnects, reconnect_attempts: outages, and connection attempts in all of them.
        stalls: number of times the stream did not advance while the server's log did.
        data_losses: losses after which the query continued; Spark counts that of a planned batch.
        pauses: number of times reading waited for Spark.
        refused_calls, refused_connections: at the port for readers on other hosts: calls with a wrong
            token, and handshakes that failed or were not ended.
    """

    reconnects: int = 0
    reconnect_attempts: int = 0
    stalls: int = 0
    data_losses: int = 0
    pauses: int = 0
    truncates: int = 0
    refused_calls: int = 0
    refused_connections: int = 0
    assembly: AssemblyCounters = field(default_factory=AssemblyCounters)
    received: StreamCounters = field(default_factory=StreamCounters)
    snapshots: SnapshotFigures = field(default_factory=SnapshotFigures)
    contents: ContentFigures = field(default_factory=ContentFigures)
    appended: Appended = field(default_factory=Appended)
    _is_loss_counted: bool = False
    _is_late_begin_logged: bool = False
    _logged: dict[str, int] = field(default_factory=dict)

    @property
    def content_bytes_a_row(self) -> float:
        """Average bytes of large objects per row; contents are read after rows are buffered."""
        return self.contents.read_bytes / max(self.appended.rows, 1)

    def count_loss(self) -> None:
        """Count a data loss; further errors before the next read belong to the same loss."""
        self.data_losses += not self._is_loss_counted
        self._is_loss_counted = True

    def count_refused(self, calls: int, connections: int) -> None:
        """Record how many were refused so far."""
        self.refused_calls, self.refused_connections = calls, connections

    def record_read(self) -> None:
        """Record that something was read: the next loss counts separately."""
        self._is_loss_counted = False

    def newly_left_out(self) -> Iterator[tuple[int, str]]:
        """Yield how many transactions have been skipped, and why, if the number has increased."""
        for name, why in _LEFT_OUT.items():
            count = getattr(self.assembly, name)
            if count > self._logged.get(name, 0):
                self._logged[name] = count
                yield count, why

    def newly_late_begin(self) -> tuple[int, int] | None:
        """Return the first BEGINTX that was read late, and the COMMTX before it, once."""
        late = None if self._is_late_begin_logged else self.assembly.late_begin
        self._is_late_begin_logged |= late is not None
        return late

    def newly_previous(self) -> Iterator[PreviousRows]:
        """Yield the skipped rows of previous tables since the last call."""
        while self.received.previous_rows:
            yield self.received.previous_rows.pop(0)


@dataclass(slots=True)
class Gauges:
    """The current state of one capture.

    Attributes:
        is_caught_up: whether everything committed before the capture began is in the spool.
        is_paused: whether reading waits for Spark.
        altering_tables: number of tables that are not captured because an ALTER has not ended.
        stalled_since: when a stalled stream last advanced, by the monotonic clock.
        contacts: number of reads that returned bytes.
        reached: the highest sequence number read on this connection.
        latest_time: the latest time of a BEGINTX or COMMTX, by the server's clock.
        heard_at: when a TIMEOUT last reported the end of the log, by our clock; None if rows came
            since.
        oldest_open_begin, oldest_open_time: BEGINTX of the oldest open transaction, and its time.
    """

    is_caught_up: bool = False
    is_paused: bool = False
    altering_tables: int = 0
    stalled_since: float | None = None
    contacts: int = 0
    contact_at: float = 0.0
    reached: int = 0
    latest_time: int = 0
    heard_at: float | None = None
    open_transactions: int = 0
    oldest_open_begin: int | None = None
    oldest_open_time: int | None = None
    open_bytes_in_memory: int = 0
    open_bytes_spilled: int = 0
    _timeouts: int = 0

    @classmethod
    def after(cls, counters: Counters) -> Gauges:
        """Return the gauges of a capture that follows others; earlier TIMEOUTs do not count for it."""
        return cls(_timeouts=counters.received.timeouts)

    @property
    def is_stalled(self) -> bool:
        """Whether the stream does not advance although the server's log does."""
        return self.stalled_since is not None

    def record(self, read: Read, timeouts: int, now: float) -> None:
        """Record the latest answer; `timeouts` is the number of TIMEOUT records so far."""
        self.contacts, self.contact_at = self.contacts + 1, now
        self.reached = read.reached or self.reached
        self.latest_time = max(read.latest_time, self.latest_time)
        self.heard_at = time.time() if timeouts > self._timeouts else None
        self._timeouts = max(timeouts, self._timeouts)
        assembler = read.assembler
        self.open_transactions = assembler.open_count
        if (begin := assembler.lowest_open()) != self.oldest_open_begin:
            self.oldest_open_begin, self.oldest_open_time = begin, assembler.lowest_open_time()
        self.open_bytes_in_memory, self.open_bytes_spilled = assembler.open_bytes
