"""A query in a process of its own that notes how old each transaction is when its rows are seen.

    python watch_rows.py '{"way": "real-time", "options": {...}, "spark": {...}, "folder": "...", ...}'

Prints "ready" when the stream has begun, then the ages and the CPU of the JVM as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from connector.jvm.java_reader import jar
from harness.spark.line_sink import LineSink, sink_jar
from lab.benchmarks.processes import cpu_seconds, report_json


@dataclass(frozen=True)
class Way:
    """How rows get into a sink.

    Attributes:
        has_jar: whether they are read in the JVM.
        is_in_jvm: whether the sink is too, row by row; otherwise it is foreachBatch.
        options: of the writer.
        trigger: of the writer.
    """

    has_jar: bool = True
    is_in_jvm: bool = True
    options: Mapping[str, str] = field(default_factory=dict)
    trigger: Mapping[str, str] = field(default_factory=dict)


WAYS = {
    "micro-batches, rows read in Python": Way(has_jar=False, is_in_jvm=False),
    "micro-batches, the jar": Way(is_in_jvm=False),
    "micro-batches, the jar, a sink in the JVM": Way(),
    "the same with asynchronous progress": Way(
        options={
            "asyncProgressTrackingEnabled": "true",
            "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
        }
    ),
    "real-time mode": Way(trigger={"realTime": "5 minutes"}),
}


class Ages:
    """The rows of a query, as a Python function or a writer in the JVM sees them."""

    def __init__(self, folder: Path) -> None:
        self._sink = LineSink(folder / "lines")
        self._seen: dict[int, float] = {}

    def look(self, batch: DataFrame, _number: int) -> None:
        rows = batch.select("line_num", "written_at").collect()
        now = time.time_ns()
        self._seen.update({row["line_num"]: (now - row["written_at"]) / 1e9 for row in rows})

    def start(self, frame: DataFrame, way: Way, checkpoint: Path) -> Any:
        if way.is_in_jvm:
            numbers = frame.select("line_num", "written_at")
            return self._sink.start(numbers, checkpoint, options=dict(way.options), **way.trigger)
        writer = frame.writeStream.foreachBatch(self.look)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def by_transaction(self) -> dict[int, float]:
        """Return the age of each transaction's last row."""
        seen = dict(self._seen)
        for line in self._sink.lines():
            transaction, written_ns = line.values
            seen[transaction] = (line.written_ns - written_ns) / 1e9
        return seen


def main() -> None:
    task = json.loads(sys.argv[1])
    way, folder = WAYS[task["way"]], Path(task["folder"])
    jars = [str(sink_jar()), *([str(jar())] if way.has_jar else [])]
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for key, value in {**task["spark"], "spark.jars": ",".join(jars)}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    ages = Ages(folder)
    frame = spark.readStream.format("informix-cdc").options(**task["options"]).load()
    query = ages.start(frame, way, folder / "checkpoint")
    wait_until(lambda: (folder / "checkpoint" / "commits" / "0").exists())
    report_json("ready")
    sys.stdin.readline()  # the warm-up is over
    jvm: Any = spark._jvm
    process = jvm.java.lang.ProcessHandle.current().pid()
    before = cpu_seconds(process)
    sys.stdin.readline()  # all is written
    used = cpu_seconds(process) - before
    wait_until(lambda: len(ages.by_transaction()) >= task["transactions"])
    query.stop()
    found = ages.by_transaction()
    report_json({"ages": [found[number] for number in sorted(found)], "cpu": used})


def wait_until(is_true: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


if __name__ == "__main__":
    main()
