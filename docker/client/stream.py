"""Print the changes of some tables through Spark, until stopped.

    python stream.py CHECKPOINT_FOLDER host=informix server=informix database=stores table=...

Rule: nothing here but Spark's own calls; everything after the folder is an option of the source.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from threading import Event

from pyspark.sql import SparkSession

_LOOK_SECONDS = 1


def main(checkpoint: str, arguments: Sequence[str]) -> None:
    """Stream until SIGTERM or SIGINT; raises what ends the query."""
    is_asked_to_stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: is_asked_to_stop.set())
    builder = SparkSession.builder.appName("informix-cdc")  # here, or where spark-submit says
    # Spark's progress bar would stand on the lines of our log.
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    options = dict(argument.split("=", 1) for argument in arguments)
    changes = spark.readStream.format("informix-cdc").options(**options).load()
    console = changes.writeStream.format("console").option("truncate", False)
    query = console.option("checkpointLocation", checkpoint).start()
    while not (is_asked_to_stop.is_set() or query.awaitTermination(_LOOK_SECONDS)):
        pass
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
