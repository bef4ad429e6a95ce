"""Queries of a Spark without the jar that ask for what requires it; prints how each ended, as JSON.

python without_the_jar.py PORT FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter

from harness.servers.stores import source_options

ASYNCHRONOUS = {
    "asyncProgressTrackingEnabled": "true",
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}


def ended(writer: DataStreamWriter, checkpoint: Path) -> str:
    """Return what ended a query."""
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as reason:
        return str(reason)
    return ""


def main() -> None:
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.readStream.format("informix-cdc").options(**source_options(port)).load()
    console = frame.writeStream.format("console").outputMode("update")
    real_time = ended(console.trigger(realTime="5 minutes"), folder / "real-time")
    noop = frame.writeStream.format("noop").options(**ASYNCHRONOUS)
    sys.stdout.write(json.dumps([real_time, ended(noop, folder / "asynchronous")]) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
