"""A query in a process of its own that notes how old each transaction is when its rows are seen.

    python watch_rows.py '{"options": {...}, "spark": {...}, "checkpoint": "...", "transactions": 1000}'

Prints "ready" when the stream has begun, then the ages as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    task = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for key, value in task["spark"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    ages: dict[int, float] = {}

    def look(batch: DataFrame, _number: int) -> None:
        rows = batch.select("line_num", "written_at").collect()
        now = time.time_ns()
        ages.update({row["line_num"]: (now - row["written_at"]) / 1e9 for row in rows})

    frame = spark.readStream.format("informix-cdc").options(**task["options"]).load()
    writer = frame.writeStream.foreachBatch(look).option("checkpointLocation", task["checkpoint"])
    query = writer.start()
    wait_until(lambda: (Path(task["checkpoint"]) / "commits" / "0").exists())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    wait_until(lambda: len(ages) >= task["transactions"])
    query.stop()
    sys.stdout.write(json.dumps([ages[number] for number in sorted(ages)]) + "\n")


def wait_until(is_true: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


if __name__ == "__main__":
    main()
