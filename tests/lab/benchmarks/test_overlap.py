"""What a round trip of 1 ms leaves of the rate: 256 records in a read are at most 256 k a second.

While a read waits, the reads before it are to be decoded. Two processes on two cores, the log written
beforehand; the ceiling is that of the round trips alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from informix_capture_client.positions import Position
from informix_capture_client.shapes import change_count
from informix_cdc.capture.state import CaptureState
from informix_checkpoints.spool.segments import Segment
from lab.benchmarks.emulated_source import ROWS_PER_TRANSACTION, Plan
from lab.benchmarks.measuring import Report, Timing
from lab.benchmarks.pipeline import START, run_capture
from lab.benchmarks.processes import EmulatedSource, emulated_source
from lab.benchmarks.sessions import begin_session, connect, read_bytes_only
from lab.benchmarks.workload import RECORDS_PER_READ, catalog_table
from odbc_driver.build import build_drivers

LATENCY_MS = 1
ROWS = 500_000
RECORDS = ROWS + 2 * ROWS // ROWS_PER_TRANSACTION
CEILING = RECORDS_PER_READ * 1000 / LATENCY_MS
REPEATS = 3


class _Sink:
    """Stands in for a spool: takes the batches, counts their rows and drops them."""

    stream = "bench"
    manifest = SimpleNamespace(high_watermark=START, segments_above=lambda _: ())

    def __init__(self) -> None:
        self.rows = 0
        self.is_full = threading.Event()

    def append(
        self, _schema: pa.Schema, batches: Iterable[pa.RecordBatch], position: Position
    ) -> Segment:
        rows = sum(map(change_count, batches))
        self.rows += rows
        if self.rows >= ROWS:
            self.is_full.set()
        return Segment("", rows, 0, 0, 0, 0, position)

    def advance(self, _position: object) -> None:
        return None


def decode_all(source: EmulatedSource, driver: str) -> float:
    """Return how long the capture loop takes from the first read to the last Arrow batch."""
    sink: Any = _Sink()
    with closing(connect(source, driver)) as transport:
        session = begin_session(transport)
        begun_at = time.perf_counter()
        run_capture(session, [catalog_table()], sink, sink.is_full, state=CaptureState())
        seconds = time.perf_counter() - begun_at
    assert sink.rows == ROWS
    return seconds


def share(timing: Timing) -> str:
    """Return the rate as a share of the ceiling, of the best run."""
    return f"{RECORDS / min(timing.seconds) / CEILING:.0%} of {CEILING / 1000:.0f} k/s"


def test_reading_and_decoding_overlap(report: Report) -> None:
    drivers = {"ODBC": str(build_drivers().narrow), "the socket": ""}
    with emulated_source(Plan(backlog_rows=ROWS, latency_ms=LATENCY_MS)) as source:
        source.start_writing()
        source.wait_until_written()
        read_bytes_only(source)  # lets the emulator encode its log
        for name, driver in drivers.items():
            reads = Timing(tuple(read_bytes_only(source, driver) for _ in range(REPEATS)))
            decoded = Timing(tuple(decode_all(source, driver) for _ in range(REPEATS)))
            what = f"{LATENCY_MS} ms, {RECORDS_PER_READ} records a read, over {name}"
            report.add("overlap", f"{what}: reads alone", reads.rate(RECORDS), share(reads))
            report.add("overlap", f"{what}: decoded to Arrow", decoded.rate(RECORDS), share(decoded))
