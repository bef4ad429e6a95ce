"""Several tables in one stream: `python examples/several_tables.py`. Needs Java 17, no Informix.

Each table is a column of the row, NULL if another table changed. A transaction that changes both
arrives whole, in one micro-batch and in order; two streams cannot guarantee this. For your own server,
set the options host, port, server, database and table (`informix.orders,informix.items`), and the
environment variable INFORMIX_CDC_PASSWORD.
"""

import os
import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession

import informix_cdc
from informix_cdc.testing import emulated_source

TABLES = {
    "informix.orders": "order_num serial, city varchar(20)",
    "informix.items": "order_num integer, item_num smallint, price money(8,2)",
}


def split(batch: DataFrame, number: int) -> None:
    """Print the rows of each table; a real sink would write them to two tables."""
    batch.persist()  # two actions, one read
    for table in "orders", "items":
        part = batch.where(f"{table} IS NOT NULL").select("_commit_version", f"{table}.*")
        print(f"batch {number}, {table}:", [tuple(row)[1:] for row in part.collect()])
    print(f"batch {number}, transactions:", batch.select("_commit_version").distinct().count())
    batch.unpersist()


os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
settings = {
    "spark.jars": informix_cdc.jar(),
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
with emulated_source(TABLES) as (server, options), tempfile.TemporaryDirectory() as checkpoint:
    rows = spark.readStream.format("informix-cdc").options(**options).load()
    sink = rows.writeStream.foreachBatch(split).option("checkpointLocation", checkpoint)
    sink.trigger(availableNow=True).start().awaitTermination()  # only records the start offset
    for number, city in (1, "Zürich"), (2, "Bern"):
        with server.transaction() as shop:
            shop.insert("stores:informix.orders", {"order_num": number, "city": city})
            for item in 1, 2:
                row = {"order_num": number, "item_num": item, "price": "9.90"}
                shop.insert("stores:informix.items", row)
    sink.trigger(availableNow=True).start().awaitTermination()
