"""One stream, many readers: `python examples/bronze_table.py`. Needs Java 17.

The bronze table contains the existing rows and every change, each once. Readers that need the current
table read the bronze table as a stream, and merge. For your own server, set the options host, port,
server, database, table, initialSnapshot and spoolPath, and set INFORMIX_CDC_PASSWORD.
"""

import os
import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession

import informix_cdc
from informix_cdc import net_changes
from informix_cdc.testing import emulated_source

AT = ["_commit_version", "_change_ordinal"]
ORDERS, folder = "stores:informix.orders", tempfile.mkdtemp()
present: dict[int, str] = {}  # stands for a reader's table, which would support MERGE


def bronze() -> None:
    """Append new changes. The first run also appends the existing rows."""
    rows = spark.readStream.format("informix-cdc").options(**options).load()
    sink = rows.writeStream.option("checkpointLocation", f"{folder}/bronze.at").format("parquet")
    sink.trigger(availableNow=True).start(f"{folder}/bronze").awaitTermination()


def merge(batch: DataFrame, _number: int) -> None:
    """Apply a batch to the reader's table; an insert may have an existing key."""
    for row in net_changes(batch, "order_num").orderBy(*AT).collect():
        if row._change_type == "truncate":
            present.clear()
        present.pop(row.order_num, None)
        if row._change_type in ("insert", "update_postimage"):
            present[row.order_num] = row.city


def silver() -> None:
    """Read the bronze table as a stream, with a separate checkpoint."""
    form = spark.read.parquet(f"{folder}/bronze").schema
    rows = spark.readStream.schema(form).parquet(f"{folder}/bronze")
    sink = rows.writeStream.option("checkpointLocation", f"{folder}/silver.at").foreachBatch(merge)
    sink.trigger(availableNow=True).start().awaitTermination()


os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
settings = {"spark.jars": informix_cdc.jar(), "spark.sql.shuffle.partitions": "1"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
basel, bern, zug = ({"order_num": n, "city": c} for n, c in ((1, "Basel"), (2, "Bern"), (1, "Zug")))
orders = {"informix.orders": "order_num serial primary key, city varchar(20)"}
with emulated_source(orders, keeps_rows=True) as (server, options):
    options |= {"initialSnapshot": "all", "truncate": "emit", "spoolPath": f"{folder}/spool"}
    first = [("insert", basel), ("insert", bern)]
    for changes in (
        first,
        [("update", basel, zug), ("delete", bern)],
        [("truncate",)],
        [("insert", bern)],
    ):
        with server.transaction() as shop:  # the first one before the stream starts
            for kind, *images in changes:
                getattr(shop, kind)(ORDERS, *images)
        bronze()
silver()
table = spark.read.parquet(f"{folder}/bronze").orderBy(*AT)
table.select("order_num", "city", "_change_type", "_snapshot").show()
print("present:", present)
