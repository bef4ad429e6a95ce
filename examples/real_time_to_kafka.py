"""Changes in a Kafka topic within tens of milliseconds: `python examples/real_time_to_kafka.py BROKER`.

Needs PySpark 4.2 (no Kafka sink for Spark 4.3 was released by November 2026), the jar of
informix-cdc, Java 17, and a broker such as localhost:9092. Spark's real-time mode delivers at least
once: a consumer drops what it has seen by `_commit_version` and `_change_ordinal`. For your own server,
set the options host, port, server, database, table, and the environment variable INFORMIX_CDC_PASSWORD.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import informix_cdc
from informix_cdc.testing import emulated_source

BROKER = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
TOPIC = f"orders-{time.time_ns()}"


def order(number: int) -> None:
    """Commit an order."""
    with server.transaction() as shop:
        shop.insert("stores:informix.orders", {"order_num": number, "city": "Bern"})
    committed[number] = time.time()


def arrived() -> dict[int, float]:
    """Return when the broker had each order."""
    reading = spark.read.format("kafka").option("kafka.bootstrap.servers", BROKER)
    rows = reading.option("subscribe", TOPIC).load().selectExpr("CAST(value AS STRING)", "timestamp")
    return {json.loads(value)["order_num"]: at.timestamp() for value, at in rows.collect()}


committed: dict[int, float] = {}
os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
settings = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # Spark logs it as an error when a running task is stopped
    "spark.jars": informix_cdc.jar(),
    "spark.jars.packages": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}",
}
spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
tables = {"informix.orders": "order_num integer not null, city varchar(20), primary key (order_num)"}
with emulated_source(tables) as (server, options), tempfile.TemporaryDirectory() as folder:
    changes = spark.readStream.format("informix-cdc").options(**options).load()
    # Changes of one key stay in order, in one partition of the topic.
    messages = changes.selectExpr("CAST(order_num AS STRING) AS key", "to_json(struct(*)) AS value")
    stream = messages.writeStream.format("kafka").option("kafka.bootstrap.servers", BROKER)
    stream = stream.option("topic", TOPIC).option("checkpointLocation", f"{folder}/checkpoint")
    query = stream.outputMode("update").trigger(realTime="5 minutes").start()
    while not Path(f"{folder}/checkpoint/commits/0").exists():  # it says where the stream begins
        time.sleep(0.1)
    order(0)
    while not arrived():  # until the first batch of five minutes runs
        time.sleep(0.5)
    for number in range(1, 101):
        order(number)
        time.sleep(0.05)
    while len(found := arrived()) <= 100:
        time.sleep(0.5)
    query.stop()
    ages = sorted(1000 * (found[number] - committed[number]) for number in range(1, 101))
    print(f"100 orders; half of them were in Kafka within {ages[50]:.0f} ms of their commit")
