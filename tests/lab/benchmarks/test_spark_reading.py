"""Spool to Spark by file, in Python and in the JVM, and by Flight, beside Spark's own stream of Parquet
files of the same rows.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from connector.jvm.java_reader import has_javac
from harness.capture.shaped import delivery_of
from informix_cdc.executors.places import SegmentPlaces
from informix_cdc.executors.shares import share_out
from lab.benchmarks.measuring import REPEATS, Report, Timing
from lab.benchmarks.pipeline import START, fill_spool, open_spool
from lab.benchmarks.prepared_spool import PreparedSpool
from lab.benchmarks.workload import captured, catalog_table

pytestmark = pytest.mark.spark

ROWS = 2_000_000
PARTITION_BYTES = 64 << 20


def write_parquet(spool_folder: Path, folder: Path) -> int:
    """Write the rows of each partition of a spool as one Parquet file; return how many rows."""
    folder.mkdir()
    spool = open_spool(spool_folder)
    partitions = share_out(spool.between(START.place, spool.manifest.end.place), 1, PARTITION_BYTES)
    places, delivery = SegmentPlaces("files"), delivery_of([catalog_table()])
    spool.close()
    rows = 0
    for number, ranges in enumerate(partitions):
        table = pa.Table.from_batches(delivery.rows(places.stored(ranges)))
        pq.write_table(table, folder / f"{number}.parquet")
        rows += table.num_rows
    return rows


class ByTheProductsName(PreparedSpool):
    """The prepared spool as `informix-cdc`: with the jar among Spark's, the JVM reads it."""

    @classmethod
    def name(cls) -> str:
        return "informix-cdc"


@dataclass(frozen=True)
class Job:
    """What a query does with the rows."""

    what: str
    columns: tuple[str, ...] = ("*",)
    sink: str = "noop"


WHOLE = Job("one micro-batch, noop sink")
JOBS = [
    WHOLE,
    Job("three columns of twenty", ("line_num", "amount", "_commit_version")),
    Job("a job that writes Parquet", sink="parquet"),
]


def stream_once(frame: DataFrame, job: Job, folder: Path) -> float:
    """Stream everything through a job; return the seconds of the one micro-batch that has rows."""
    writer = frame.select(*job.columns).writeStream.format(job.sink)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.option("path", str(folder / "rows")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    [batch] = [progress for progress in query.recentProgress if progress["numInputRows"]]
    assert batch["numInputRows"] == ROWS
    shutil.rmtree(folder / "rows", ignore_errors=True)
    return float(batch["durationMs"]["triggerExecution"]) / 1000


def timings(frames: dict[str, DataFrame], job: Job, folder: Path) -> dict[str, Timing]:
    """Run a job over each source by turns, so that a noisy moment hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in frames}
    for turn in range(REPEATS + 1):
        for name, frame in frames.items():
            place = folder / f"{JOBS.index(job)}-{name}-{turn}"
            seconds[name].append(stream_once(frame, job, place))
    return {name: Timing(tuple(each[1:])) for name, each in seconds.items()}  # the first warms up


def test_spark_reads_the_spool_and_parquet_files(
    report: Report, spark: SparkSession, tmp_path: Path
) -> None:
    fill_spool(captured(ROWS, 10), tmp_path / "spool")
    captured.cache_clear()
    assert write_parquet(tmp_path / "spool", tmp_path / "parquet") == ROWS
    spark.dataSource.register(PreparedSpool)
    spool = spark.readStream.format("prepared-spool").load(str(tmp_path / "spool"))
    parquet = spark.readStream.schema(spool.schema).parquet(str(tmp_path / "parquet"))
    frames = {"python": spool, "parquet": parquet}
    if has_javac():
        spark.dataSource.register(ByTheProductsName)
        frames["jvm"] = spark.readStream.format("informix-cdc").load(str(tmp_path / "spool"))
    for job in JOBS:
        took = timings(frames, job, tmp_path)
        theirs = took["parquet"]
        beside = f"Parquet files {theirs.rate(ROWS)}: {took['python'].times_faster_than(theirs)}"
        report.add("spool -> Spark", job.what, took["python"].rate(ROWS), beside)
        if "jvm" in took:
            beside = f"Parquet files: {took['jvm'].times_faster_than(theirs)},"
            beside += f" read in Python: {took['jvm'].times_faster_than(took['python'])}"
            report.add("spool -> Spark", f"{job.what}, read in the JVM", took["jvm"].rate(ROWS), beside)
    flight = spark.readStream.format("prepared-spool").option("delivery", "flight")
    pulled = timings(
        {"files": spool, "flight": flight.load(str(tmp_path / "spool"))}, WHOLE, tmp_path / "again"
    )
    beside = f"by file: {pulled['flight'].times_faster_than(pulled['files'])}"
    report.add("spool -> Spark", "the same by Flight", pulled["flight"].rate(ROWS), beside)
