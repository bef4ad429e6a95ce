"""From a server in another process through its socket, the capture and the spool into Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from benchmarks.emulated_source import ROWS_PER_TRANSACTION, Plan
from benchmarks.measuring import Report, Timing, timed
from benchmarks.processes import EmulatedSource, emulated_source
from benchmarks.workload import PASSWORD, TABLE, TIMEOUT_RECORD_BYTES, catalog_table
from informix_cdc.capture_client.emulator_transport import EmulatorTransport
from informix_cdc.capture_client.session import CapturedTable, CaptureSession, SessionSettings
from informix_cdc.capture_client.transport import ConnectionSettings

pytestmark = pytest.mark.spark

ROWS = 500_000
REPEATS = 3
OLDEST = 1 << 32  # the first place of the first log


@contextmanager
def session_of(source: EmulatedSource) -> Iterator[CaptureSession]:
    """Open a capture session of the table, from the oldest log on."""
    settings = ConnectionSettings(
        host="127.0.0.1",
        port=source.port,
        server="informix",
        database="syscdcv1",
        user="informix",
        password=PASSWORD,
    )
    names = tuple(column.name for column in catalog_table().columns)
    with (
        closing(EmulatorTransport(settings)) as transport,
        closing(CaptureSession(transport, SessionSettings(server="informix"))) as session,
    ):
        session.start_capture(CapturedTable(TABLE, names, 0))
        session.activate(OLDEST)
        yield session


def read_bytes_only(source: EmulatedSource) -> float:
    """Return how long reading the whole log takes, with nothing done to the bytes."""
    with session_of(source) as session:

        def read_all() -> None:
            while len(session.read()) != TIMEOUT_RECORD_BYTES:
                pass

        return timed(read_all)


def stream_all(spark: SparkSession, source: EmulatedSource, checkpoint: Path) -> float:
    """Stream the whole log into nothing; return the seconds from the query's first trigger on."""
    frame = spark.readStream.format("informix-cdc")
    rows = frame.options(**source.options(startingPosition="earliest")).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.start()
    try:
        while taken(query) < ROWS:
            if (reason := query.exception()) is not None:
                raise reason
            time.sleep(0.1)
        assert taken(query) == ROWS
        return seconds_of(query)
    finally:
        query.stop()


def taken(query: StreamingQuery) -> int:
    return sum(int(progress["numInputRows"]) for progress in query.recentProgress)


def seconds_of(query: StreamingQuery) -> float:
    """Return the time from the first trigger to the end of the last micro-batch with rows."""
    batches = query.recentProgress
    last = [progress for progress in batches if progress["numInputRows"]][-1]
    begun, last_begun = (datetime.fromisoformat(p["timestamp"]) for p in (batches[0], last))
    return (last_begun - begun).total_seconds() + last["durationMs"]["triggerExecution"] / 1000


def test_a_backlog_streams_from_the_server_into_spark(
    report: Report, spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
    with emulated_source(Plan(backlog_rows=ROWS)) as source:
        bytes_only = Timing(tuple(read_bytes_only(source) for _ in range(REPEATS)))
        seconds = [stream_all(spark, source, tmp_path / str(turn)) for turn in range(REPEATS + 1)]
    live = Timing(tuple(seconds[1:]))  # the first warms Spark up
    beside = f"the emulator alone sends {bytes_only.rate(ROWS)}"
    what = f"transactions of {ROWS_PER_TRANSACTION} rows, noop sink"
    report.add("emulator -> Spark", what, live.rate(ROWS), beside)
