"""Mode changes and deaths while a snapshot runs: tables equal the server's, in every shape of rows."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as columns
from pyspark.sql.streaming import StreamingQuery

from connector.jvm.java_reader import require_javac
from end_to_end.conftest import IN_JVM
from harness.oracles.delivered import planned_batches
from harness.oracles.long_workload import LongWorkload
from harness.runs.background import meanwhile
from harness.runs.patience import PATIENCE
from harness.servers.kept_orders import COLUMNS, KeptOrders, kept_orders
from harness.servers.stores import listening_stores, source_options
from harness.spark.line_sink import LineSink
from harness.spark.lines_of_runs import Runs, as_numbers
from harness.spark.mortal_stream import runners, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RETURNS = "stores:informix.returns"
NAMES = ("orders", "returns")
SHORTEST = "spark.sql.streaming.realTimeMode.minBatchDuration"
REAL_TIME = {"realTime": "900 milliseconds"}
MODES: tuple[dict[str, Any], ...] = (REAL_TIME, {}, REAL_TIME, {}, REAL_TIME)
ROWS_THERE, CHUNK_ROWS = 300, 15
MANY = 1000  # behind the snapshot
LARGE_ROWS = 100_000
NO_KEY = -1
BEHIND_CHANGES = 1 << 40  # the ordinal of a row of a chunk, which comes after the changes at its place
READ_IN_EXISTENCE = 1  # the number that says it in a line


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    require_javac()
    made = spark.newSession()
    for name, value in ((IN_JVM, "true"), (SHORTEST, "500")):
        made.conf.set(name, value)
    yield made
    for query in made.streams.active:
        query.stop()


def key_of(image: Column, texts: bool = False) -> Column:
    """Return the key of an image, -1 where there is none."""
    keys = (
        [columns.get_json_object(image, "$.order_num").cast("long")]
        if texts
        else [image[name]["order_num"].cast("long") for name in NAMES]
    )
    return columns.coalesce(*keys, columns.lit(NO_KEY))


def text_of(image: Column, texts: bool = False) -> Column:
    """Return the checksum of an image's text."""
    cities = (
        [columns.get_json_object(image, "$.city")] if texts else [image[name]["city"] for name in NAMES]
    )
    return columns.crc32(columns.coalesce(*cities, columns.lit("none")).cast("binary"))


def numbers_of_rows(frame: DataFrame) -> DataFrame:
    row = columns.struct(*NAMES)
    is_gone = columns.col("_change_type").isin("delete", "update_preimage")
    no_key = columns.lit(NO_KEY).cast("long")
    return frame.select(
        "_commit_version",
        columns.col("_change_ordinal").cast("long"),
        columns.col("_snapshot").cast("int"),
        columns.col("_table").endswith("returns").cast("int"),
        columns.when(is_gone, key_of(row)).otherwise(no_key),
        columns.when(is_gone, no_key).otherwise(key_of(row)),
        text_of(row),
    )


def numbers_of_json(frame: DataFrame) -> DataFrame:
    before, after = columns.col("before"), columns.col("after")
    return frame.select(
        "_commit_version",
        columns.col("_change_ordinal").cast("long"),
        columns.col("_snapshot").cast("int"),
        columns.col("_table").endswith("returns").cast("int"),
        key_of(before, texts=True),
        key_of(after, texts=True),
        text_of(after, texts=True),
    )


def numbers_of_envelopes(frame: DataFrame) -> DataFrame:
    before, after, source = columns.col("before"), columns.col("after"), columns.col("source")
    order = columns.col("transaction")["total_order"].cast("long")
    return frame.select(
        source["commit_lsn"].cast("long"),
        columns.coalesce(order, columns.lit(BEHIND_CHANGES)),
        (columns.col("op") == "r").cast("int"),
        (source["table"] == "returns").cast("int"),
        key_of(before),
        key_of(after),
        text_of(after),
    )


SHAPES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "rows": numbers_of_rows,
    "json": numbers_of_json,
    "envelope": numbers_of_envelopes,
}


@dataclass
class Tables:
    """Two tables with rows, and their writer."""

    orders: KeptOrders
    returns: KeptOrders

    def change(self) -> None:
        self.orders.change(1)
        self.returns.change(1)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Change both in the background for the length of a block."""
        with meanwhile(self.change, 0.02):
            yield

    @property
    def present(self) -> list[dict[int, int]]:
        """The text's checksum of each row, by its key, for each table."""
        return [_checksums(self.orders), _checksums(self.returns)]


