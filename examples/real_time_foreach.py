"""A table of another database, equal within tens of milliseconds, by Spark's real-time mode.

Needs PySpark 4.2, the jar of informix-cdc, and a JDK 17. Spark's sinks in this mode are Kafka
(real_time_to_kafka.py), foreach, memory and console. Spark gives rows to a writer in Python in growing
groups, so this one is in Java: UpsertOrders.java. The target is Derby in memory, part of Spark. For
your own server, set the options host, port, server, database and table, and the environment variable
INFORMIX_CDC_PASSWORD; for your own target, set its URL.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import informix_cdc
from informix_cdc.testing import emulated_source

ORDERS = "stores:informix.orders"
TARGET = "jdbc:derby:memory:shop;create=true"
COLUMNS = "order_num INT PRIMARY KEY, city VARCHAR(20), orders INT, version BIGINT, ordinal INT"
WRITER = Path(__file__).with_name("UpsertOrders.java")


def present_orders() -> int:
    """Return how many orders the target has."""
    found = statement.executeQuery("SELECT COUNT(*) FROM orders WHERE orders > 0")
    return int(found.next() and found.getInt(1))


os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
tables = {"informix.orders": "order_num integer not null, city varchar(20), primary key (order_num)"}
with emulated_source(tables) as (server, options), tempfile.TemporaryDirectory() as folder:
    spark_jars, jar = Path(pyspark.__file__).parent / "jars", f"{folder}/writer.jar"
    subprocess.run(["javac", "-cp", f"{spark_jars}/*", "-d", folder, str(WRITER)], check=True)
    subprocess.run(["jar", "--create", "--file", jar, "-C", folder, "."], check=True)
    settings = {"spark.jars": f"{informix_cdc.jar()},{jar}", "spark.log.level": "OFF"}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    statement = spark._jvm.java.sql.DriverManager.getConnection(TARGET).createStatement()
    statement.execute(f"CREATE TABLE orders ({COLUMNS})")

    changes = spark.readStream.format("informix-cdc").options(**options).load()
    stream = changes.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
    stream = stream.outputMode("update").trigger(realTime="5 minutes")
    stream._jwrite.foreach(spark._jvm.UpsertOrders(TARGET))
    query = stream.start()
    while not Path(f"{folder}/checkpoint/commits/0").exists():  # it says where the stream begins
        time.sleep(0.1)
    milliseconds = []
    for number in range(1, 101):
        with server.transaction() as shop:
            shop.insert(ORDERS, {"order_num": number, "city": "Bern"})
        committed = time.monotonic()
        while present_orders() < number:
            time.sleep(0.002)
        milliseconds.append((time.monotonic() - committed) * 1000)
    with server.transaction() as shop:  # as UPDATE orders SET order_num = order_num + 1
        for number in range(1, 101):
            row = {"order_num": number, "city": "Bern"}
            shop.update(ORDERS, row, {**row, "order_num": number + 1})
        shop.delete(ORDERS, {"order_num": 101, "city": "Bern"})
    while present_orders() != 99:
        time.sleep(0.002)
    query.stop()
    print(f"100 orders, one deleted; half were there within {sorted(milliseconds)[50]:.0f} ms")
