"""Spool to Spark by file and by Flight, beside Spark's own stream of Parquet files of the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from benchmarks.measuring import REPEATS, Report, Timing
from benchmarks.pipeline import START, fill_spool, open_spool
from benchmarks.prepared_spool import PreparedSpool
from benchmarks.workload import captured
from informix_cdc.executors.places import SegmentPlaces
from informix_cdc.executors.shares import share_out

pytestmark = pytest.mark.spark

ROWS = 2_000_000
PARTITION_BYTES = 64 << 20


def write_parquet(spool_folder: Path, folder: Path) -> int:
    """Write the rows of each partition of a spool as one Parquet file; return how many rows."""
    folder.mkdir()
    spool = open_spool(spool_folder)
    partitions = share_out(spool.between(START.commit, spool.end.commit), 1, PARTITION_BYTES)
    places = SegmentPlaces("files")
    spool.close()
    rows = 0
    for number, ranges in enumerate(partitions):
        table = pa.Table.from_batches([batch for one in ranges for batch in places.read(one)])
        pq.write_table(table, folder / f"{number}.parquet")
        rows += table.num_rows
    return rows


def stream_once(frame: DataFrame, checkpoint: Path) -> float:
    """Stream everything into nothing; return the seconds of the one micro-batch that has rows."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    [batch] = [progress for progress in query.recentProgress if progress["numInputRows"]]
    assert batch["numInputRows"] == ROWS
    return float(batch["durationMs"]["triggerExecution"]) / 1000


def test_spark_reads_the_spool_and_parquet_files(
    report: Report, spark: SparkSession, tmp_path: Path
) -> None:
    fill_spool(captured(ROWS, 10), tmp_path / "spool")
    captured.cache_clear()
    assert write_parquet(tmp_path / "spool", tmp_path / "parquet") == ROWS
    spark.dataSource.register(PreparedSpool)
    spool = spark.readStream.format("prepared-spool").load(str(tmp_path / "spool"))
    parquet = spark.readStream.schema(spool.schema).parquet(str(tmp_path / "parquet"))
    flight = spark.readStream.format("prepared-spool").option("delivery", "flight")
    frames = {"spool": spool, "parquet": parquet, "flight": flight.load(str(tmp_path / "spool"))}
    seconds: dict[str, list[float]] = {name: [] for name in frames}
    for turn in range(REPEATS + 1):
        for name, frame in frames.items():
            seconds[name].append(stream_once(frame, tmp_path / f"checkpoint-{name}-{turn}"))
    timings = [Timing(tuple(seconds[name][1:])) for name in frames]  # the first warms Spark up
    ours, theirs, pulled = timings
    beside = f"Parquet files {theirs.rate(ROWS)}: {ours.times_faster_than(theirs)}"
    report.add("spool -> Spark", "one micro-batch, noop sink", ours.rate(ROWS), beside)
    beside = f"by file: {pulled.times_faster_than(ours)}"
    report.add("spool -> Spark", "the same by Flight", pulled.rate(ROWS), beside)
