"""Keep a Parquet table equal to the Informix table: `python examples/upsert.py`. Needs Java 17.

Existing rows are inserted first; an insert may have a key that exists. Batch N creates version N:
version N-1 with the net change of each key. A rename publishes it atomically, and Spark may run N
again. Use one folder per checkpoint; versions below N-1 may be deleted. For your own server, set the
options host, port, server, database, table, initialSnapshot, truncate and spoolPath, and
INFORMIX_CDC_PASSWORD in the environment.
"""

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import informix_cdc
from informix_cdc import net_changes
from informix_cdc.testing import emulated_source

ORDERS = "stores:informix.orders"


def merge(folder: Path, batch: DataFrame, number: int) -> None:
    """Create version `number`, once."""
    draft, before, version = (folder / name for name in (".draft", f"v{number - 1}", f"v{number}"))
    if not version.exists():
        net = net_changes(batch, "order_num").persist()
        table = net.where("_change_type IN ('insert', 'update_postimage')")
        table = table.select([name for name in batch.columns if not name.startswith("_")])
        emptied = not net.where("_change_type = 'truncate'").isEmpty()
        if number and not emptied:  # fails if version N-1 is missing, as it should
            kept = batch.sparkSession.read.parquet(str(before)).join(net, "order_num", "left_anti")
            table = table.unionByName(kept, allowMissingColumns=True)  # after an ALTER
        table.write.mode("overwrite").parquet(str(draft))
        net.unpersist()
        draft.rename(version)


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
    settings = {
        "spark.jars": informix_cdc.jar(),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    basel, bern, zug = ({"order_num": n, "city": c} for n, c in ((1, "Basel"), (2, "Bern"), (3, "Zug")))
    folder, columns = tempfile.mkdtemp(), "order_num serial primary key, city varchar(20)"
    with emulated_source({"informix.orders": columns}, keeps_rows=True) as (server, options):
        options |= {"initialSnapshot": "all", "truncate": "emit", "spoolPath": f"{folder}/spool"}
        rows = spark.readStream.format("informix-cdc").options(**options).load()
        sink = rows.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        sink = sink.foreachBatch(partial(merge, Path(folder))).trigger(availableNow=True)
        before = [("insert", basel), ("insert", bern)]
        later = [("update", basel, zug), ("delete", bern)], [("truncate",)], [("insert", bern)]
        for changes in before, *later:
            with server.transaction() as shop:
                for kind, *images in changes:
                    getattr(shop, kind)(ORDERS, *images)
            sink.start().awaitTermination()
    newest = max(Path(folder).glob("v*"), key=lambda version: int(version.name[1:]))
    spark.read.parquet(str(newest)).orderBy("order_num").show()
