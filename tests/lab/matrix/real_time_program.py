"""One checkpoint in real-time mode, in micro-batches and in real-time mode again: Spark 4.1 and later.

It needs the installed product with its jar, PySpark and a javac; the account of the workload is the
oracle. The last line it prints is JSON: which versions ran, and how many rows came in each run.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from harness.oracles.delivered import committed_batches
from harness.oracles.long_workload import LongWorkload
from harness.runs.patience import wait_until
from harness.servers.stores import listening_stores, source_options
from harness.spark.line_sink import sink_jar
from harness.spark.lines_of_runs import Runs, as_numbers
from informix_cdc.host import jar_path

REAL_TIME = {"realTime": "2 seconds"}
TRIGGERS = (REAL_TIME, {"processingTime": "100 milliseconds"}, REAL_TIME)
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.realTimeMode.minBatchDuration": "500",
    "spark.sql.streaming.minBatchesToRetain": "10000",
    # Spark 4.3 wants it of a checkpoint that goes to real-time mode; others ignore it, or know it.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}


def run(spark: SparkSession, port: int, runs: Runs, trigger: dict[str, str], work: LongWorkload) -> int:
    """Run the query beside the workload until its last commit is in a committed batch; count rows."""
    sink = runs.begin()
    query = start(spark, port, runs, trigger)
    with work.going_on():
        wait(query, lambda: len(sink.lines()) > 200)
    work.finish()
    wait(query, lambda: runs.is_committed(work.committed[-1].commit))
    query.stop()
    return len(sink.lines())


def start(spark: SparkSession, port: int, runs: Runs, trigger: dict[str, str]) -> StreamingQuery:
    """Start the query, and wait for a batch, so that the stream has begun."""
    frame = spark.readStream.format("informix-cdc").options(**source_options(port)).load()
    before = committed_batches(runs.checkpoint)
    query = runs.last.start(as_numbers(frame), runs.checkpoint, **trigger)
    wait(query, lambda: before or committed_batches(runs.checkpoint))
    return query


def wait(query: StreamingQuery, is_true: Callable[[], object]) -> None:
    """Wait until something is true of a query; `lab.matrix` starts again where a worker is late."""

    def is_true_or_has_ended() -> bool:
        if (reason := query.exception()) is not None:
            raise reason
        return bool(is_true())

    wait_until(is_true_or_has_ended)


def main() -> None:
    jars = f"{jar_path()},{sink_jar()}"
    builder = SparkSession.builder.master("local[2]").config(map={**SETTINGS, "spark.jars": jars})
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with listening_stores() as (server, listening), tempfile.TemporaryDirectory() as folder:
        work, runs = LongWorkload(server, seed=11), Runs(Path(folder))
        rows = [run(spark, listening.port, runs, trigger, work) for trigger in TRIGGERS]
        runs.assert_equal(work.committed)
    spark.stop()
    sys.stdout.write(f"\n{json.dumps({'pyspark': pyspark.__version__, 'rows': rows})}\n")


if __name__ == "__main__":
    main()
