"""A query in a process of its own, to be killed: every micro-batch becomes one file.

The sink is idempotent: a batch that Spark runs again replaces the file of the same number.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery


def main() -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    start(spark, json.loads(sys.argv[1]), Path(sys.argv[2])).awaitTermination()


def start(spark: SparkSession, options: dict[str, str], folder: Path, **trigger: Any) -> StreamingQuery:
    """Start the query; its checkpoint and its batches are in the folder."""
    (folder / "batches").mkdir(exist_ok=True)

    def write(batch: DataFrame, number: int) -> None:
        rows = [
            [r["_change_type"], r["order_num"], r["customer_num"], r["note"], r["amount"]]
            for r in batch.collect()
        ]
        draft = folder / "batches" / f"{number}.draft"
        draft.write_text(json.dumps(rows, default=str))
        draft.replace(folder / "batches" / f"{number}.json")

    frame = spark.readStream.format("informix-cdc").options(**options).load()
    writer = frame.writeStream.foreachBatch(write).option(
        "checkpointLocation", str(folder / "checkpoint")
    )
    return (writer.trigger(**trigger) if trigger else writer).start()


if __name__ == "__main__":
    main()
