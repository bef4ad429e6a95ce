"""A target that is merged from a snapshot and the changes beside it equals the server's table."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from harness.runs.patience import patiently
from harness.servers.kept_orders import KeptOrders, kept_orders
from upsert import merge

pytestmark = pytest.mark.spark

ROWS_THERE, CHUNK_ROWS, TRANSACTIONS = 60, 20, 5


def options_of(orders: KeptOrders, folder: Path) -> dict[str, str]:
    rows = str(CHUNK_ROWS)
    return orders.options(
        snapshotChunkRows=rows, maxRowsPerTrigger=rows, spoolPath=str(folder / "spool")
    )


def test_a_target_merged_from_rows_that_were_there_and_changes_equals_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    kinds: list[set[bool]] = []  # of each batch: whether its rows are of the snapshot
    with kept_orders(seed=16) as orders:
        orders.insert(ROWS_THERE)

        def take(transactions: int, batch: DataFrame, number: int) -> None:
            """Merge; and have writers change rows of any chunk while the snapshot goes on."""
            kinds.append({row["_snapshot"] for row in batch.select("_snapshot").collect()})
            merge(target, batch, number)
            orders.change(transactions)

        for transactions in (TRANSACTIONS, 0):
            options = options_of(orders, tmp_path)
            rows = spark.readStream.format("informix-cdc").options(**options).load()
            writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            writer = writer.foreachBatch(partial(take, transactions)).trigger(availableNow=True)
            assert writer.start().awaitTermination(patiently(90))
        found = spark.read.parquet(str(target / f"v{len(kinds) - 1}")).collect()
    assert sum(True in each for each in kinds) > 1
    assert sum(False in each for each in kinds) > 1
    assert {row["order_num"]: row.asDict() for row in found} == orders.present
    assert len(found) == len(orders.present)


# a run each: alone, among changes of the same keys, and behind them
TRUNCATES: list[list[tuple[str, int] | tuple[str]]] = [
    [("insert", ROWS_THERE)],
    [("truncate",)],
    [("insert", 9), ("change", 5), ("truncate",), ("insert", 3), ("change", 5)],
    [("change", 5), ("truncate",)],
]


def test_a_truncate_empties_the_target_of_all_that_came_before_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    target, batches = tmp_path / "target", list[int]()
    target.mkdir()

    def take(batch: DataFrame, number: int) -> None:
        for _ in range(2):  # as if Spark ran it again
            merge(target, batch, number)
        batches.append(number)

    with kept_orders(seed=7) as orders:
        options = options_of(orders, tmp_path) | {"truncate": "emit", "maxRowsPerTrigger": "1000"}
        for run in TRUNCATES:
            for name, *count in run:
                getattr(orders, name)(*count)
            rows = spark.readStream.format("informix-cdc").options(**options).load()
            writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            writer = writer.foreachBatch(take).trigger(availableNow=True)
            assert writer.start().awaitTermination(patiently(90))
            found = spark.read.parquet(str(target / f"v{batches[-1]}")).collect()
            assert {row["order_num"]: row.asDict() for row in found} == orders.present
            assert len(found) == len(orders.present)
