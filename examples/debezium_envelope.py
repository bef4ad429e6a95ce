"""Changes in Debezium's envelope: `python examples/debezium_envelope.py`. Needs Java 17, no Informix.

Differences from the topics of Debezium's Informix connector: before and after keep exact types (no
base64 decimals, no epoch numbers); there is no schema part and no tombstone; a changed key is one `u`;
an `r`, with initialSnapshot only, has a `transaction` without an id, for its order. For your own
server, set the options host, port, server, database and table, and the environment variable
INFORMIX_CDC_PASSWORD.
"""

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import informix_cdc
from informix_cdc.testing import emulated_source

ORDERS = "stores:informix.orders"
order = {"order_num": 1, "city": "Zürich", "total": "19.90"}

os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
spark = SparkSession.builder.master("local[1]").config("spark.jars", informix_cdc.jar()).getOrCreate()
tables = {"informix.orders": "order_num serial, city varchar(20), total money(8,2)"}
with emulated_source(tables) as (server, options), tempfile.TemporaryDirectory() as folder:
    rows = spark.readStream.format("informix-cdc").options(**options, shape="envelope").load()
    messages = rows.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false')) AS value")
    # For Kafka, add a column `key` and use format("kafka").
    sink = messages.writeStream.format("text").option("checkpointLocation", f"{folder}/checkpoint")
    sink = sink.option("path", f"{folder}/messages").trigger(availableNow=True)
    sink.start().awaitTermination()  # the first run only records the start offset
    with server.transaction() as shop:
        shop.insert(ORDERS, order)
        shop.update(ORDERS, order, {**order, "total": "24.90"})
        shop.delete(ORDERS, {**order, "total": "24.90"})
    sink.start().awaitTermination()
    for row in spark.read.text(f"{folder}/messages").collect():
        print(row.value)
