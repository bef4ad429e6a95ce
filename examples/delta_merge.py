"""Keep a Delta table equal to the Informix table: `python examples/delta_merge.py`. Needs Java 17.

Also needs `pip install pyspark==4.2.0 delta-spark==4.4.0`, or another pair of docs/versions.md.
Existing rows are inserted first. Batch N is merged with txnVersion=N, so Delta skips it if Spark runs
it again. A column that an ALTER adds is added to the table. For your own server, set the options host,
port, server, database, table, initialSnapshot, truncate and spoolPath, and set INFORMIX_CDC_PASSWORD.
"""

import os
import sys
import tempfile
from functools import partial

from delta import DeltaTable, configure_spark_with_delta_pip
from pyspark.sql import DataFrame, SparkSession

from informix_cdc import net_changes
from informix_cdc.testing import emulated_source

EMPTIED = "_change_type = 'truncate'"
ORDERS, WRITE = "stores:informix.orders", "spark.databricks.delta.write"


def merge(checkpoint: str, batch: DataFrame, number: int) -> None:
    """Merge batch `number` of a checkpoint into the table, once."""
    net = net_changes(batch, "order_num").persist()
    emptied, rows = not net.where(EMPTIED).isEmpty(), net.where(f"NOT {EMPTIED}")
    table = DeltaTable.forName(batch.sparkSession, "orders").alias("old")
    merged = table.merge(rows.alias("new"), "old.order_num = new.order_num").withSchemaEvolution()
    values = {name: f"new.{name}" for name in batch.columns if not name.startswith("_")}
    gone = "new._change_type IN ('delete', 'update_preimage')"  # preimage: the key was changed
    merged = merged.whenMatchedDelete(gone).whenMatchedUpdate(set=values)
    merged = merged.whenNotMatchedInsert(f"NOT {gone}", values)
    merged = merged.whenNotMatchedBySourceDelete() if emptied else merged
    # Delta skips any write whose txnVersion the table already has. If an empty write between set and
    # unset created the target, Delta would skip this MERGE. So the target is created before.
    batch.sparkSession.conf.set(f"{WRITE}.txnAppId", checkpoint)
    batch.sparkSession.conf.set(f"{WRITE}.txnVersion", str(number))
    merged.execute()
    net.unpersist()
    for name in "txnAppId", "txnVersion":
        batch.sparkSession.conf.unset(f"{WRITE}.{name}")


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
    folder, columns = tempfile.mkdtemp(), "order_num serial primary key, city varchar(20)"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    builder.config(map={"spark.sql.warehouse.dir": folder, "spark.sql.shuffle.partitions": "1"})
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    spark.sql("CREATE TABLE IF NOT EXISTS orders (order_num BIGINT, city STRING) USING delta")
    basel, bern, zug = ({"order_num": n, "city": c} for n, c in ((1, "Basel"), (2, "Bern"), (3, "Zug")))
    with emulated_source({"informix.orders": columns}, keeps_rows=True) as (server, options):
        options |= {"initialSnapshot": "all", "truncate": "emit", "spoolPath": f"{folder}/spool"}
        rows = spark.readStream.format("informix-cdc").options(**options).load()
        sink = rows.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        sink = sink.foreachBatch(partial(merge, folder)).trigger(availableNow=True)
        changes = [("insert", basel)], [("insert", bern)], [("update", basel, zug), ("delete", bern)]
        for change in *changes, [("truncate",)], [("insert", bern)]:  # one run each
            with server.transaction() as shop:
                for kind, *images in change:
                    getattr(shop, kind)(ORDERS, *images)
            sink.start().awaitTermination()
        merge(folder, spark.createDataFrame([], rows.schema), 1)  # merged before: creates no version
    spark.table("orders").show()
    spark.sql("DESCRIBE HISTORY orders").groupBy("operation").count().orderBy("operation").show()
