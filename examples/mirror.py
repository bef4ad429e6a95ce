"""Keep Delta tables equal to Informix tables: `python examples/mirror.py`. Needs Java 17.

Also needs `pip install deltalake`, and no jar. The mirror creates two tables with keys and types, loads
them, and applies changes. At the end both are read together as of an earlier commit. For your own
server, set the options host, port, server, database and table, and the environment variable
INFORMIX_CDC_PASSWORD.
"""

import os
import sys
import tempfile

from pyspark.sql import SparkSession

from informix_cdc import lake
from informix_cdc.testing import emulated_source

TABLES = {
    "informix.orders": "order_num serial primary key, city varchar(20)",
    "informix.items": "order_num integer, line smallint, price money(8,2),"
    " primary key (order_num, line)",
}
BASEL, BERN = {"order_num": 1, "city": "Basel"}, {"order_num": 2, "city": "Bern"}
ITEM = {"order_num": 2, "line": 1, "price": "12.50"}

if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    folder = tempfile.mkdtemp()
    with emulated_source(TABLES, keeps_rows=True) as (server, options):

        def mirrored() -> None:
            """Apply everything committed so far. Without trigger it runs continuously."""
            query = lake.mirror(
                spark,
                source=options,
                into=f"{folder}/lake",
                checkpoint=f"{folder}/checkpoint",
                tables={"informix.items": {"keep": "history"}},
                trigger={"availableNow": True},
                on_batch=ends.append,
            )
            query.awaitTermination()

        ends: list[lake.MirroredBatch] = []
        with server.transaction() as shop:
            shop.insert("stores:informix.orders", BASEL)
        while not ends or ends[-1].loading:
            mirrored()
        earlier = ends[-1].commit
        with server.transaction() as shop:
            shop.update("stores:informix.orders", BASEL, {**BASEL, "city": "Zug"})
            shop.insert("stores:informix.orders", BERN)
            shop.insert("stores:informix.items", ITEM)
        mirrored()
    for commit in earlier, ends[-1].commit:
        tables = lake.as_of(spark, f"{folder}/lake", commit)
        tables["orders"].orderBy("order_num").show()
    tables["items"].select("order_num", "line", "price", "_valid_to").show()
