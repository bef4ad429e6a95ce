"""Delta tables that follow a table over a snapshot, changes, a TRUNCATE and an ALTER: by content.

Four queries of one table, each with a checkpoint of its own: MERGE as examples/delta_merge.py does it,
from the rows that were there on; and from before there were any an append of all changes with
`mergeSchema`, the same behind `dropDuplicates`, and an aggregate. The writer's own account is the
oracle. The last line it prints is JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from delta import DeltaTable, configure_spark_with_delta_pip
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from delta_merge import WRITE, merge
from harness.runs.patience import wait_until
from harness.servers.kept_orders import KeptOrders, kept_orders
from harness.servers.stores import PASSWORD
from lab.matrix.stream_program import run_to_its_end

PLACE = ["_commit_version", "_change_ordinal"]
ROWS_THERE, CHUNK_ROWS, TRANSACTIONS, MOST_RUNS = 300, 50, 40, 12
NUMBER = {"txnAppId": "a checkpoint", "txnVersion": "0"}


class Queries:
    """What the four have in common; a run takes all that is there."""

    def __init__(self, spark: SparkSession, orders: KeptOrders, folder: Path) -> None:
        self.spark, self.orders, self.folder = spark, orders, folder
        self.counts: dict[str, int] = {}  # rows by their kind, as the aggregate has them
        self.of_snapshots = 0  # rows that were merged
        self.is_written = False  # whether changes are made while batches run
        self.queries: dict[str, Callable[[DataFrame], DataStreamWriter]] = {
            "merged": lambda rows: rows.writeStream.foreachBatch(self.merge),
            "changes": lambda rows: self.append(rows, "changes"),
            "once": lambda rows: self.append(rows.dropDuplicates(PLACE), "once"),
            "counts": lambda rows: (
                rows.groupBy("_change_type").count().writeStream.outputMode("complete")
            ).foreachBatch(self.note),
        }
        self.done: dict[str, Callable[[], bool]] = {
            "merged": self.is_merged,
            "changes": lambda: self.is_appended("changes"),
            "once": lambda: self.is_appended("once"),
            "counts": self.is_counted,
        }

    def merge(self, batch: DataFrame, number: int) -> None:
        """Merge as the example does, with writers beside it."""
        self.of_snapshots += batch.where("_snapshot").count()
        merge(self.checkpoint("merged"), batch, number)
        if self.is_written:
            self.orders.change(transactions=5)

    def append(self, rows: DataFrame, name: str) -> DataStreamWriter:
        writer = rows.writeStream.format("delta").option("mergeSchema", "true")
        return writer.option("path", self.path(name))

    def note(self, batch: DataFrame, _: int) -> None:
        self.counts = {row["_change_type"]: row["count"] for row in batch.collect()}

    def path(self, name: str) -> str:
        return str(self.folder / "tables" / name)

    def checkpoint(self, name: str) -> str:
        return str(self.folder / "checkpoints" / name)

    def run(self, name: str, **more: str) -> None:
        """Run one of them once."""
        begins = "all" if name == "merged" else "none"
        options = self.orders.options(truncate="emit", **more) | {"initialSnapshot": begins}
        options |= {
            "spoolPath": str(self.folder / "spools" / name),
            "snapshotChunkRows": str(CHUNK_ROWS),
        }
        rows = self.spark.readStream.format("informix-cdc").options(**options).load()
        writer = self.queries[name](rows).option("checkpointLocation", self.checkpoint(name))
        _, end = run_to_its_end(writer.trigger(availableNow=True).start)
        assert not end, f"{name}: {end}"

    def run_all(self, **more: str) -> None:
        """Run each until it has delivered everything: Spark before 4.2 takes a batch in a run."""
        for name, is_done in self.done.items():
            runs = 0
            while runs == 0 or not is_done():
                assert runs < MOST_RUNS, f"{name} does not become what the table is"
                self.run(name, **more)
                runs += 1
        # Spark's runner of a query that has ended closes its session a moment later.
        wait_until(lambda: not self.orders.server.sessions(), 30)

    def is_merged(self) -> bool:
        """Tell whether the table that is merged is the server's."""
        rows = self.spark.table("orders").collect()
        found = {row["order_num"]: row.asDict() for row in rows}
        assert len(found) == len(rows), "a key is there twice"
        return found == self.orders.present

    def is_appended(self, name: str) -> bool:
        return self.present(self.rows(name)) == self.orders.present

    def is_counted(self) -> bool:
        kinds = [row["_change_type"] for row in self.rows("changes")]
        return self.counts == {kind: kinds.count(kind) for kind in kinds}

    def rows(self, name: str) -> list[Row]:
        return self.spark.read.format("delta").load(self.path(name)).orderBy(*PLACE).collect()

    def present(self, rows: list[Row]) -> dict[int, dict[str, object]]:
        """Return what a table is behind all its changes, without Spark or MERGE."""
        found: dict[int, dict[str, object]] = {}
        for row in rows:
            if row["_change_type"] == "truncate":
                found.clear()
                continue
            values = {name: row[name] for name in row.asDict() if not name.startswith("_")}
            if row["_change_type"] in ("insert", "update_postimage"):
                found[values["order_num"]] = values
            else:
                found.pop(values["order_num"], None)
        return found


