"""A mirror in a process of its own: Spark, the stream and the merges.

    python -m lab.benchmarks.mirror_run '{"source": {...}, "into": ..., "checkpoint": ...}'

Prints a line of JSON for each batch: the time, its changes and tables, its seconds, and how old each
row that says when it was written is once its table has it. The end of its input ends the process.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from informix_cdc import lake
from informix_cdc.lake.intervals import Compared
from informix_cdc.lake.mirrored_table import MirroredTable
from lab.benchmarks.processes import report_json


class Ages:
    """How old rows are when their table has them, or when its batch is committed, in milliseconds."""

    def __init__(self, *, at_commit: bool) -> None:
        self._at_commit = at_commit
        self._found: list[float] = []
        self._written: list[int] = []  # of a batch that is not committed
        self._lock = threading.Lock()
        self._apply = MirroredTable.apply

    def apply(self, table: MirroredTable, compared: Compared, batch: int) -> None:
        self._apply(table, compared, batch)
        now, changes = time.time_ns(), compared.changes
        if "written_at" in changes.rows.column_names and not changes.is_snapshot:
            there = changes.rows.column("written_at").filter(pa.array(~changes.is_gone()))
            written = pc.drop_null(there).to_pylist()
            with self._lock:
                if self._at_commit:
                    self._written += written
                else:
                    self._found += [(now - each) / 1e6 for each in written]

    def taken(self) -> list[float]:
        now = time.time_ns()
        with self._lock:
            found = self._found + [(now - each) / 1e6 for each in self._written]
            self._found, self._written = [], []
        return found


def main() -> None:
    task = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name, value in task.pop("spark", {}).items():
        builder = builder.config(name, value)
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    ages = Ages(at_commit=task.get("format") == "postgresql")

    def told(batch: lake.MirroredBatch) -> None:
        facts = {
            "at": time.monotonic(),
            "changes": sum(batch.changes.values()),
            "tables": len(batch.changes),
            "seconds": batch.seconds,
            "loading": len(batch.loading),
            "commit": batch.commit,
            "ages": ages.taken(),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        report_json(facts)

    with patch.object(MirroredTable, "apply", lambda *given: ages.apply(*given)):
        query = lake.mirror(spark, on_batch=told, **task)
        sys.stdin.readline()
        query.stop()


if __name__ == "__main__":
    main()
