"""Queries of Spark go on over an ALTER, in their checkpoints: files, dropDuplicates, an aggregate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from connector.table_changes.altering import TWO, Shop
from harness.runs.examples import PROFILE
from harness.runs.patience import patiently, wait_until
from harness.servers.stores import listening_stores, source_options
from informix_cdc.commands import row_logging

pytestmark = pytest.mark.spark

PLACE = ["_commit_version", "_change_ordinal"]
FORMS = {
    "several tables": {"table": TWO},
    "json": {"table": TWO, "shape": "json"},
    "one table": {"table": "informix.orders"},
}
# Each takes three Spark queries a minute; without Spark all forms are tried in every build.
IN_THIS_RUN = dict(FORMS if PROFILE == "thorough" else [*FORMS.items()][:1])


class Queries:
    """Three queries of one shop, each with a checkpoint of its own; a run takes all that is there."""

    def __init__(self, spark: SparkSession, shop: Shop, folder: Path, form: dict[str, str]) -> None:
        self.spark, self.shop, self.folder, self.form = spark, shop, folder, form
        self.counts: dict[str, int] = {}  # rows by their kind, as the aggregate has them
        self.queries: dict[str, Callable[[DataFrame], DataStreamWriter]] = {
            "files": lambda rows: self.into_files(rows, "files"),
            "once": lambda rows: self.into_files(rows.dropDuplicates(PLACE), "once"),
            "counts": lambda rows: (
                rows.groupBy("_change_type").count().writeStream.outputMode("complete")
            ).foreachBatch(self.note),
        }

    def into_files(self, rows: DataFrame, name: str) -> DataStreamWriter:
        return rows.writeStream.format("parquet").option("path", str(self.folder / name))

    def note(self, batch: DataFrame, _: int) -> None:
        self.counts = {row["_change_type"]: row["count"] for row in batch.collect()}

    def checkpoint(self, name: str) -> str:
        return str(self.folder / "checkpoints" / name)

    def run(self, **more: str) -> None:
        options = source_options(self.shop.served[1].port, **self.form, **more)
        running = []
        for name, writer in self.queries.items():
            rows = self.spark.readStream.format("informix-cdc").options(**options).load()
            started = writer(rows).option("checkpointLocation", self.checkpoint(name))
            running.append(started.trigger(availableNow=True).start())
        for query in running:
            assert query.awaitTermination(patiently(90))

    def in_files(self, name: str) -> list[dict[str, Any]]:
        files = self.spark.read.option("mergeSchema", "true").parquet(str(self.folder / name))
        return [row.asDict(recursive=True) for row in files.orderBy(*PLACE).collect()]


def order_of(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the row of the table orders, in whatever form it is."""
    if "after" in row or "data" in row or "row" in row:
        text = row.get("data") or row.get("row") or row.get("after")
        found = json.loads(text) if isinstance(text, str) else None
        return found if found is not None and "order_num" in found else None
    return row if "order_num" in row else row["orders"]


@pytest.mark.parametrize("form", IN_THIS_RUN.values(), ids=IN_THIS_RUN.keys())
def test_queries_go_on_over_an_alter_in_their_checkpoints(
    form: dict[str, str], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_logging, "PAUSE_SECONDS", 0)
    with listening_stores() as served:
        shop = Shop(served, tmp_path, table=form["table"])
        queries = Queries(spark, shop, tmp_path, form)
        queries.run()
        shop.committed(("orders", 1), ("customers", 1))
        queries.run()
        # Spark's runner of a query that has ended closes its session a moment later.
        wait_until(lambda: not served[0].sessions(), 30)
        others = [f"--checkpoint={queries.checkpoint(name)}" for name in queries.queries]
        released = shop.run("release", "informix.orders", "--yes", f"--receipt={shop.receipt}", *others)
        assert released.exit_code == 0, released.output
        shop.committed(("customers", 2))  # the others' writers go on
        shop.alter()
        shop.committed(("customers", 3))
        assert shop.acquire().exit_code == 0
        shop.committed(("orders", 4), ("customers", 4))
        queries.run(schemaChange=str(shop.receipt))
        shop.committed(("orders", 5), ("customers", 5))
        queries.run(schemaChange=str(shop.receipt))
    rows = queries.in_files("files")
    assert len(rows) == len(shop.expected)
    orders = [found for row in rows if (found := order_of(row))]
    known = [(order["order_num"], order.get("priority")) for order in orders]
    assert known == [(1, None), (4, 7), (5, 7)]
    assert queries.in_files("once") == rows
    assert queries.counts == {"insert": len(rows)}
