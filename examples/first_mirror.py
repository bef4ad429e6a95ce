"""Keep Delta tables equal to the emulator's tables, until Ctrl-C: `python examples/first_mirror.py`.

Start `informix-cdc emulator --port 9088 --demo-workload 5` first, or write your own server's host,
server, database and tables; give its password by the environment variable INFORMIX_CDC_PASSWORD.
"""

from pyspark.sql import SparkSession

from informix_cdc import lake

query = lake.mirror(
    SparkSession.builder.getOrCreate(),
    source={
        "host": "127.0.0.1",
        "server": "informix",
        "database": "stores",
        "table": "informix.*",
    },
    into="/tmp/lake/stores",  # a Delta table for each table
    checkpoint="/tmp/lake/checkpoints/stores",
    retain="1 hour",
)
lake.run(query)  # until Ctrl-C
