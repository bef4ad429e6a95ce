"""Queries in real-time mode on a Spark cluster whose executors are processes of their own.

As `stream_on_a_cluster.py`, which says what such a cluster is. Each query reads what its server has
committed, and ends when a batch with the last commit is committed, or when it has failed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from end_to_end.stream_on_a_cluster import spark_home
from harness.runs.patience import wait_until
from harness.spark.line_sink import LineSink
from harness.spark.lines_of_runs import Runs, as_numbers
from harness.spark.mortal_stream import descendants
from harness.spark.starting import JVM

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": JVM,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.realTimeMode.minBatchDuration": "500",
}


def delivered(spark: SparkSession, folder: Path, query: dict[str, Any]) -> dict[str, Any]:
    """Run a query until all is committed; return why it failed, and what became of executors."""
    runs = Runs(folder)
    frame = spark.readStream.format("informix-cdc").options(**query["options"]).load()
    killed = []
    sink = runs.begin()
    started = sink.start(
        as_numbers(frame), runs.checkpoint, pause_microseconds=query["pause"], realTime=query["lasts"]
    )
    if query["kills"]:
        killed = kill_in_a_batch(started, sink)
    wait_until(lambda: not started.isActive or runs.is_committed(query["last"]))
    error = str(started.exception() or "")
    started.stop()
    return {"error": error, "killed": killed, "python": len(python_of_executors())}


def python_of_executors() -> list[int]:
    """Return the Python processes that executors have started: each keeps one once it needed it."""
    executors = [pid for pid in descendants(os.getpid()) if "CoarseGrainedExecutor" in _command(pid)]
    return [pid for one in executors for pid in descendants(one) if "pyspark.daemon" in _command(pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""  # it has ended


def kill_in_a_batch(query: StreamingQuery, sink: LineSink) -> list[int]:
    """Kill the executor that writes rows; return its process id."""
    wait_until(lambda: not query.isActive or sink.lines())
    writers = [pid for pid in descendants(os.getpid()) if _is_open_in(pid, sink.folder)]
    for pid in writers:
        os.kill(pid, signal.SIGKILL)
    return writers


def _is_open_in(pid: int, folder: Path) -> bool:
    with contextlib.suppress(OSError):  # it has ended
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # it was closed
                if file.readlink().is_relative_to(folder):
                    return True
    return False


def main() -> None:
    plan, folder = json.load(sys.stdin), Path(sys.argv[1])
    os.environ["SPARK_HOME"] = str(spark_home(folder / "spark"))
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    builder = builder.config(map={**_SETTINGS, "spark.jars": plan["jars"]})
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    found = {name: delivered(spark, folder / name, query) for name, query in plan["queries"].items()}
    spark.stop()
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
