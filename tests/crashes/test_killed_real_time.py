"""Real-time mode under load: drivers, runners and tasks die at any moment, and the query goes on."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as columns
from pyspark.sql.streaming import StreamingQuery

from connector.jvm.java_reader import require_javac
from crashes.conftest import seeds
from end_to_end.conftest import IN_JVM
from harness.oracles.delivered import committed_batches
from harness.oracles.long_workload import LongWorkload
from harness.runs.patience import PATIENCE
from harness.servers.stores import source_options
from harness.spark.line_sink import LineSink
from harness.spark.lines_of_runs import Runs, as_numbers
from harness.spark.mortal_stream import descendants, is_alive, runners, wait_for
from harness.spark.starting import is_late_worker, python_path
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Served = tuple[EmulatedServer, ListeningServer]
PROGRAM = Path(__file__).parent / "real_time_driver.py"
DURATION = "900 milliseconds"
MOST_SECONDS = 4.0  # between the first row of a run and its end
SHORTEST = "spark.sql.streaming.realTimeMode.minBatchDuration"
RETAINED = "spark.sql.streaming.minBatchesToRetain"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session for runs that are not killed."""
    require_javac()
    made = spark.newSession()
    for name, value in ((IN_JVM, "true"), (SHORTEST, "500"), (RETAINED, "100000")):
        made.conf.set(name, value)
    yield made
    for query in made.streams.active:
        query.stop()


@contextmanager
def driver(options: dict[str, str], runs: Runs, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the query in a process of its own; kill it, its JVM and what these have started."""
    plan = {
        "options": options,
        "checkpoint": str(runs.checkpoint),
        "sink": str(runs.begin().folder),
        "duration": DURATION,
    }
    environment = {**os.environ, "PYTHONPATH": python_path()}
    with (
        log.open("ab") as output,
        subprocess.Popen(
            [sys.executable, PROGRAM, json.dumps(plan)], env=environment, stdout=output, stderr=output
        ) as process,
    ):
        try:
            yield process
            assert process.poll() is None, log.read_text()[-3000:]
        finally:
            family = [process.pid, *descendants(process.pid)]
            for each in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
    wait_for(lambda: not any(map(is_alive, family)), lambda: f"one of {family} lives on")


def until(process: subprocess.Popen[bytes], is_true: Callable[[], object], log: Path) -> None:
    wait_for(lambda: process.poll() is not None or bool(is_true()), lambda: log.read_text()[-3000:])


def run_to_the_end(session: SparkSession, options: dict[str, str], runs: Runs, commit: int) -> None:
    """Run the query until a batch with the last commit is committed, and stop it."""
    query = started(session, options, runs.begin(), runs)

    def has_come() -> bool:
        if (reason := query.exception()) is not None:
            raise reason
        return runs.is_committed(commit)

    wait_for(has_come, lambda: f"{commit} does not come")
    query.stop()


def started(
    session: SparkSession, options: dict[str, str], sink: LineSink, runs: Runs, **faults: int
) -> StreamingQuery:
    """Start the query, again where a busy machine did not let it begin."""
    frame = session.readStream.format("informix-cdc").options(**options).load()
    rows = as_numbers(frame)
    if "fails_at" in faults:
        is_reached = columns.col("order_num") == faults["fails_at"]
        order = columns.when(is_reached, columns.raise_error(columns.lit("on purpose")).cast("int"))
        rows = rows.withColumn("order_num", order.otherwise(columns.col("order_num")))
    before = committed_batches(runs.checkpoint)
    while True:
        query = sink.start(rows, runs.checkpoint, realTime=DURATION)
        wait_for(
            lambda query=query: not query.isActive or committed_batches(runs.checkpoint) - before,  # type: ignore[misc]
            lambda: "no batch",
        )
        if not is_late_worker(query.exception()):
            return query


def until_first_row(query: StreamingQuery, runs: Runs) -> None:
    wait_for(lambda: bool(runs.last.lines()) or not query.isActive, lambda: "no row")


def until_ended(query: StreamingQuery) -> None:
    wait_for(lambda: not query.isActive, lambda: "the query is still active")


def at_any_moment(process: subprocess.Popen[bytes], runs: Runs, log: Path) -> None:
    """Wait: three times of four until a while after the first row, else since the process began."""
    chance = random.SystemRandom()
    seconds = chance.uniform(0, MOST_SECONDS)
    if chance.random() < 0.75:
        until(process, runs.last.lines, log)
    else:
        until(process, lambda: descendants(process.pid), log)
        seconds *= 2
    time.sleep(seconds * PATIENCE)


@pytest.mark.fault(
    fault="kill -9 of the driver, its JVM and Python process, in real-time mode under load",
    outcome="nothing is lost; only rows of the batch that was not committed come again, in any parts",
    seeds="2 kills at random moments in `make test`, 18 more in `make test-all`",
)
@pytest.mark.parametrize(("spool", "kills"), [("private", 2), ("private", 8), ("kept", 10)])
@pytest.mark.only_in_all
def test_a_killed_driver_repeats_only_the_batch_that_was_not_committed(
    spool: str, kills: int, session: SparkSession, served: Served, tmp_path: Path
) -> None:
    work = LongWorkload(served[0], seeds()[0])
    options = source_options(served[1].port)
    if spool == "kept":
        options["spoolPath"] = str(tmp_path / "spool")
    runs, log = Runs(tmp_path), tmp_path / "log"
    with driver(options, runs, log) as process:  # killed in its first batches
        until(process, lambda: committed_batches(runs.checkpoint), log)
    with work.going_on():
        for _ in range(kills - 1):
            with driver(options, runs, log) as process:
                at_any_moment(process, runs, log)
    work.finish()
    run_to_the_end(session, options, runs, work.committed[-1].commit)
    runs.assert_equal(work.committed)


@pytest.mark.fault(
    fault="kill -9 of the Python process that captures, in real-time mode under load",
    outcome="the query fails at once; its next run loses nothing and repeats one batch at most",
)
@pytest.mark.only_in_all
def test_a_killed_runner_ends_the_query_and_the_next_run_goes_on(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    work, runs = LongWorkload(served[0], seeds()[0]), Runs(tmp_path)
    options = source_options(served[1].port)
    for _ in range(2):
        query = started(session, options, runs.begin(), runs)
        with work.going_on():
            until_first_row(query, runs)
            (runner,) = runners()
            os.kill(runner, signal.SIGKILL)
            until_ended(query)
        assert query.exception() is not None
    work.finish()
    run_to_the_end(session, options, runs, work.committed[-1].commit)
    runs.assert_equal(work.committed)


@pytest.mark.fault(
    fault="a row on which the query fails, in real-time mode, and the query started again and again",
    outcome="it fails there each time; without the fault nothing is lost, one batch is repeated",
)
@pytest.mark.only_in_all
def test_a_task_that_fails_repeats_its_batch(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    work, runs = LongWorkload(served[0], seeds()[0]), Runs(tmp_path)
    options = source_options(served[1].port)
    query = started(session, options, runs.begin(), runs)
    work.run(30)
    wait_for(lambda: runs.is_committed(work.committed[-1].commit), lambda: "it does not come")
    query.stop()
    work.run(60)
    fails_at = max(order[0] for _, order in work.changes()[:-20])
    for _ in range(2):
        query = started(session, options, runs.begin(), runs, fails_at=fails_at)
        until_ended(query)
        assert "on purpose" in str(query.exception())
    work.finish()
    run_to_the_end(session, options, runs, work.committed[-1].commit)
    assert all(runs.assert_equal(work.committed)[1:3])
