"""A driver process of its own, whose JVM dies with kill -9 at a chosen step of a micro-batch.

All its streams come to the step and wait for one another, so that each of them dies exactly there.
A failed task is tried again, as on a cluster.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from exactly_once_sink import write_batch
from harness.runs.patience import patiently
from harness.spark.starting import is_late_worker

EXIT_CODE = 86
TASK_ATTEMPTS = 3
_MEETING_SECONDS = 60


def main() -> None:
    plan = json.loads(sys.argv[1])
    spark = SparkSession.builder.master(f"local[2,{TASK_ATTEMPTS}]").getOrCreate()
    jvm = int(spark._jvm.ProcessHandle.current().pid())  # type: ignore[union-attr]
    step = Step(plan["step"], plan["batch"], jvm, parties=len(plan["streams"]))
    queries = [_start(spark, step, **stream) for stream in plan["streams"]]
    while True:
        for place, query in enumerate(queries):
            if not query.isActive:
                if not is_late_worker(query.exception()):
                    return query.awaitTermination()  # raises what ended it
                queries[place] = _start(spark, step, **plan["streams"][place])
        time.sleep(0.1)


def _start(spark: SparkSession, step: Step, options: dict[str, str], sink: str, checkpoint: str) -> Any:
    frame = spark.readStream.format("informix-cdc").options(**options).load()
    writer = frame.writeStream.foreachBatch(partial(step.write, Path(sink)))
    return writer.option("checkpointLocation", checkpoint).start()


class Step:
    """The step at which to die: "before the sink", "before the rename", "after the rename", or none."""

    def __init__(self, name: str, batch: int, jvm: int, parties: int) -> None:
        self._name = name
        self._batch = batch
        self._jvm = jvm
        self._meeting = threading.Barrier(parties)
        self._rename: Callable[[Path, Path], Path] = Path.rename
        Path.rename = self._renaming  # type: ignore[method-assign,assignment]

    def write(self, sink: Path, batch: DataFrame, number: int) -> None:
        """Do what the sink does, or die in it."""
        self._die_if("before the sink", number)
        write_batch(sink, batch, number)

    @property
    def _renaming(self) -> Callable[[Path, Path], Path]:
        def rename(draft: Path, place: Path) -> Path:
            number = int(draft.name.rpartition("-")[2])
            self._die_if("before the rename", number)
            placed = self._rename(draft, place)
            self._die_if("after the rename", number)
            return placed

        return rename

    def _die_if(self, name: str, number: int) -> None:
        if name != self._name or number < self._batch:
            return
        if self._meeting.wait(patiently(_MEETING_SECONDS)) == 0:
            os.kill(self._jvm, signal.SIGKILL)
            os._exit(EXIT_CODE)
        threading.Event().wait()  # whoever is not the last to come dies with the process


if __name__ == "__main__":
    main()
