"""Stream prepared spools through Spark of certain settings, in a process of its own; print the seconds.

Called with one argument, JSON: `spark` settings, `frames` (name to options), `folder` for checkpoints,
`times`, and how many `rows` each frame has. Frames take turns; the first turn only warms Spark up.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any


def main(task: dict[str, Any]) -> None:
    """Print a JSON object: the seconds of each turn, by the frame's name."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    warnings.simplefilter("ignore")  # PySpark's own start-up
    from pyspark.sql import SparkSession

    from lab.benchmarks.prepared_spool import PreparedSpool

    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "2g", **task["spark"]}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(PreparedSpool)
    found: dict[str, list[float]] = {name: [] for name in task["frames"]}
    for turn in range(task["times"] + 1):
        for name, options in task["frames"].items():
            frame = spark.readStream.format("prepared-spool").options(**options).load()
            checkpoint = Path(task["folder"]) / f"{name}-{turn}"
            writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
            query = writer.trigger(availableNow=True).start()
            assert query.awaitTermination(120)
            [batch] = [progress for progress in query.recentProgress if progress["numInputRows"]]
            assert batch["numInputRows"] == task["rows"]
            found[name].append(float(batch["durationMs"]["triggerExecution"]) / 1000)
    spark.stop()
    sys.stdout.write(json.dumps({name: seconds[1:] for name, seconds in found.items()}) + "\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
