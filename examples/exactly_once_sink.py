"""An exactly-once sink: `python examples/exactly_once_sink.py` keeps each micro-batch as `batch=N`.

What makes it exactly-once: Spark logs the range of batch N before it runs it and runs the same N again
after a crash; this source gives the same rows for the same range; N has one place here, and a second
run replaces the first. So it needs: a folder of its checkpoint alone, a file system whose rename is
atomic (an object store's is not), and no asyncProgressTracking, which cuts other batches after a crash.
"""

import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from informix_cdc.testing import EmulatedServer, ListeningServer


def write_batch(folder: Path, batch: DataFrame, number: int) -> None:
    """Keep batch `number` in `folder`/batch=`number`, once, however often Spark runs it."""
    draft, place = folder / f".draft-{number}", folder / f"batch={number}"
    batch.write.mode("overwrite").parquet(str(draft))  # readers pass over a name with a dot
    shutil.rmtree(place, ignore_errors=True)  # what a run left that Spark does not count as done
    draft.rename(place)


if __name__ == "__main__":
    os.environ.update(PYSPARK_PYTHON=sys.executable, INFORMIX_CDC_PASSWORD="in4mix")
    server = EmulatedServer(name="informix", users={"informix": "in4mix"})
    server.create_database("stores")
    server.create_table("stores:informix.orders", "order_num serial, city varchar(20)")
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    spark = builder.config(
        "spark.ui.showConsoleProgress", "false"
    ).getOrCreate()  # else it cuts log lines
    with ListeningServer(server) as listening, tempfile.TemporaryDirectory() as name:
        rows = spark.readStream.format("informix-cdc").load(
            host="127.0.0.1", port=listening.port, server="informix", database="stores",
            table="informix.orders", transport="sqli",
        )  # fmt: skip
        sink = rows.writeStream.foreachBatch(partial(write_batch, Path(name, "orders")))
        sink = sink.trigger(availableNow=True).option("checkpointLocation", f"{name}/checkpoint")
        for order in 1, 2, 3:  # three runs of one stream; the first only notes where it begins
            sink.start().awaitTermination()
            with server.transaction() as transaction:
                transaction.insert("stores:informix.orders", {"order_num": order, "city": "Zürich"})
        spark.read.parquet(f"{name}/orders").orderBy("batch").select("batch", "order_num").show()
