"""The figures of a stream, each declared once: name, kind, description and source.

Rule: the keys in Spark's progress, the Prometheus names and the table in the manual are generated from
here. A figure never contains a value of a row or a secret. Figures do not slow down the capture: they
are read only on request.
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


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        name: words with underscores; ends with the unit, if there is one.
        kind: counter (since the process started), gauge, flag, or position (in the progress only).
        source: where it is read, in a `View`.
        meaning: description for the manual and for Prometheus.
        key: key in Spark's progress, if it is not the name in camel case.
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
        """The name for Prometheus; None if it is not a number."""
        if self.kind == POSITION:
            return None
        return f"{PREFIX}{self.name}{'_total' if self.kind == COUNTER else ''}"


CONTENT_FIGURES = tuple(
    Figure(f"lob_{name}", COUNTER, f"counters.contents.{name}", meaning)
    for name, meaning in (
        ("read", "large objects whose content was read"),
        ("gone", "large objects that no longer existed when they were opened"),
        ("too_large", "large objects not read because they exceed lobMaxBytes"),
        ("not_read", "large objects not read because lobReadSeconds expired"),
        ("read_bytes", "bytes of large-object contents read"),
    )
)


FigureValue = int | float | bool | str | None
_Clock = Callable[[], float]


class _View(NamedTuple):
    """The sources of figures."""

    state: CaptureState
    counters: Counters
    gauges: Gauges
    lag: Lag


INFO, START_TIME = f"{PREFIX}info", f"{PREFIX}start_time_seconds"
# Facts about the query itself, for Prometheus only: name and description of gauges.
ABOUT = {
    INFO: "1, with the labels `version` (of informix-cdc), `dialect` and `server_version`"
    " (empty until the server has reported it)",
    START_TIME: "UNIX time, in seconds, when the query's process started to serve its metrics",
}

FIGURES = (
    Figure(
        "rows", COUNTER, "counters.appended.rows", "rows of committed transactions written to the spool"
    ),
    Figure(
        "transactions",
        COUNTER,
        "counters.appended.transactions",
        "committed transactions with rows, written to the spool",
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
        "CDC records read, including those of transactions that are not delivered",
    ),
    Figure(
        "timeouts",
        COUNTER,
        "counters.received.timeouts",
        "TIMEOUT records read: the server is up and had nothing else to send",
    ),
    Figure(
        "lag_seconds",
        GAUGE,
        "lag.lag_seconds",
        "seconds since the commit of the oldest change that Spark has not read; if Spark has"
        " read all changes, seconds since the capture last read the end of the log",
    ),
    Figure(
        "capture_lag_seconds",
        GAUGE,
        "lag.capture_lag_seconds",
        "seconds that the capture is behind the server: since it last read the end of the log,"
        " else since the latest time read from the log; while the stream is stalled, since it"
        " last advanced",
    ),
    Figure(
        "lag_bytes",
        GAUGE,
        "lag.lag_bytes",
        "bytes of log between the position that Spark has read and the server's current position",
    ),
    Figure(
        "capture_lag_bytes",
        GAUGE,
        "lag.capture_lag_bytes",
        "bytes of log between the position that the capture has read and the server's current position",
    ),
    Figure(
        "headroom_bytes",
        GAUGE,
        "lag.headroom_bytes",
        "bytes of log that the server can write before it overwrites the checkpoint's restart"
        " position; after that a restart loses data",
    ),
    Figure(
        "log_bytes", GAUGE, "lag.log_bytes", "total size in bytes of the server's logical log files"
    ),
    Figure(
        "open_transactions",
        GAUGE,
        "gauges.open_transactions",
        "open transactions in the log read so far",
    ),
    Figure(
        "oldest_open_seconds",
        GAUGE,
        "lag.oldest_open_seconds",
        "seconds since the oldest open transaction began; 0 if none is open",
    ),
    Figure(
        "oldest_open_begin",
        POSITION,
        "gauges.oldest_open_begin",
        "position (`log:0xpos`) of the oldest open transaction's BEGINTX; the restart position"
        " cannot advance past it",
    ),
    Figure(
        "open_memory_bytes",
        GAUGE,
        "gauges.open_bytes_in_memory",
        "bytes of memory used by rows of open transactions",
        key="openBytesInMemory",
    ),
    Figure(
        "open_spilled_bytes",
        GAUGE,
        "gauges.open_bytes_spilled",
        "bytes on disk used by rows of open transactions, spilled because of maxTransactionMemoryBytes",
        key="openBytesSpilled",
    ),
    Figure("spool_rows", GAUGE, "state.spool_rows", "rows in the spool"),
    Figure("spool_bytes", GAUGE, "state.spool_bytes", "bytes in the spool"),
    Figure(
        "spool_ahead_bytes",
        GAUGE,
        "state.bytes_ahead",
        "bytes in the spool that Spark has not read; limited by maxSpoolBytes",
    ),
    Figure(
        "paused",
        FLAG,
        "gauges.is_paused",
        "whether the capture waits for Spark because maxSpoolBytes is exceeded",
        "isPaused",
    ),
    Figure(
        "pauses",
        COUNTER,
        "counters.pauses",
        "number of times the capture started to wait for Spark",
    ),
    Figure(
        "caught_up",
        FLAG,
        "gauges.is_caught_up",
        "whether everything committed before the capture started has been read",
        key="isCaughtUp",
    ),
    Figure(
        "reconnects",
        COUNTER,
        "counters.reconnects",
        "lost connections; an outage counts once, however many reconnect attempts it takes",
    ),
    Figure(
        "reconnect_attempts",
        COUNTER,
        "counters.reconnect_attempts",
        "reconnect attempts in all outages",
    ),
    Figure(
        "stalls",
        COUNTER,
        "counters.stalls",
        "number of times the stream did not advance for two minutes while the server's log did",
    ),
    Figure(
        "stalled",
        FLAG,
        "gauges.is_stalled",
        "whether the stream does not advance although the server's log does",
        "isStalled",
    ),
    Figure(
        "altering_tables",
        GAUGE,
        "gauges.altering_tables",
        "tables that the stream does not capture, because informix-cdc alter has not ended",
    ),
    Figure(
        "data_losses",
        COUNTER,
        "counters.data_losses",
        "data losses after which the stream continued (onDataLoss)",
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
        "transactions that were rolled back; none of their rows are delivered",
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
        "transactions skipped because they began before the stream did",
    ),
    Figure(
        "abandoned_transactions",
        COUNTER,
        "counters.assembly.abandoned_transactions",
        "open transactions discarded because a new transaction reused their id before their end"
        " was read",
    ),
    Figure(
        "spilled_transactions",
        COUNTER,
        "counters.assembly.spilled_transactions",
        "open transactions whose rows were spilled to disk",
    ),
    Figure(
        "spilled_bytes",
        COUNTER,
        "counters.assembly.spilled_bytes",
        "bytes of rows of open transactions that were spilled to disk",
    ),
    Figure(
        "truncates",
        COUNTER,
        "counters.truncates",
        "TRUNCATEs of captured tables",
    ),
    Figure(
        "snapshot_rows",
        COUNTER,
        "counters.snapshots.rows",
        "snapshot rows written to the spool",
    ),
    Figure(
        "snapshot_dropped_rows",
        COUNTER,
        "counters.snapshots.dropped_rows",
        "snapshot rows discarded because the stream has newer ones",
    ),
    Figure(
        "snapshot_chunks",
        COUNTER,
        "counters.snapshots.chunks",
        "snapshot chunks added to the stream",
    ),
    Figure(
        "snapshot_repeated_chunks",
        COUNTER,
        "counters.snapshots.thrown_away",
        "snapshot chunks read again because more than a million keys changed meanwhile",
    ),
    Figure(
        "snapshot_percent",
        GAUGE,
        "counters.snapshots.percent",
        "progress of all running snapshots, based on the row counts in the tables' statistics;"
        " unknown if a table has none, and without a snapshot",
    ),
    Figure(
        "snapshot_tables_left",
        GAUGE,
        "counters.snapshots.tables_left",
        "tables whose snapshot is not finished",
    ),
    Figure(
        "snapshot_touched_keys",
        GAUGE,
        "counters.snapshots.touched_keys",
        "changed keys remembered so that their rows are removed from waiting chunks",
    ),
    Figure(
        "snapshot_waiting_seconds",
        GAUGE,
        "counters.snapshots.waiting_seconds",
        "seconds that the oldest chunk has waited for the stream to pass it; 0 if none waits",
    ),
    *CONTENT_FIGURES,
)


def read_figures(state: CaptureState, clock: _Clock = time.time) -> dict[Figure, FigureValue]:
    """Return the current value of every figure; None if it is unknown."""
    view = _View(state, state.counters, state.gauges, _lag(state, clock(), state.clock()))
    return {figure: attrgetter(figure.source)(view) for figure in FIGURES}


def progress_figures(state: CaptureState) -> dict[str, FigureValue]:
    """Return the figures by their keys in Spark's progress."""
    return {figure.progress_key: _shown(figure, value) for figure, value in read_figures(state).items()}