def command(orders: KeptOrders, *words: str) -> None:
    """Run `informix-cdc` as a user does."""
    connection = orders.options()
    flags = [f"--{name}={connection[name]}" for name in ("host", "port", "server", "database")]
    done = subprocess.run(
        [sys.executable, "-m", "informix_cdc.commands.cli", *words, *flags, "--transport=sqli"],
        env={"INFORMIX_CDC_PASSWORD": PASSWORD},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def rows_of_a_new_target(spark: SparkSession, is_numbered: bool) -> int:
    """Merge two rows as batch 0 into a target that an empty write has made; return what it holds.

    Delta leaves a batch out whose number is on the target already: so it must be made without one.
    """
    assert spark.conf.get(f"{WRITE}.txnVersion", None) is None  # the example leaves no number behind
    name, rows = f"made_{is_numbered}", spark.range(2)
    for numbered in (is_numbered, True):
        for key, value in NUMBER.items() if numbered else ():
            spark.conf.set(f"{WRITE}.{key}", value)
        if not spark.catalog.tableExists(name):
            rows.limit(0).write.format("delta").saveAsTable(name)
    target = DeltaTable.forName(spark, name).alias("old")
    target.merge(rows.alias("new"), "old.id = new.id").whenNotMatchedInsertAll().execute()
    for key in NUMBER:
        spark.conf.unset(f"{WRITE}.{key}")
    return spark.table(name).count()


def delta_spark(folder: Path) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    builder.config("spark.sql.warehouse.dir", str(folder / "lake"))
    builder.config("spark.sql.shuffle.partitions", "1")
    builder.config("spark.databricks.delta.snapshotPartitions", "2")  # small tables, many versions
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.sql("CREATE TABLE orders (order_num INT, city STRING) USING delta")
    return spark


def main() -> None:
    with tempfile.TemporaryDirectory() as name, kept_orders(seed=16) as orders:
        folder = Path(name)
        spark = delta_spark(folder)
        queries = Queries(spark, orders, folder)
        for begun in ("changes", "once", "counts"):  # before there are rows
            queries.run(begun)
        orders.insert(ROWS_THERE)
        queries.is_written = True
        queries.run("merged")
        queries.is_written = False
        orders.change(TRANSACTIONS)
        orders.truncate()
        orders.insert(ROWS_THERE)
        orders.change(TRANSACTIONS)
        queries.run_all()
        named = [f"--checkpoint={queries.checkpoint(each)}" for each in queries.queries]
        spools = [f"--spool={folder / 'spools' / each}" for each in queries.queries]
        command(orders, "alter", "--begin=informix.orders", "--yes", *named, *spools)
        orders.alter()
        command(orders, "alter", "--end", *named, *spools)
        orders.change(TRANSACTIONS)
        queries.run_all()
        changes = queries.rows("changes")
        assert queries.rows("once") == changes
        assert queries.of_snapshots >= ROWS_THERE // 2
        assert {7, None} <= {order["priority"] for order in orders.present.values()}
        assert [rows_of_a_new_target(spark, is_numbered) for is_numbered in (False, True)] == [2, 0]
        spark.stop()
    facts = {
        "rows": len(orders.present),
        "changes": len(changes),
        "of_a_snapshot": queries.of_snapshots,
    }
    sys.stdout.write(f"\n{json.dumps(facts)}\n")


if __name__ == "__main__":
    main()
