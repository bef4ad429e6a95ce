"""A reader far away from a shared capture, beside a capture far away from the server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.capture.driving import anchor_of, next_offset
from harness.capture.scraping import free_port
from harness.capture.shared import CaptureSettings, RunningCapture, options_of_reader
from harness.runs.patience import wait_until
from informix_cdc.options.source import SourceOptions
from informix_cdc.reading import published_schema
from informix_cdc.spark.reader import InformixStreamReader
from informix_cdc.spark.schema import to_spark
from lab.benchmarks.emulated_source import Plan
from lab.benchmarks.measuring import Report, Timing
from lab.benchmarks.processes import EmulatedSource, answer_of, emulated_source, program

ROUND_TRIP_MS = 30
ROWS_OVER_THE_SERVER, ROWS_OVER_FLIGHT = 60_000, 1_000_000


@contextmanager
def far_away(port: int) -> Iterator[int]:
    """Return a port that leads to another one, with a long round trip."""
    with program("delay_line", port, ROUND_TRIP_MS) as process:
        yield answer_of(process)


@contextmanager
def capture_of(
    source: EmulatedSource, port: int, folder: Path, listen: int
) -> Iterator[RunningCapture]:
    given = {**source.options(), "port": str(port), "spoolPath": str(folder)}
    running = RunningCapture(CaptureSettings.of({"listen": f"127.0.0.1:{listen}"}, given))
    try:
        wait_until(running.has_published)
        yield running
    finally:
        running.stop()


def seconds_of_capture(folder: Path) -> float:
    """Return how long a capture that is far from its server takes."""
    with (
        emulated_source(Plan(backlog_rows=ROWS_OVER_THE_SERVER)) as source,
        far_away(source.port) as port,
        capture_of(source, port, folder, free_port()) as running,
    ):
        state = running.process.state
        begun = time.perf_counter()
        source.start_writing()
        wait_until(lambda: state.spool_rows == ROWS_OVER_THE_SERVER, 300)
        return time.perf_counter() - begun


def seconds_of_reader(folder: Path) -> float:
    """Return how long a reader that is far from its capture takes, once the rows are there."""
    listen = free_port()
    with (
        emulated_source(Plan(backlog_rows=ROWS_OVER_FLIGHT)) as source,
        capture_of(source, source.port, folder, listen) as running,
        far_away(listen) as port,
    ):
        given = {**options_of_reader(folder, "far", port), "maxRowsPerTrigger": "250000"}
        options = SourceOptions.parse(given)
        made = InformixStreamReader(options, to_spark(published_schema(options)))
        start = anchor_of(made)
        source.start_writing()
        wait_until(lambda: running.process.state.spool_rows == ROWS_OVER_FLIGHT, 300)
        rows, begun = 0, time.perf_counter()
        while rows < ROWS_OVER_FLIGHT:
            end = next_offset(made, start)
            for partition in made.partitions(start, end):
                rows += sum(batch.num_rows for batch in made.read(partition))
            made.commit(end)
            start = end
        return time.perf_counter() - begun


def test_a_reader_far_from_a_capture_beside_a_capture_far_from_the_server(
    tmp_path: Path, report: Report
) -> None:
    over_server = Timing(tuple(seconds_of_capture(tmp_path / f"server{n}") for n in range(3)))
    over_flight = Timing(tuple(seconds_of_reader(tmp_path / f"flight{n}") for n in range(3)))
    rates = [
        ROWS_OVER_FLIGHT / min(over_flight.seconds),
        ROWS_OVER_THE_SERVER / min(over_server.seconds),
    ]
    stage, away = "far away", f"{ROUND_TRIP_MS} ms"
    own = over_server.rate(ROWS_OVER_THE_SERVER)
    report.add(stage, f"capture {away} from the server", own)
    beside = f"{rates[0] / rates[1]:.0f} x"
    report.add(
        stage, f"reader {away} from a shared capture", over_flight.rate(ROWS_OVER_FLIGHT), beside
    )
