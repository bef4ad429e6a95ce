"""A query in a process of its own, to be killed: every micro-batch becomes one file.

The sink is idempotent: a batch that Spark runs again replaces the file of the same number.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    options, folder, once = json.loads(sys.argv[1]), Path(sys.argv[2]), len(sys.argv) > 3
    (folder / "batches").mkdir(exist_ok=True)

    def write(batch: DataFrame, number: int) -> None:
        rows = [
            [r["_change_type"], r["order_num"], r["customer_num"], r["note"], r["amount"]]
            for r in batch.collect()
        ]
        draft = folder / "batches" / f"{number}.draft"
        draft.write_text(json.dumps(rows, default=str))
        draft.replace(folder / "batches" / f"{number}.json")

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame = spark.readStream.format("informix-cdc").options(**options).load()
    writer = frame.writeStream.foreachBatch(write).option(
        "checkpointLocation", str(folder / "checkpoint")
    )
    query = (writer.trigger(availableNow=True) if once else writer).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
