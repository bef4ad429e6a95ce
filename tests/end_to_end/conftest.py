"""One Spark session for every end-to-end test, and the C test driver between it and the emulator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connector.jvm.java_reader import has_javac, jar
from harness.spark.collected import Collected
from harness.spark.line_sink import sink_jar
from odbc_driver.build import Drivers, build_drivers

IN_JVM = "spark.informix-cdc.readInJvm"
_FAST = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    IN_JVM: "false",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]").appName("informix-cdc tests")
    if has_javac():  # on trial in each build; read with only where a test switches it on
        builder = builder.config("spark.jars", f"{jar()},{sink_jar()}")
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