def _shown(figure: Figure, value: FigureValue) -> FigureValue:
    return show(value) if figure.kind == POSITION and isinstance(value, int) else value


def _lag(state: CaptureState, now: float, monotonic: float) -> Lag:
    facts = state.watch.facts if state.watch else None
    if facts is not None and monotonic - facts.asked_at > FRESH_SECONDS:
        facts = None
    server_now = _server_time(now, monotonic, facts)
    waits, waiting_since = state.counters.appended.waiting_since()
    progress = Progress(
        now=server_now,
        restart=state.reader.taken.restart or None,
        delivered=state.taken_up_to,
        reached=state.gauges.reached,
        read_up_to=_read_up_to(state, now, monotonic, server_now),
        asked_at=server_now - (monotonic - facts.asked_at) if facts else None,
        waits=waits,
        waiting_since=waiting_since,
        oldest_open=state.gauges.oldest_open_time,
    )
    return lag_of(progress, facts.space if facts else None)


def _read_up_to(state: CaptureState, now: float, monotonic: float, server_now: float) -> float | None:
    """Return the server time up to which the log is read; TIMEOUTs of a stalled stream do not count."""
    stalled_since, heard_at = state.gauges.stalled_since, state.gauges.heard_at
    if stalled_since is not None:
        return server_now - (monotonic - stalled_since)
    return (state.gauges.latest_time or None) if heard_at is None else heard_at + server_now - now


def _server_time(now: float, monotonic: float, facts: LogFacts | None) -> float:
    """Return the time of the clock that commit times come from."""
    if facts is None or not facts.server_clock:
        return now
    return facts.server_clock + monotonic - facts.asked_at
