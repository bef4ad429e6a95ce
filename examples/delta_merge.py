"""Keep a Delta table equal to the Informix table: `python examples/delta_merge.py`. Needs Java 17.

Also needs `pip install pyspark==4.2.0 delta-spark==4.4.0`, or another pair of docs/versions.md.
The rows that were there come first, as inserts. Batch N is merged with txnVersion=N: should Spark run
it again, Delta leaves it out. For a server of your own, `options` are host, port, server, database,
table, initialSnapshot, spoolPath; INFORMIX_CDC_PASSWORD is set.
"""

import os
import sys
import tempfile

from delta import DeltaTable, configure_spark_with_delta_pip
from pyspark.sql import DataFrame, SparkSession, functions

from informix_cdc.testing import emulated_source

LAST = "max_by(struct(*), struct(_commit_version, _change_ordinal)) AS last"
ORDERS, folder, DELTA = "stores:informix.orders", tempfile.mkdtemp(), "spark.databricks.delta.write"


def merge(batch: DataFrame, number: int) -> None:
    """Bring the table up to the end of batch `number`, once: txnAppId names the checkpoint."""
    last = batch.groupBy("order_num").agg(functions.expr(LAST)).select("last.*")
    spark.conf.set(f"{DELTA}.txnAppId", f"{folder}/checkpoint")
    spark.conf.set(f"{DELTA}.txnVersion", str(number))
    table = DeltaTable.forName(spark, "orders").alias("old")
    merged = table.merge(last.alias("new"), "old.order_num = new.order_num")
    # A changed key leaves a preimage under its old value and a postimage under the new one.
    merged = merged.whenMatchedDelete("new._change_type IN ('delete', 'update_preimage')")
    merged = merged.whenMatchedUpdate(set={"city": "new.city"})
    values = {"order_num": "new.order_num", "city": "new.city"}
    merged.whenNotMatchedInsert(
        "new._change_type NOT IN ('delete', 'update_preimage')", values
    ).execute()


os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", f"{folder}/lake")
builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
builder.config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false")
spark = configure_spark_with_delta_pip(builder).getOrCreate()
spark.sql("CREATE TABLE orders (order_num BIGINT, city STRING) USING delta")
basel, bern, zug = ({"order_num": n, "city": c} for n, c in ((1, "Basel"), (2, "Bern"), (3, "Zug")))
tables = {"informix.orders": "order_num serial primary key, city varchar(20)"}
with emulated_source(tables, keeps_rows=True) as (server, options):
    options |= {"initialSnapshot": "all", "spoolPath": f"{folder}/spool"}
    rows = spark.readStream.format("informix-cdc").options(**options).load()
    sink = rows.writeStream.option("checkpointLocation", f"{folder}/checkpoint").foreachBatch(merge)
    others = [("update", basel, zug), ("delete", bern)]
    for changes in [("insert", basel)], [("insert", bern)], others:  # runs of one stream
        with server.transaction() as shop:
            for kind, *images in changes:
                getattr(shop, kind)(ORDERS, *images)
        sink.trigger(availableNow=True).start().awaitTermination()
    merge(spark.createDataFrame([], rows.schema), 1)  # a batch that was merged already makes no version
    spark.table("orders").show()
    spark.sql("DESCRIBE HISTORY orders").groupBy("operation").count().orderBy("operation").show()
