"""An exactly-once sink: `python examples/exactly_once_sink.py` writes each micro-batch as `batch=N`.

Spark logs the range of batch N before it runs the batch, and runs the same N again after a crash. The
source returns the same rows for the same range. The sink has one folder per N, and a second run
replaces the first. Requirements: a target folder for this checkpoint only, a file system with an atomic
rename (not an object store), and no asyncProgressTracking, because it forms different batches after a
crash.
"""

import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import informix_cdc
from informix_cdc.testing import EmulatedServer, ListeningServer


def write_batch(folder: Path, batch: DataFrame, number: int) -> None:
    """Write a batch to `folder`/batch=`number`, once, even if Spark runs it several times."""
    draft, place = folder / f".draft-{number}", folder / f"batch={number}"
    batch.write.mode("overwrite").parquet(str(draft))  # readers ignore names that begin with a dot
    shutil.rmtree(place, ignore_errors=True)  # left by a run that Spark did not commit
    draft.rename(place)


if __name__ == "__main__":
    os.environ.update(PYSPARK_PYTHON=sys.executable, INFORMIX_CDC_PASSWORD="in4mix")
    server = EmulatedServer(name="informix", users={"informix": "in4mix"})
    server.create_database("stores")
    server.create_table("stores:informix.orders", "order_num serial, city varchar(20)")
    builder = SparkSession.builder.config("spark.jars", informix_cdc.jar())
    spark = builder.config(
        "spark.ui.showConsoleProgress", "false"
    ).getOrCreate()  # it would break up log lines
    with ListeningServer(server) as listening, tempfile.TemporaryDirectory() as name:
        rows = spark.readStream.format("informix-cdc").load(
            host="127.0.0.1", port=listening.port, server="informix", database="stores",
            table="informix.orders", transport="sqli",
        )  # fmt: skip
        sink = rows.writeStream.foreachBatch(partial(write_batch, Path(name, "orders")))
        sink = sink.trigger(availableNow=True).option("checkpointLocation", f"{name}/checkpoint")
        for order in 1, 2, 3:  # three runs; the first only records the start offset
            sink.start().awaitTermination()
            with server.transaction() as transaction:
                transaction.insert("stores:informix.orders", {"order_num": order, "city": "Zürich"})
        spark.read.parquet(f"{name}/orders").orderBy("batch").select("batch", "order_num").show()
