"""The rows of a query of the session's Spark, batch by batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StreamingQuery

from harness.runs.patience import patiently
from harness.spark.starting import is_late_worker


class Collected:
    """The rows of a query in the order of its micro-batches, each batch once."""

    def __init__(self, frame: DataFrame, checkpoint: Path) -> None:
        self._frame = frame
        self._checkpoint = checkpoint
        self._batches: dict[int, list[Row]] = {}
        self.query: StreamingQuery | None = None

    @property
    def rows(self) -> list[Row]:
        return [row for number in sorted(self._batches) for row in self._batches[number]]

    def start(self, **trigger: Any) -> Collected:
        self._trigger = trigger

        def keep(batch: DataFrame, number: int) -> None:
            self._batches[number] = batch.collect()

        writer = self._frame.writeStream.foreachBatch(keep)
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        self.query = (writer.trigger(**trigger) if trigger else writer).start()
        return self

    def wait_until(self, is_true: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + patiently(seconds)
        assert self.query is not None
        while not is_true():
            if (reason := self.query.exception()) is not None:
                if not is_late_worker(reason):
                    raise reason
                self.start(**self._trigger)
            assert time.monotonic() < deadline, f"only {len(self.rows)} rows after {seconds} s"
            time.sleep(0.02)

    def wait_for_start(self) -> None:
        """Wait until the anchor batch is in the checkpoint: from here on nothing may be missed."""
        self.wait_until(lambda: (self._checkpoint / "commits" / "0").exists())

    def wait_for_commit(self, commit: int) -> None:
        self.wait_until(lambda: any(row["_commit_version"] >= commit for row in self.rows[-1:]))

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()
