"""Queries on a Spark cluster whose executors are processes of their own; writes down what they gave.

Two workers with one core each, on this host (`local-cluster`): what the driver holds in memory is not
theirs, and each runs in a folder of its own, where a relative path leads elsewhere. What to do comes by
standard input: a word that is looked for in the memory of all would be there if it were an argument.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from end_to_end.memory_of_executors import copies_by_role
from harness.runs.patience import wait_until
from harness.spark.starting import JVM

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": JVM,
    "spark.task.maxFailures": "1",
}


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
    """Return the tests' Spark home, copied: workers write here, not where others do."""
    shutil.copytree(os.environ["SPARK_HOME"], folder, symlinks=True)
    (folder / "work").unlink(missing_ok=True)
    return folder


def memory_beside_a_query(
    spark: SparkSession, word: str, options: Mapping[str, str], rows: int, checkpoint: Path
) -> dict[str, Any]:
    """Run a query; when so many rows have come, and while it runs on, look for a word in all memory."""
    seen: list[object] = []

    def keep(batch: DataFrame, _number: int) -> None:
        seen.extend(batch.select("order_num").collect())

    frame = spark.readStream.format("informix-cdc").options(**options).load()
    query = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint)).start()
    wait_until(lambda: len(seen) >= rows or not query.isActive)
    found = copies_by_role(word)
    query.stop()
    return {"rows": len(seen), **found}


def executors_of(spark: SparkSession, count: int) -> list[int]:
    """Return the daemons of executors, once there are so many: Python workers come from these."""
    daemons: set[int] = set()

    def daemon(_: int) -> int:
        time.sleep(0.2)  # else one executor may have done all before the other is asked
        return os.getppid()

    def are_all_here() -> bool:
        daemons.update(spark.sparkContext.parallelize(range(4), 4).map(daemon).collect())
        return len(daemons) >= count

    wait_until(are_all_here)
    return sorted(daemons)


def main() -> None:
    plan, folder = json.load(sys.stdin), Path(sys.argv[1])
    os.environ["SPARK_HOME"] = str(spark_home(folder / "spark"))
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in {**_SETTINGS, **plan["settings"]}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    found: dict[str, Any] = {
        name: delivered(spark, options, folder / f"checkpoint-{name}")
        for name, options in plan["queries"].items()
    }
    found["executors"] = executors_of(spark, 2)
    if os.access("/proc/self/mem", os.R_OK):
        checkpoint = folder / "checkpoint-searched"
        found["memory"] = memory_beside_a_query(spark, checkpoint=checkpoint, **plan["searched"])
    spark.stop()
    (folder / "found.json").write_text(json.dumps(found, default=str))


if __name__ == "__main__":
    main()
