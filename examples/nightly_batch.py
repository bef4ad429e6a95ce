"""Changes of the day, one run per night: `python examples/nightly_batch.py`. Needs Java 17.

Each run continues where the checkpoint ends, reads the changes committed before it started, and ends.
Start it with cron or Airflow. Between runs no connection is open and full row logging stays on, so
nothing is missed as long as the server keeps its log. For your own server, set the options host, port,
server, database and table, and the environment variable INFORMIX_CDC_PASSWORD.
"""

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import informix_cdc
from informix_cdc.testing import emulated_source

ORDERS = "stores:informix.orders"


def run(night: int) -> None:
    """Append the changes committed since the last run, and print their number."""
    rows = spark.readStream.format("informix-cdc").options(**options).load()
    sink = rows.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    query = sink.trigger(availableNow=True).start(f"{folder}/orders_changes")
    query.awaitTermination()
    count = sum(progress["numInputRows"] for progress in query.recentProgress)
    print(f"night {night}: {count} changes")


os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
settings = {
    "spark.jars": informix_cdc.jar(),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}  # whole log lines
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
tables = {"informix.orders": "order_num serial, city varchar(20)"}
with emulated_source(tables) as (server, options), tempfile.TemporaryDirectory() as folder:
    run(0)  # the first run only records the start offset
    for night, orders in (1, (1, 2, 3)), (2, ()), (3, (4,)):
        for number in orders:
            with server.transaction() as shop:
                shop.insert(ORDERS, {"order_num": number, "city": "Bern"})
        run(night)
    spark.read.parquet(f"{folder}/orders_changes").select("order_num").orderBy("order_num").show()
