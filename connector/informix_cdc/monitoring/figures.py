"""The figures of a stream, each declared once: name, kind, meaning, and where it is read.

Rule: the keys of Spark's progress, the names for Prometheus and the manual's table come from here. No
value of a cell and no secret is a figure. Reading them costs the capture nothing: they are looked up
when somebody asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from informix_capture_client.positions import show
from informix_cdc.capture import CaptureState, Counters, Gauges, LogFacts
from informix_cdc.monitoring.lag import (
    FRESH_SECONDS,
    Lag,
    Progress,
    lag_of,
)

PREFIX = "informix_cdc_"
COUNTER, GAUGE, FLAG, POSITION = "counter", "gauge", "flag", "position"
Value = int | float | bool | str | None
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        name: in words with underscores; its unit, where it has one, at the end.
        kind: counter (since the process began), gauge, flag, or position (in the progress only).
        source: where it is read, in a `View`.
        meaning: for the manual and for Prometheus.
        key: in Spark's progress, where that is not the name in camel case.
    """

    name: str
    kind: str
    source: str
    meaning: str
    key: str = ""

    @property
    def progress_key(self) -> str:
        """The key in Spark's progress."""
        first, *rest = self.name.split("_")
        return self.key or first + "".join(part.capitalize() for part in rest)

    @property
    def metric(self) -> str | None:
        """The name for Prometheus; None where it is no number to be charted."""
        if self.kind == POSITION:
            return None
        return f"{PREFIX}{self.name}{'_total' if self.kind == COUNTER else ''}"


class View(NamedTuple):
    """Where figures are read."""

    state: CaptureState
    counters: Counters
    gauges: Gauges
    lag: Lag


FIGURES = (
    Figure(
        "rows", COUNTER, "counters.appended.rows", "rows of committed transactions written to the spool"
    ),
    Figure(
        "transactions", COUNTER, "counters.appended.transactions", "committed transactions with rows"
    ),
    Figure("written_bytes", COUNTER, "counters.appended.size_bytes", "bytes written to the spool"),
    Figure(
        "received_bytes",
        COUNTER,
        "counters.received.received_bytes",
        "bytes read from capture sessions",
    ),
    Figure(
        "received_records",
        COUNTER,
        "counters.received.received_records",
        "CDC records read, those of transactions that are not delivered among them",
    ),
    Figure(
        "timeouts",
        COUNTER,
        "counters.received.timeouts",
        "TIMEOUT records: the server said that nothing more is there; they prove that it lives",
    ),
    Figure(
        "lag_seconds",
        GAUGE,
        "lag.lag_seconds",
        "age of the oldest committed change that Spark has not taken; where it has taken all, how long"
        " ago the end of the log was read",
    ),
    Figure(
        "capture_lag_seconds",
        GAUGE,
        "lag.capture_lag_seconds",
        "how far reading is behind: since the end of the log was read, else since the last time in it;"
        " while the stream stands still, since it moved last",
    ),
    Figure(
        "lag_bytes",
        GAUGE,
        "lag.lag_bytes",
        "bytes of log between what Spark has taken and the server's current position",
    ),
    Figure(
        "capture_lag_bytes",
        GAUGE,
        "lag.capture_lag_bytes",
        "bytes of log between what has been read and the server's current position",
    ),
    Figure(
        "headroom_bytes",
        GAUGE,
        "lag.headroom_bytes",
        "bytes of log that the server may write before a restart from the checkpoint loses data",
    ),
    Figure("log_bytes", GAUGE, "lag.log_bytes", "size of all the server's logical log files"),
    Figure(
        "open_transactions", GAUGE, "gauges.open_transactions", "transactions open in what was read"
    ),
    Figure(
        "oldest_open_seconds",
        GAUGE,
        "lag.oldest_open_seconds",
        "age of the oldest open transaction, 0 without one",
    ),
    Figure(
        "oldest_open_begin",
        POSITION,
        "gauges.oldest_open_begin",
        "where it began (`log:0xpos`), which holds the restart position back",
    ),
    Figure(
        "open_memory_bytes",
        GAUGE,
        "gauges.open_bytes_in_memory",
        "memory that the rows of open transactions take",
        key="openBytesInMemory",
    ),
    Figure(
        "open_spilled_bytes",
        GAUGE,
        "gauges.open_bytes_spilled",
        "disk that the rows of open transactions take",
        key="openBytesSpilled",
    ),
    Figure("spool_rows", GAUGE, "state.spool_rows", "rows in the spool"),
    Figure("spool_bytes", GAUGE, "state.spool_bytes", "bytes in the spool"),
    Figure(
        "spool_ahead_bytes",
        GAUGE,
        "state.bytes_ahead",
        "bytes in the spool that Spark has not taken; maxSpoolBytes bounds them",
    ),
    Figure("paused", FLAG, "gauges.is_paused", "reading waits until Spark has taken more", "isPaused"),
    Figure("pauses", COUNTER, "counters.pauses", "how often reading has waited for Spark"),
    Figure(
        "caught_up",
        FLAG,
        "gauges.is_caught_up",
        "whatever had been committed when the capture began has been read",
        key="isCaughtUp",
    ),
    Figure(
        "reconnects",
        COUNTER,
        "counters.reconnects",
        "outages: a connection was lost, however often it was tried until the stream moved again",
    ),
    Figure(
        "reconnect_attempts",
        COUNTER,
        "counters.reconnect_attempts",
        "attempts to connect in all outages",
    ),
    Figure(
        "stalls", COUNTER, "counters.stalls", "how often the stream stood still while the log moved on"
    ),
    Figure(
        "stalled",
        FLAG,
        "gauges.is_stalled",
        "the stream stands still while the log moves on",
        "isStalled",
    ),
    Figure(
        "data_losses", COUNTER, "counters.data_losses", "losses of data after which the stream went on"
    ),
    Figure(
        "empty_transactions",
        COUNTER,
        "counters.assembly.empty_transactions",
        "committed transactions without rows of captured tables",
    ),
    Figure(
        "rolled_back_transactions",
        COUNTER,
        "counters.assembly.rolled_back_transactions",
        "transactions that were rolled back; none of their rows is delivered",
    ),
    Figure(
        "discarded_rows",
        COUNTER,
        "counters.assembly.discarded_rows",
        "rows undone by a savepoint or a failed statement (DISCARD)",
    ),
    Figure(
        "unseen_transactions",
        COUNTER,
        "counters.assembly.unseen_transactions",
        "transactions left out since they were open before the stream began",
    ),
    Figure(
        "abandoned_transactions",
        COUNTER,
        "counters.assembly.abandoned_transactions",
        "transactions left out since another took their id before they ended",
    ),
    Figure(
        "spilled_transactions",
        COUNTER,
        "counters.assembly.spilled_transactions",
        "transactions put aside",
    ),
    Figure(
        "spilled_bytes", COUNTER, "counters.assembly.spilled_bytes", "bytes of transactions put aside"
    ),
    Figure(
        "ignored_truncates",
        COUNTER,
        "counters.ignored_truncates",
        "TRUNCATEs left out (truncate=ignore)",
    ),
)


