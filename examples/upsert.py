"""Keep a Parquet table equal to the Informix table: `python examples/upsert.py`. Needs Java 17.

The rows that were there come first, as inserts; an insert may meet a key that is there. Batch N makes
version N: version N-1 with the last change of each key. A rename shows it in one step, and Spark may
run N again. One folder, one checkpoint; versions below N-1 may go. With your own server, `options` are
host, port, server, database, table, initialSnapshot, truncate, spoolPath; set INFORMIX_CDC_PASSWORD.
"""

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions

from informix_cdc.testing import emulated_source

AT = "struct(_commit_version, _change_ordinal)"
LAST, EMPTIED = f"max_by(struct(*), {AT}) AS last", "_change_type = 'truncate'"
ORDERS = "stores:informix.orders"


def merge(folder: Path, batch: DataFrame, number: int) -> None:
    """Make version `number`, once. A changed key ends with a preimage and begins with a postimage."""
    draft, before, version = (folder / name for name in (".draft", f"v{number - 1}", f"v{number}"))
    if not version.exists():
        last = batch.groupBy("order_num").agg(functions.expr(LAST)).select("last.*")
        emptied = last.where(EMPTIED).select("_commit_version", "_change_ordinal").first()
        if emptied:  # by a TRUNCATE: nothing stays of what came before it, here and in version N-1
            last = last.where(f"{AT} > struct({emptied[0]}L, {emptied[1]})")
        table = last.where("_change_type IN ('insert', 'update_postimage')")
        table = table.select([name for name in batch.columns if not name.startswith("_")])
        if number and not emptied:  # should version N-1 be gone, this fails, and so it should
            kept = batch.sparkSession.read.parquet(str(before)).join(last, "order_num", "left_anti")
            table = table.unionByName(kept, allowMissingColumns=True)  # an ALTER may have added one
        table.write.mode("overwrite").parquet(str(draft))
        draft.rename(version)


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    basel, bern, zug = ({"order_num": n, "city": c} for n, c in ((1, "Basel"), (2, "Bern"), (3, "Zug")))
    folder, columns = tempfile.mkdtemp(), "order_num serial primary key, city varchar(20)"
    with emulated_source({"informix.orders": columns}, keeps_rows=True) as (server, options):
        options |= {"initialSnapshot": "all", "truncate": "emit", "spoolPath": f"{folder}/spool"}
        rows = spark.readStream.format("informix-cdc").options(**options).load()
        sink = rows.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        sink = sink.foreachBatch(partial(merge, Path(folder))).trigger(availableNow=True)
        before = [("insert", basel), ("insert", bern)]
        beside = [("update", basel, zug), ("delete", bern)], [("truncate",)], [("insert", bern)]
        for changes in before, *beside:
            with server.transaction() as shop:
                for kind, *images in changes:
                    getattr(shop, kind)(ORDERS, *images)
            sink.start().awaitTermination()
    newest = max(Path(folder).glob("v*"), key=lambda version: int(version.name[1:]))
    spark.read.parquet(str(newest)).orderBy("order_num").show()
