"""Any number of tables in one schema: `python examples/many_tables.py`. Needs Java 17, no Informix.

With `shape=json` the columns are the same for every table: `_table`, and `before` and `after` as JSON.
`parse_json` converts them to VARIANT; `from_json` with a table's schema reads the columns' own types.
For your own server, set the options host, port, server, database and table (a list with commas), and
the environment variable INFORMIX_CDC_PASSWORD.
"""

import os
import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession, functions

import informix_cdc
from informix_cdc.testing import emulated_source

TABLES = {
    "informix.orders": "order_num serial, city varchar(20)",
    "informix.items": "order_num integer, item_num smallint, price money(8,2)",
}
ORDER, MOVED = {"order_num": 1, "city": "Bern"}, {"order_num": 1, "city": "Basel"}
ITEM = {"order_num": 1, "item_num": 1, "price": "9.90"}


def show(batch: DataFrame, number: int) -> None:
    """Print the changes of all tables; `price` is an exact DECIMAL."""
    after = functions.parse_json("after")
    price = functions.variant_get(after, "$.price", "decimal(8,2)").alias("price")
    rows = batch.orderBy("_commit_version", "_change_ordinal")
    for row in rows.select("_table", "_change_type", "before", "after", price).collect():
        print(f"batch {number}:", *row)


os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
settings = {
    "spark.jars": informix_cdc.jar(),
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
with emulated_source(TABLES) as (server, options), tempfile.TemporaryDirectory() as checkpoint:
    source = spark.readStream.format("informix-cdc").options(**options)
    rows = source.option("shape", "json").option("metadata", "minimal").load()
    sink = rows.writeStream.foreachBatch(show).option("checkpointLocation", checkpoint)
    sink.trigger(availableNow=True).start().awaitTermination()  # only records the start offset
    with server.transaction() as shop:
        shop.insert("stores:informix.orders", ORDER)
        shop.insert("stores:informix.items", ITEM)
        shop.update("stores:informix.orders", ORDER, MOVED)
    sink.trigger(availableNow=True).start().awaitTermination()