def read_figures(
    state: CaptureState, clock: Clock = time.time, monotonic: Clock = time.monotonic
) -> dict[Figure, Value]:
    """Return the value of every figure now; None where it is not known."""
    view = View(state, state.counters, state.gauges, _lag(state, clock(), monotonic()))
    return {figure: attrgetter(figure.source)(view) for figure in FIGURES}


def progress_figures(state: CaptureState) -> dict[str, Value]:
    """Return the figures by their keys in Spark's progress."""
    return {figure.progress_key: _shown(figure, value) for figure, value in read_figures(state).items()}


def _shown(figure: Figure, value: Value) -> Value:
    return show(value) if figure.kind == POSITION and isinstance(value, int) else value


def _lag(state: CaptureState, now: float, monotonic: float) -> Lag:
    facts = state.watch.facts if state.watch else None
    if facts is not None and monotonic - facts.asked_at > FRESH_SECONDS:
        facts = None
    server_now = _server_time(now, monotonic, facts)
    waits, waiting_since = state.counters.appended.waiting_since()
    progress = Progress(
        now=server_now,
        restart=state.spark.restart,
        delivered=state.taken_upto,
        reached=state.gauges.reached,
        read_upto=_read_upto(state, now, monotonic, server_now),
        asked_at=server_now - (monotonic - facts.asked_at) if facts else None,
        waits=waits,
        waiting_since=waiting_since,
        oldest_open=state.gauges.oldest_open_time,
    )
    return lag_of(progress, facts.space if facts else None)


def _read_upto(state: CaptureState, now: float, monotonic: float, server_now: float) -> float | None:
    """Return the server's time up to which the log is read: TIMEOUTs of a stalled one say nothing."""
    stalled_since, heard_at = state.gauges.stalled_since, state.gauges.heard_at
    if stalled_since is not None:
        return server_now - (monotonic - stalled_since)
    return (state.gauges.latest_time or None) if heard_at is None else heard_at + server_now - now


def _server_time(now: float, monotonic: float, facts: LogFacts | None) -> float:
    """Return the time of the clock that commit times come from."""
    if facts is None or not facts.server_clock:
        return now
    return facts.server_clock + monotonic - facts.asked_at
