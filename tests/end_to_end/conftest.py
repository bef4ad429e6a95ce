"""One Spark session for every end-to-end test, and the C test driver between it and the emulator."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery

from harness.runs.patience import patiently
from harness.spark.starting import is_late_worker
from odbc_driver.build import Drivers, build_drivers

_FAST = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]").appName("informix-cdc tests")
    for key, value in _FAST.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's own start-up
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def drivers() -> Drivers:
    return build_drivers()


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


@pytest.fixture
def collect(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Collected]]:
    """Streams with the given options into a list; the query is stopped at the end of the test."""
    made: list[Collected] = []

    def start(options: dict[str, str]) -> Collected:
        frame = spark.readStream.format("informix-cdc").options(**options).load()
        made.append(Collected(frame, tmp_path / "checkpoint"))
        return made[-1]

    yield start
    for one in made:
        one.stop()
