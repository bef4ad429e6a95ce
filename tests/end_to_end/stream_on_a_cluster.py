"""Queries on a Spark cluster whose executors are processes of their own; writes down what they gave.

Two workers with one core each, on this host (`local-cluster`): what the driver holds in memory is not
theirs, and each runs in a folder of its own, where a relative path leads elsewhere.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery


def delivered(spark: SparkSession, options: Mapping[str, str], checkpoint: Path) -> dict[str, Any]:
    """Run a query until it has caught up; return its rows, or its error."""
    rows: list[list[object]] = []
    partitions: list[int] = []

    def keep(batch: DataFrame, _number: int) -> None:
        partitions.append(batch.rdd.getNumPartitions())
        rows.extend(
            [r["_change_type"], r["order_num"], r["customer_num"], r["note"], r["amount"]]
            for r in batch.collect()
        )

    frame = spark.readStream.format("informix-cdc").options(**options).load()
    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    return {"rows": rows, "partitions": partitions, "error": error_of(query)}


def error_of(query: StreamingQuery) -> str:
    """Wait for the end of a query; return why it failed."""
    try:
        query.awaitTermination()
    except StreamingQueryException as reason:
        return str(reason)
    return ""


def spark_home(folder: Path) -> Path:
    """Return a Spark home whose workers write here, not among the installed packages."""
    folder.mkdir()
    for installed in Path(pyspark.__file__).parent.iterdir():
        (folder / installed.name).symlink_to(installed)
    (folder / "work").unlink(missing_ok=True)
    return folder


def main() -> None:
    queries, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    os.environ["SPARK_HOME"] = str(spark_home(folder / "spark"))
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    builder = builder.config("spark.ui.enabled", "false").config("spark.executor.memory", "512m")
    spark = builder.config("spark.task.maxFailures", "1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    found = {
        name: delivered(spark, options, folder / f"checkpoint-{name}")
        for name, options in queries.items()
    }
    daemons = spark.sparkContext.parallelize(range(4), 4).map(lambda _: os.getppid()).collect()
    found["executors"] = sorted(set(daemons))  # each has one, which its Python workers come from
    spark.stop()
    (folder / "found.json").write_text(json.dumps(found, default=str))


if __name__ == "__main__":
    main()
