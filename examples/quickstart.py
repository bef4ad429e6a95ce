"""Stream rows and changes into Spark: `python examples/quickstart.py`. Needs Java 17, no Informix.

An existing row is read first, in an initial snapshot, then its changes follow. For your own server,
remove the emulator, set the options host, port, server, database, table, initialSnapshot and spoolPath,
and the environment variable INFORMIX_CDC_PASSWORD.
"""

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import informix_cdc
from informix_cdc.testing import emulated_source

os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
ORDERS, order = "stores:informix.orders", {"order_num": 1, "city": "Zürich", "total": "19.90"}
columns = "order_num serial primary key, city varchar(20), total money(8,2)"

with emulated_source({"informix.orders": columns}, keeps_rows=True) as (server, options):
    with server.transaction() as transaction:
        transaction.insert(ORDERS, order)  # before the stream starts
    builder = SparkSession.builder.master("local[1]").config("spark.jars", informix_cdc.jar())
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    options |= {"initialSnapshot": "all", "spoolPath": tempfile.mkdtemp()}
    rows = spark.readStream.format("informix-cdc").options(**options).load()
    changes = rows.select(
        "_change_type", "order_num", "city", "total", "_snapshot", "_commit_timestamp"
    )
    query = changes.writeStream.format("console").start()
    while not any(each["numInputRows"] for each in query.recentProgress):
        query.awaitTermination(0.1)  # raises if the query has failed
    with server.transaction() as transaction:
        transaction.update(ORDERS, order, {**order, "total": "24.90"})
    while sum(each["numInputRows"] for each in query.recentProgress) < 3:
        query.awaitTermination(0.1)
    query.stop()
    spark.stop()
