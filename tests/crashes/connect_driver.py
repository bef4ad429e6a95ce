"""Streams over Spark Connect, with an event log; what to do comes by standard input, as JSON.

Prints, as JSON, how each stream ended: "rows", or the error's text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def main() -> None:
    plan = json.load(sys.stdin)
    folder = Path(plan["folder"])
    (folder / "events").mkdir(parents=True)
    builder = SparkSession.builder.remote("local[1]")
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        **plan["settings"],
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    ends = {
        name: end_of(spark, stream, folder / f"checkpoint {name}")
        for name, stream in plan["streams"].items()
    }
    spark.stop()
    sys.stdout.write(json.dumps(ends))


def end_of(spark: SparkSession, stream: Mapping[str, str], checkpoint: Path) -> str:
    """Look at a stream's schema, or start it at once; return how that ended."""
    options = dict(stream)
    looks_first = options.pop("looks first", "") == "yes"
    rows = spark.readStream.format("informix-cdc").options(**options).load()
    try:
        if looks_first:
            rows.printSchema()
        name = checkpoint.name.replace(" ", "_")
        writer = rows.writeStream.format("memory").queryName(name)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
        return f"rows {spark.table(name).count()}"
    except PySparkException as reason:
        return str(reason)


if __name__ == "__main__":
    main()
