"""A target that is merged from a snapshot and the changes beside it equals the server's table."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from harness.runs.patience import patiently
from harness.servers.kept_orders import KeptOrders, kept_orders
from informix_cdc import BadOption, net_changes
from upsert import merge

pytestmark = pytest.mark.spark

ROWS_THERE, CHUNK_ROWS, TRANSACTIONS = 60, 20, 5


def options_of(orders: KeptOrders, folder: Path) -> dict[str, str]:
    rows = str(CHUNK_ROWS)
    return orders.options(
        snapshotChunkRows=rows, maxRowsPerTrigger=rows, spoolPath=str(folder / "spool")
    )


@pytest.mark.only_in_all
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


# k, city; UPDATE orders SET order_num = order_num + 1, in the order of the log
CITIES = {1: "Basel", 2: "Bern", 3: "Zug"}
ROW = "_change_type string, _commit_version bigint, _change_ordinal int, order_num int, city string"
SHIFT = [
    (kind, 20, 2 * number + place, number + place, city)
    for number, city in CITIES.items()
    for place, kind in enumerate(("update_preimage", "update_postimage"))
]
INSERTS = [("insert", 10, number, number, city) for number, city in CITIES.items()]
MOVED = {number + 1: city for number, city in CITIES.items()}


@pytest.mark.only_in_all
def test_keys_that_move_to_the_next_row_leave_one_row_each(spark: SparkSession, tmp_path: Path) -> None:
    for number, changes in enumerate((INSERTS, SHIFT)):
        merge(tmp_path, spark.createDataFrame(changes, ROW), number)
    found = spark.read.parquet(str(tmp_path / "v1")).collect()
    assert {row.order_num: row.city for row in found} == MOVED
    assert len(found) == len(MOVED)


def test_net_changes_of_a_batch_and_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    truncate = ("truncate", 15, 0, None, None)
    changes = spark.createDataFrame([*INSERTS, truncate, *SHIFT], ROW)
    kinds = {row.order_num: row._change_type for row in net_changes(changes, ["order_num"]).collect()}
    assert kinds == {None: "truncate", 1: "update_preimage", **dict.fromkeys(MOVED, "update_postimage")}

    changes.write.parquet(str(tmp_path / "changes"))
    stream = net_changes(spark.readStream.schema(ROW).parquet(str(tmp_path / "changes")), "order_num")
    place = {"path": str(tmp_path / "net"), "checkpointLocation": str(tmp_path / "checkpoint")}
    writer = stream.writeStream.format("parquet").options(**place).trigger(availableNow=True)
    assert writer.start().awaitTermination(patiently(60))
    found = spark.read.parquet(place["path"]).orderBy("_commit_version", "_change_ordinal").collect()
    assert [(row._commit_version, row.order_num, row.city) for row in found] == [
        *((10, number, city) for number, city in CITIES.items()),
        (15, None, None),
        (20, 1, "Basel"),
        *((20, number, city) for number, city in MOVED.items()),
    ]


def test_net_changes_of_a_frame_without_the_key_or_with_key_intervals_are_refused(
    spark: SparkSession,
) -> None:
    changes = spark.createDataFrame(INSERTS, ROW)
    with pytest.raises(BadOption, match="needs the columns number, which the frame does not have"):
        net_changes(changes, "number")
    intervals = spark.createDataFrame([("range_start", 10, 0, 1, None)], ROW)
    with pytest.raises(Exception, match="rows that are not changes: range_start"):
        net_changes(intervals, "order_num").collect()
