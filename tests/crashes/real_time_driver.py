"""A driver process of its own with a query in real-time mode, to be killed as a whole."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from connector.jvm.java_reader import jar
from harness.spark.line_sink import LineSink, sink_jar
from harness.spark.lines_of_runs import as_numbers
from harness.spark.starting import is_late_worker

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.realTimeMode.minBatchDuration": "500",
    "spark.sql.streaming.minBatchesToRetain": "100000",
}


def main() -> None:
    plan = json.loads(sys.argv[1])
    settings = {**SETTINGS, "spark.jars": f"{jar()},{sink_jar()}"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    sink, checkpoint = LineSink(Path(plan["sink"])), Path(plan["checkpoint"])
    while True:
        frame = spark.readStream.format("informix-cdc").options(**plan["options"]).load()
        query = sink.start(as_numbers(frame), checkpoint, realTime=plan["duration"])
        try:
            query.awaitTermination()
        except StreamingQueryException as reason:
            if not is_late_worker(reason):
                raise


if __name__ == "__main__":
    main()
