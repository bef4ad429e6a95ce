"""A data loss and real-time mode: it is reported with its code, in both modes, and not forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from connector.jvm.java_reader import require_javac
from end_to_end.conftest import IN_JVM
from harness.capture.driving import begun_and_stopped, insert
from harness.runs.patience import wait_until
from harness.servers.stores import ORDERS, listening_stores, source_options
from harness.spark.lines_of_runs import Runs, as_numbers
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Served = tuple[EmulatedServer, ListeningServer]
REAL_TIME = {"realTime": "1 second"}
MODES: dict[str, dict[str, Any]] = {"real-time mode": REAL_TIME, "micro-batches": {}}
LOST = "DataLoss: IFXCDC-0006: "
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    require_javac()
    made = spark.newSession()
    conf = (
        (IN_JVM, "true"),
        ("spark.sql.streaming.realTimeMode.minBatchDuration", "500"),
        (FORMAT, "2"),
    )
    for name, value in conf:
        made.conf.set(name, value)
    yield made
    for query in made.streams.active:
        query.stop()


@pytest.fixture
def served() -> Iterator[Served]:
    with listening_stores(log_pages=4, log_count=3) as (server, listening):
        yield server, listening


class Query:
    """A query that is run again and again on one checkpoint."""

    def __init__(self, session: SparkSession, served: Served, folder: Path) -> None:
        self._session, self._served, self.runs = session, served, Runs(folder)

    def run(
        self, mode: str, until: Callable[[list[int]], bool] = lambda _: False, **options: str
    ) -> list[int]:
        """Run until its order numbers, which are returned, are what they shall be.

        Raises:
            StreamingQueryException: the query has failed.
        """
        frame = self._session.readStream.format("informix-cdc")
        frame_of_rows = frame.options(**source_options(self._served[1].port, **options)).load()
        sink = self.runs.begin()
        query = sink.start(as_numbers(frame_of_rows), self.runs.checkpoint, **MODES[mode])

        def found() -> list[int]:
            return [row[3] for row in sink.values()]

        def is_there() -> bool:
            if (reason := query.exception()) is not None:
                raise reason
            return until(found())

        wait_until(is_there, complaint=lambda: f"only {found()}")
        query.stop()
        return found()

    def has_begun(self, _: list[int]) -> bool:
        return (self.runs.checkpoint / "commits" / "0").exists()

    def failure(self, mode: str, **options: str) -> str:
        with pytest.raises(StreamingQueryException) as caught:
            self.run(mode, **options)
        return str(caught.value)

    def delivers(self, mode: str, *numbers: int, **options: str) -> None:
        """Check that these orders come, and that they are in a committed batch at the end."""

        def are_there(found: list[int]) -> bool:
            return found == list(numbers) and self.runs.is_committed(self.runs.last.values()[-1][0])

        assert self.run(mode, are_there, **options) == list(numbers)


@pytest.fixture
def query(session: SparkSession, served: Served, tmp_path: Path) -> Query:
    """A query that has begun in real-time mode and delivered order 1."""
    made = Query(session, served, tmp_path)
    made.run("real-time mode", made.has_begun)
    insert(served[0], 1)
    made.delivers("real-time mode", 1)
    return made


@pytest.mark.fault(
    fault="the log was overwritten before a query in real-time mode is started again",
    outcome="IFXCDC-0006 in both modes; with onDataLoss=continue a new stream in real-time mode",
)
def test_a_log_that_is_gone_is_reported_in_both_modes_and_can_be_left(
    query: Query, served: Served
) -> None:
    server, _ = served
    insert(server, 2)
    for _ in range(6):
        server.switch_log()
    insert(server, 3)
    for mode in ("real-time mode", "micro-batches", "real-time mode"):
        assert LOST in query.failure(mode)
    query.delivers("real-time mode", 3, onDataLoss="continue")
    insert(server, 4)
    query.delivers("real-time mode", 4)


@pytest.mark.fault(
    fault="full row logging was off, and is on again when the query is started in the other mode",
    outcome="the loss that one mode has reported is reported by the other; continue starts a stream",
)
@pytest.mark.parametrize("first", MODES)
@pytest.mark.only_in_all
def test_a_loss_that_one_mode_has_reported_is_not_forgotten_by_the_other(
    first: str, query: Query, served: Served
) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, False)
    insert(server, 2)
    assert LOST in query.failure(first)
    begun_and_stopped(listening.port)  # another stream, which switches row logging on
    assert server.table(ORDERS).full_row_logging
    insert(server, 3)
    for mode in ("real-time mode", "micro-batches", "real-time mode"):
        assert LOST in query.failure(mode)
    after = "micro-batches" if first == "micro-batches" else "real-time mode"
    query.delivers(after, 3, onDataLoss="continue")
    insert(server, 4)
    query.delivers("real-time mode", 4)
