"""Stream committed changes into Spark: `python examples/quickstart.py`. Needs Java 17, no Informix.

For a server of your own, leave the emulator away, set host, port, server, database and table, and
give the password by the environment variable INFORMIX_CDC_PASSWORD.
"""

import os
import sys
import time

from pyspark.sql import SparkSession

from informix_cdc.testing import EmulatedServer, ListeningServer

os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
os.environ["INFORMIX_CDC_PASSWORD"] = "in4mix"  # before Spark starts, whose processes inherit it
ORDERS, order = "stores:informix.orders", {"order_num": 1, "city": "Zürich", "total": "19.90"}

server = EmulatedServer(name="informix", users={"informix": "in4mix"})
server.create_database("stores")
server.create_table(ORDERS, "order_num serial, city varchar(20), total money(8,2)")
with ListeningServer(server) as listening:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    rows = spark.readStream.format("informix-cdc").load(
        host="127.0.0.1", port=listening.port, server="informix", database="stores",
        table="informix.orders", transport="sqli",
    )  # fmt: skip
    changes = rows.select("_change_type", "order_num", "city", "total", "_commit_timestamp")
    query = changes.writeStream.format("console").start()
    while query.lastProgress is None:  # the first micro-batch is empty: here the stream begins
        time.sleep(0.1)
    with server.transaction() as transaction:
        transaction.insert(ORDERS, order)
        transaction.update(ORDERS, order, {**order, "total": "24.90"})
    while query.lastProgress["batchId"] < 1:
        time.sleep(0.1)
    query.stop()
    spark.stop()
