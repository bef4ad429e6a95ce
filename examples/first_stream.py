"""Write each change of one table to Parquet, until Ctrl-C: `python examples/first_stream.py`.

Start `informix-cdc emulator --port 9088 --demo-workload 5` first, or write your own server's host,
server, database and table; give its password by the environment variable INFORMIX_CDC_PASSWORD.
"""

from pyspark.sql import SparkSession

import informix_cdc

source = {
    "host": "127.0.0.1",
    "server": "informix",
    "database": "stores",
    "table": "informix.orders",
}
changes = (
    SparkSession.builder.config("spark.jars", informix_cdc.jar())
    .getOrCreate()
    .readStream.format("informix-cdc")
    .options(**source)
    .option("initialSnapshot", "all")  # start with a snapshot of the existing rows
    .option("spoolPath", "/tmp/lake/spool")
    .load()
)
stream = changes.writeStream.option("checkpointLocation", "/tmp/lake/checkpoints/changes")
informix_cdc.run(stream.start("/tmp/lake/orders_changes", format="parquet"))
