"""From a server in another process through its socket, the capture and the spool into Spark."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from lab.benchmarks.emulated_source import ROWS_PER_TRANSACTION, Plan
from lab.benchmarks.measuring import Report, Timing
from lab.benchmarks.processes import EmulatedSource, emulated_source
from lab.benchmarks.sessions import read_bytes_only

pytestmark = pytest.mark.spark

ROWS = 500_000
REPEATS = 3


def begin(spark: SparkSession, source: EmulatedSource, checkpoint: Path) -> StreamingQuery:
    """Start a stream into nothing, or go on with it."""
    rows = spark.readStream.format("informix-cdc").options(**source.options()).load()
    return rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()


def wait_until(query: StreamingQuery, is_true: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        if (reason := query.exception()) is not None:
            raise reason
        assert time.monotonic() < deadline
        time.sleep(0.05)


def anchor(spark: SparkSession, source: EmulatedSource, checkpoint: Path) -> None:
    """Let a stream note where it begins, and stop it."""
    query = begin(spark, source, checkpoint)
    wait_until(query, (checkpoint / "commits" / "0").exists)
    query.stop()


def rows_per_second(spark: SparkSession, source: EmulatedSource, checkpoint: Path) -> float:
    """Go on with an anchored stream until every row has arrived; return its steady rate.

    The first micro-batch with rows is left out: it holds the start of Spark's processes.
    """
    query = begin(spark, source, checkpoint)
    wait_until(query, lambda: sum(rows_in(batch) for batch in query.recentProgress) >= ROWS)
    first, *others = [batch for batch in query.recentProgress if rows_in(batch)]
    query.stop()
    rows = sum(map(rows_in, others))
    assert rows + rows_in(first) == ROWS
    return rows / (end_of(others[-1]) - end_of(first))


def rows_in(batch: Mapping[str, Any]) -> int:
    return int(batch["numInputRows"])


def end_of(batch: Mapping[str, Any]) -> float:
    begun = datetime.fromisoformat(batch["timestamp"]).timestamp()
    return begun + float(batch["durationMs"]["triggerExecution"]) / 1000


def test_a_backlog_streams_from_the_server_into_spark(
    report: Report, spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
    with emulated_source(Plan(backlog_rows=ROWS)) as source:
        anchor(spark, source, tmp_path / "anchored")
        source.start_writing()
        source.wait_until_written()
        bytes_only = Timing(tuple(read_bytes_only(source) for _ in range(REPEATS)))
        rates = []
        for turn in range(REPEATS + 1):
            checkpoint = shutil.copytree(tmp_path / "anchored", tmp_path / str(turn))
            rates.append(rows_per_second(spark, source, checkpoint))
    live = Timing(tuple(ROWS / rate for rate in rates[1:]))  # the first warms Spark up
    beside = f"the emulator alone sends {bytes_only.rate(ROWS)}"
    what = f"transactions of {ROWS_PER_TRANSACTION} rows, noop sink"
    report.add("emulator -> Spark", what, live.rate(ROWS), beside)