def _checksums(orders: KeptOrders) -> dict[int, int]:
    cities = {key: order["city"] for key, order in orders.present.items()}
    return {
        key: crc32(("none" if city is None else str(city)).encode()) for key, city in cities.items()
    }


@contextmanager
def tables() -> Iterator[Tables]:
    with kept_orders(seed=21) as orders:
        orders.server.create_table(RETURNS, COLUMNS)
        returns = KeptOrders(orders.server, orders.listening, 22, RETURNS)
        for one in (orders, returns):
            one.insert(ROWS_THERE)
        yield Tables(orders, returns)


def merged(rows: set[tuple[int, ...]]) -> list[dict[int, int]]:
    """Return both tables after all changes, in the order of their places."""
    found: list[dict[int, int]] = [{}, {}]
    for _, _, _, table, before, after, text in sorted(rows):
        if before != NO_KEY:
            found[table].pop(before, None)
        if after != NO_KEY:
            found[table][after] = text
    return found


def killed_after(query: StreamingQuery, sink: LineSink, chunks: int) -> None:
    """Kill the process that captures once rows of some chunks have come, or many; the query fails."""

    def have_come() -> bool:
        rows = sink.values()
        read = sum(row[2] == READ_IN_EXISTENCE for row in rows)
        return read > chunks * CHUNK_ROWS or len(rows) > MANY or not query.isActive

    wait_for(have_come, lambda: f"no rows: {query.exception()}")
    for runner in runners():
        os.kill(runner, signal.SIGKILL)
    wait_for(lambda: not query.isActive, lambda: "the query lives on")
    assert query.exception() is not None


@pytest.mark.fault(
    fault="real-time mode and micro-batches by turns, each killed, over a running snapshot",
    outcome="the tables merged by key equal the server's, with shape rows, json and envelope",
)
@pytest.mark.parametrize("shape", SHAPES)
def test_tables_equal_the_server_s_over_modes_deaths_and_a_snapshot(
    shape: str, session: SparkSession, tmp_path: Path
) -> None:
    runs, found = Runs(tmp_path), list[set[tuple[int, ...]]]()
    with tables() as there:
        options = there.orders.options(
            table="informix.*",
            shape=shape,
            snapshotChunkRows=str(CHUNK_ROWS),
            spoolPath=str(tmp_path / "spool"),
        )
        frame = session.readStream.format("informix-cdc").options(**options).load()
        numbers = SHAPES[shape](frame)
        with there.changing():
            for mode in MODES:
                sink = runs.begin()
                query = sink.start(numbers, runs.checkpoint, pause_microseconds=2000, **mode)
                killed_after(query, sink, chunks=2)
                found.append(set(sink.values()))
                time.sleep(0.2 * PATIENCE)
        sink = runs.begin()
        query = sink.start(numbers, runs.checkpoint, availableNow=True)
        wait_for(lambda: not query.isActive, lambda: "it does not end")
        assert query.exception() is None
        found.append(set(sink.values()))
        assert merged(set.union(*found)) == there.present
    reading = [any(row[2] == READ_IN_EXISTENCE for row in rows) for rows in found]
    assert reading[0]  # in real-time mode
    assert sum(reading) > 1


@pytest.mark.only_in_all
def test_a_transaction_of_many_rows_is_cut_by_short_batches_and_complete(
    session: SparkSession, tmp_path: Path
) -> None:
    runs = Runs(tmp_path)
    with listening_stores() as (server, listening):
        work = LongWorkload(server, seed=3)
        options = source_options(listening.port)
        frame = session.readStream.format("informix-cdc").options(**options).load()
        query = runs.begin().start(
            as_numbers(frame), runs.checkpoint, pause_microseconds=20, **REAL_TIME
        )
        wait_for(lambda: (runs.checkpoint / "commits" / "0").exists(), lambda: str(query.exception()))
        work.run(5)
        work.begin_large(LARGE_ROWS)
        work.run(5)
        work.finish()

        def is_committed() -> bool:
            if (reason := query.exception()) is not None:
                raise reason
            return runs.is_committed(work.committed[-1].commit)

        wait_for(is_committed, lambda: "it does not come")
        query.stop()
        ends = map(runs.offset, planned_batches(runs.checkpoint))
        assert sum("cut" in end for end in ends) >= 2
        runs.assert_equal(work.committed)
        assert max(len(one.changes) for one in work.committed) == LARGE_ROWS
