"""Totals per five minutes of commit time: `python examples/windowed_totals.py`. Needs Java 17.

Commit times increase with the stream if the server's clock does, so a short watermark is enough. A
window is emitted once, after the watermark has passed it. Deletes and preimages count negatively. A
TRUNCATE fails the query, because the log does not contain its rows, so they cannot be subtracted. For
your own server, set the options host, port, server, database and table, and the environment variable
INFORMIX_CDC_PASSWORD.
"""

import os
import sys
import tempfile
from datetime import UTC, datetime
from functools import partial

from pyspark.sql import SparkSession, functions

import informix_cdc
from informix_cdc.testing import emulated_source

ORDERS = "stores:informix.orders"
SIGN = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END"


def at(minute: int) -> float:
    """Return a time on the day of the example, in seconds since 1970."""
    return datetime(2026, 1, 5, 12, minute, tzinfo=UTC).timestamp()


os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
settings = {
    "spark.jars": informix_cdc.jar(),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
}
settings["spark.ui.enabled"] = "false"
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
tables = {"informix.orders": "order_num serial, total money(8,2)"}
old, new = {"order_num": 1, "total": "10.00"}, {"order_num": 1, "total": "12.50"}
changes = (0, "insert", old), (4, "update", old, new), (7, "delete", new), (30, "insert", old)
with emulated_source(tables) as (server, options), tempfile.TemporaryDirectory() as folder:
    server.set_full_row_logging(ORDERS, True)  # as if captured before: makes earliest possible
    for minute, kind, *images in changes:
        server.clock = partial(at, minute)
        with server.transaction() as shop:
            getattr(shop, kind)(ORDERS, *images)
    options["startingPosition"] = "earliest"
    rows = spark.readStream.format("informix-cdc").options(**options).load()
    every_five_minutes = functions.window("_commit_timestamp", "5 minutes").alias("window")
    windows = rows.withWatermark("_commit_timestamp", "1 minute").groupBy(every_five_minutes)
    totals = windows.agg(functions.expr(f"sum(total * {SIGN}) AS total"))
    sink = totals.writeStream.format("memory").queryName("totals").outputMode("append")
    sink = sink.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    sink.start().awaitTermination()
    spark.table("totals").select("window.start", "total").orderBy("start").show()
