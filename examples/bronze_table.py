"""One stream, many readers: `python examples/bronze_table.py`. Needs Java 17.

The bronze table has the rows that were there, then every change, each row once: it is appended to, and
never changed. Whoever needs the table as it is reads the bronze one as a stream, and merges. So the
server is read once, and a reader that comes later needs no snapshot of its own. For a server of your
own, `options` are host, port, server, database, table; INFORMIX_CDC_PASSWORD is set.
"""

import os
import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession, functions

from informix_cdc.testing import emulated_source

LAST = "max_by(struct(*), struct(_commit_version, _change_ordinal)) AS last"
COLUMNS = "order_num", "city", "_change_type", "_commit_version", "_change_ordinal", "_snapshot"
ORDERS, folder = "stores:informix.orders", tempfile.mkdtemp()
present: dict[int, str] = {}  # of a reader: a table that can merge, in earnest


def bronze() -> None:
    """Append what is new: the first time the rows that are there too."""
    stream = spark.readStream.format("informix-cdc").options(**options).load().select(*COLUMNS)
    sink = stream.writeStream.format("parquet").option("checkpointLocation", f"{folder}/bronze.at")
    sink.trigger(availableNow=True).start(f"{folder}/bronze").awaitTermination()


def merge(batch: DataFrame, _number: int) -> None:
    """Bring a reader's table up to the end of a batch; an insert may meet a key that is there."""
    last = batch.groupBy("order_num").agg(functions.expr(LAST)).select("last.*")
    for row in last.collect():
        present.pop(row.order_num, None)
        if row._change_type in ("insert", "update_postimage"):
            present[row.order_num] = row.city


def silver() -> None:
    """Read the bronze table as a stream of its own, with a checkpoint of its own."""
    table = spark.read.parquet(f"{folder}/bronze")
    stream = spark.readStream.schema(table.schema).parquet(f"{folder}/bronze")
    sink = stream.writeStream.option("checkpointLocation", f"{folder}/silver.at").foreachBatch(merge)
    sink.trigger(availableNow=True).start().awaitTermination()


os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
basel, bern, zug = ({"order_num": n, "city": c} for n, c in ((1, "Basel"), (2, "Bern"), (1, "Zug")))
tables = {"informix.orders": "order_num serial primary key, city varchar(20)"}
with emulated_source(tables) as (server, options):
    options |= {"initialSnapshot": "all", "spoolPath": f"{folder}/spool"}
    for changes in [("insert", basel), ("insert", bern)], [("update", basel, zug), ("delete", bern)]:
        with server.transaction() as shop:  # the first one before there is a stream
            for kind, *images in changes:
                getattr(shop, kind)(ORDERS, *images)
        bronze()
    silver()
    spark.read.parquet(f"{folder}/bronze").select(*COLUMNS[:3], "_snapshot").orderBy(
        *COLUMNS[3:5]
    ).show()
    print("present:", present)
