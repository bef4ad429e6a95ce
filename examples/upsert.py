"""Keep a Parquet table equal to the Informix table: `python examples/upsert.py`. Needs Java 17.

Batch N makes version N: version N-1 with the last change of each key. A rename shows it in one step,
and Spark may run N again. One folder, one checkpoint; versions below N-1 may go. With Delta Lake:
MERGE, txnAppId, txnVersion=N. For a server of your own, `options` are host, port, server, database,
table; INFORMIX_CDC_PASSWORD is set.
"""

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions

from informix_cdc.testing import emulated_source

LAST = "max_by(struct(*), struct(_commit_version, _change_ordinal)) AS last"
ORDERS, folder = "stores:informix.orders", Path(tempfile.mkdtemp())


def merge(batch: DataFrame, number: int) -> None:
    """Make version `number`, once. A changed key ends with a preimage and begins with a postimage."""
    draft, before, version = (folder / name for name in (".draft", f"v{number - 1}", f"v{number}"))
    if not version.exists():
        last = batch.groupBy("order_num").agg(functions.expr(LAST)).select("last.*")
        table = last.where("_change_type IN ('insert', 'update_postimage')").select("order_num", "city")
        if number:  # should version N-1 be gone, this fails, and so it should
            table = table.union(spark.read.parquet(str(before)).join(last, "order_num", "left_anti"))
        table.write.mode("overwrite").parquet(str(draft))
        draft.rename(version)


os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
basel, bern, zug = ({"order_num": n, "city": c} for n, c in ((1, "Basel"), (2, "Bern"), (3, "Zug")))
with emulated_source({"informix.orders": "order_num serial, city varchar(20)"}) as (server, options):
    rows = spark.readStream.format("informix-cdc").options(**options).load()
    sink = rows.writeStream.option("checkpointLocation", f"{folder}/checkpoint").foreachBatch(merge)
    inserts, others = [("insert", basel), ("insert", bern)], [("update", basel, zug), ("delete", bern)]
    for changes in [], inserts, others:  # three runs of one stream; the first only notes its beginning
        with server.transaction() as shop:
            for kind, *images in changes:
                getattr(shop, kind)(ORDERS, *images)
        sink.trigger(availableNow=True).start().awaitTermination()
    newest = max(folder.glob("v*"), key=lambda version: int(version.name[1:]))
    spark.read.parquet(str(newest)).orderBy("order_num").show()
