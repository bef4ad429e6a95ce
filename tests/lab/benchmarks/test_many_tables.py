"""What a row costs where one stream has many tables, beside one of a single table."""

from __future__ import annotations

import gc
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from harness.capture.shaped import delivery_of
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.records.records import TableSchema
from informix_capture_client.session.read_ahead import JOINED_BYTES
from informix_capture_client.shapes import ChangeEncoder, RowDelivery
from informix_cdc.capture.pending import Pending
from informix_cdc.executors.places import SegmentPlaces
from informix_checkpoints.spool import SegmentRange
from lab.benchmarks.measuring import Report, one_core
from lab.benchmarks.pipeline import START, events_of, open_spool
from lab.benchmarks.prepared_spool import PreparedSpool
from lab.benchmarks.workload import CapturedBytes, captured_of_tables, catalog_tables, joined

TABLES = (1, 10, 100, 500)
ROWS = 131_000  # as many make two segments as large as the product makes them, and no small one
DELIVERED_ROWS = 5_000
REPEATS = 3
SPARK_ROWS = {1: 500_000, 10: 200_000, 100: 50_000, 500: 10_000}


@dataclass(frozen=True)
class Cost:
    """Microseconds of CPU a row, and bytes a row of segments and of what is delivered."""

    capture: float
    delivery: float
    segment_bytes: float
    delivered_bytes: float

    def beside(self, one: Cost) -> str:
        """Return the ratios to the cost of one table."""
        return (
            f"capture {self.capture / one.capture:.2f} x, segment bytes"
            f" {self.segment_bytes / one.segment_bytes:.2f} x, delivery"
            f" {self.delivery / one.delivery:.1f} x"
        )


def cpu_of(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


@pytest.mark.parametrize("shape", ["rows", "envelope", "json"])
def test_what_a_row_costs_hardly_grows_with_the_tables(
    report: Report, shape: str, tmp_path: Path
) -> None:
    form, best = RowForm(shape=shape), dict[int, Cost]()
    with one_core():
        for _ in range(REPEATS):  # in turn: a noisy moment hits all of them
            for tables in TABLES:
                found = measured(tables, form, tmp_path)
                best[tables] = min(best.get(tables, found), found, key=lambda cost: cost.capture)
    for tables, cost in best.items():
        result = (
            f"capture {cost.capture:.2f} µs, delivery {cost.delivery:.2f} µs of CPU a row;"
            f" {cost.segment_bytes:.0f} bytes stored, {cost.delivered_bytes:.0f} delivered"
        )
        beside = cost.beside(best[1]) if tables > 1 else ""
        report.add("many tables", f"shape={shape}, {tables} tables", result, beside)


def measured(tables: int, form: RowForm, tmp_path: Path) -> Cost:
    source, folder = captured_of_tables(tables, ROWS), tmp_path / "spool"
    shutil.rmtree(folder, ignore_errors=True)
    encoder = told(source, tables)
    capture = cpu_of(lambda: fill(source, encoder, folder))
    spool, wanted_rows = open_spool(folder), delivery_of(catalog_tables(tables), form)
    ranges, size_bytes = spool.between(START.place, spool.manifest.end.place), spool.manifest.size_bytes
    spool.close()
    assert sum(one.rows for one in ranges) == ROWS
    wanted, sink = ranges[0].part(0, DELIVERED_ROWS), pa.MockOutputStream()
    delivery = cpu_of(lambda: deliver(wanted, wanted_rows, sink))
    return Cost(
        capture / ROWS * 1e6,
        delivery / DELIVERED_ROWS * 1e6,
        size_bytes / ROWS,
        sink.size() / DELIVERED_ROWS,
    )


def told(source: CapturedBytes, tables: int) -> ChangeEncoder:
    """Return an encoder that has heard of all tables: once in a stream, a millisecond each."""
    encoder = ChangeEncoder(catalog_tables(tables), DecodeRules())
    for event in events_of(source.reads):
        if isinstance(event, TableSchema):
            encoder.announce(event)
    return encoder


def fill(source: CapturedBytes, encoder: ChangeEncoder, folder: Path) -> None:
    """Move everything into a new spool, in segments as large as bytes make them."""
    gc.freeze()  # as the product does in the process that holds the capture
    spool = open_spool(folder)
    pending = Pending(spool, lambda _: spool, latency_seconds=math.inf)
    for event in events_of(joined(source.reads, JOINED_BYTES)):
        if isinstance(event, TableSchema):
            continue
        pending.add(event)
        if pending.is_due(is_idle=False):
            pending.flush(encoder)
    pending.flush(encoder)
    spool.close()


def deliver(wanted: SegmentRange, delivery: RowDelivery, sink: pa.MockOutputStream) -> None:
    """Write rows as they leave for Spark."""
    with pa.ipc.new_stream(sink, delivery.schema) as writer:
        for batch in delivery.rows(SegmentPlaces("files").stored([wanted])):
            writer.write_batch(batch)


@pytest.mark.spark
def test_spark_pays_for_every_table_that_a_row_does_not_belong_to(
    report: Report, spark: SparkSession, tmp_path: Path
) -> None:
    spark.dataSource.register(PreparedSpool)
    one = 0.0
    for tables, rows in SPARK_ROWS.items():
        source, folder = captured_of_tables(tables, rows), tmp_path / f"of {tables}"
        fill(source, told(source, tables), folder)
        frame = spark.readStream.format("prepared-spool").option("tables", tables).load(str(folder))
        best = min(
            cpu_of_stream(frame, tmp_path / f"{tables} tables, {n}", rows) for n in range(REPEATS)
        )
        one = one or best
        beside = f"{best / one:.1f} x" if tables > 1 else ""
        report.add(
            "many tables", f"{tables} tables to Spark, noop sink", f"{best:.1f} µs a row", beside
        )


def cpu_of_stream(frame: DataFrame, checkpoint: Path, rows: int) -> float:
    """Stream everything into nothing; return microseconds a row of the micro-batch that has rows."""
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(600)
    [batch] = [progress for progress in query.recentProgress if progress["numInputRows"]]
    assert batch["numInputRows"] == rows
    return float(batch["durationMs"]["addBatch"]) * 1000 / rows
