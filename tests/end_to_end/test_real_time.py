"""Real-time mode: rows as they come, and the checkpoint of micro-batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from connector.jvm.java_reader import require_javac
from end_to_end.conftest import IN_JVM
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import ORDERS, listening_stores, order_row, source_options
from harness.spark.line_sink import LineSink
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = pytest.mark.spark

Served = tuple[EmulatedServer, ListeningServer]
SHORTEST = "spark.sql.streaming.realTimeMode.minBatchDuration"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"  # 4.3 wants 2 for this mode
SHORT = {"realTime": "700 milliseconds"}  # of which the last 300 ms begin no range
LONG = {"realTime": "10 minutes"}


@pytest.fixture
def served() -> Iterator[Served]:
    require_javac()
    with listening_stores() as (server, listening):
        yield server, listening


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(IN_JVM, "true")
    spark.conf.set(SHORTEST, "500")
    yield spark
    for query in spark.streams.active:
        query.stop()
    spark.conf.set(IN_JVM, "false")
    spark.conf.unset(FORMAT)


def numbered(session: SparkSession, listening: ListeningServer, **more: str) -> DataFrame:
    """The orders of a stream, as numbers: two that say which change it is, and its row's."""
    frame = session.readStream.format("informix-cdc").options(**source_options(listening.port, **more))
    return frame.load().select("_commit_version", "_change_ordinal", "order_num")


def commit(server: EmulatedServer, first: int, count: int = 1) -> None:
    with server.transaction() as transaction:
        for number in range(first, first + count):
            transaction.insert(ORDERS, order_row((number, 1, "a note", None)))


def until(query: StreamingQuery, is_true: Callable[[], bool], what: Callable[[], object]) -> None:
    """Wait until something holds, or the query has failed."""

    def holds() -> bool:
        if (reason := query.exception()) is not None:
            raise reason
        return is_true()

    wait_until(holds, 60, lambda: str(what()))


def until_seen(query: StreamingQuery, sink: LineSink, last: int) -> None:
    until(query, lambda: any(row[2] == last for row in sink.values()), lambda: sink.values()[-5:])


def until_committed(query: StreamingQuery, checkpoint: Path, batch: int = 0) -> None:
    until(query, (checkpoint / "commits" / str(batch)).exists, lambda: list(checkpoint.rglob("*")))


def until_all_is_committed(query: StreamingQuery, sink: LineSink, checkpoint: Path) -> None:
    """Wait until Spark counts the batch with the last row as done: a stop repeats nothing then."""
    last = sink.values()[-1][0]

    def is_committed() -> bool:
        done = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
        return bool(json.loads(offset_text(checkpoint, done))["commit"] >= last)

    until(query, is_committed, lambda: f"{last} is not committed")


def offset_text(checkpoint: Path, batch: int) -> str:
    return (checkpoint / "offsets" / str(batch)).read_text().splitlines()[2]


def offsets(checkpoint: Path) -> list[dict[str, Any]]:
    """Return the offsets of the checkpoint, by batch."""
    files = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return [json.loads(offset_text(checkpoint, int(path.name))) for path in files]


def test_the_first_batch_ends_at_once_so_that_the_beginning_is_known(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    server, listening = served
    sink = LineSink(tmp_path / "lines")
    query = sink.start(numbered(session, listening), tmp_path / "checkpoint", **LONG)
    until_committed(query, tmp_path / "checkpoint")
    assert offsets(tmp_path / "checkpoint")[0]["stream"]
    commit(server, 1)
    until_seen(query, sink, 1)
    assert not (tmp_path / "checkpoint" / "commits" / "1").exists()  # its batch lasts ten minutes


@pytest.mark.only_in_all
def test_a_batch_that_is_over_before_its_task_starts_knows_the_beginning_too(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    """Spark does not ask for rows then; "not started" in the checkpoint would begin a stream anew."""
    session.conf.set(SHORTEST, "1")
    sink, checkpoint = LineSink(tmp_path / "lines"), tmp_path / "checkpoint"
    frame = numbered(session, served[1])
    query = sink.start(frame, checkpoint, realTime="1 millisecond")
    until_committed(query, checkpoint)
    assert offsets(checkpoint)[0]["stream"]


def test_a_checkpoint_goes_from_mode_to_mode_and_loses_and_repeats_nothing(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    """Each run ends when its last batch is committed: a stop within one repeats its rows."""
    server, listening = served
    sink, checkpoint = LineSink(tmp_path / "lines"), tmp_path / "checkpoint"
    frame = numbered(session, listening)
    until_committed(sink.start(frame, checkpoint, **SHORT), checkpoint)
    for number, trigger in enumerate((SHORT, {}, SHORT, {"availableNow": True}, SHORT)):
        for query in session.streams.active:
            query.stop()
        if "availableNow" in trigger:
            commit(server, 10 * number, 5)
        query = sink.start(frame, checkpoint, **trigger)
        if "availableNow" not in trigger:
            for place in range(5):
                commit(server, 10 * number + place)
                until_seen(query, sink, 10 * number + place)
        until_seen(query, sink, 10 * number + 4)
        until_all_is_committed(query, sink, checkpoint)
    query.stop()
    expected = [10 * number + place for number in range(5) for place in range(5)]
    assert [row[2] for row in sink.values()] == expected
    assert sorted(sink.values()) == sink.values()


def start_of_a_cut(
    session: SparkSession, served: Served, sink: LineSink, checkpoint: Path
) -> StreamingQuery:
    """Commit 2,000 rows of half a millisecond, which Spark cuts after the 700 ms of a batch."""
    server, listening = served
    query = sink.start(numbered(session, listening), checkpoint, pause_microseconds=500, **SHORT)
    until_committed(query, checkpoint)
    commit(server, 0)
    commit(server, 1, 2000)
    commit(server, 2001)
    until(query, lambda: any("cut" in offset for offset in offsets(checkpoint)), lambda: "no cut")
    return query


@pytest.mark.only_in_all
def test_a_transaction_that_outlasts_a_batch_is_continued_where_it_was_cut(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    sink, checkpoint = LineSink(tmp_path / "lines"), tmp_path / "checkpoint"
    query = start_of_a_cut(session, served, sink, checkpoint)
    until_seen(query, sink, 2001)
    query.stop()
    assert [row[2] for row in sink.values()] == list(range(2002))
    cuts = [offset["cut"] for offset in offsets(checkpoint) if "cut" in offset]
    assert all(0 < rows <= 2000 for _, rows in cuts)
    assert "cut" not in offsets(checkpoint)[-1] or len(cuts) > 1


@pytest.mark.only_in_all
def test_a_micro_batch_continues_a_cut_transaction(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    sink, checkpoint = LineSink(tmp_path / "lines"), tmp_path / "checkpoint"
    start_of_a_cut(session, served, sink, checkpoint).stop()
    committed = {int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")}
    begun = [line.values[2] for line in sink.lines() if line.batch in committed]
    assert begun == list(range(len(begun)))
    assert 1 < len(begun) < 2001
    rest = LineSink(tmp_path / "rest")
    query = rest.start(numbered(session, served[1]), checkpoint, availableNow=True)
    until_seen(query, rest, 2001)
    query.awaitTermination()
    assert begun + [row[2] for row in rest.values()] == list(range(2002))


@pytest.mark.only_in_all
def test_a_planned_batch_before_any_commit_is_refused_and_micro_batches_run_it(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    """Spark would delete the only offset, and the stream would begin at the end of the log."""
    server, listening = served
    sink, checkpoint = LineSink(tmp_path / "lines"), tmp_path / "checkpoint"
    frame = numbered(session, listening)
    session.conf.set(FORMAT, "2")
    query = sink.start(frame, checkpoint)
    until_committed(query, checkpoint)
    query.stop()
    for path in (checkpoint / "commits").iterdir():
        path.unlink()
    for path in (checkpoint / "offsets").iterdir():
        if path.name.strip(".").split(".")[0] != "0":
            path.unlink()
    commit(server, 7)
    with pytest.raises(Exception, match=r"Run the query once without trigger\(realTime"):
        until(sink.start(frame, checkpoint, **SHORT), lambda: False, lambda: "it runs")
    sink.start(frame, checkpoint, availableNow=True).awaitTermination()
    assert [row[2] for row in sink.values()] == [7]
    query = sink.start(frame, checkpoint, **SHORT)
    commit(server, 8)
    until_seen(query, sink, 8)


@pytest.mark.parametrize(
    ("switch", "options", "why"),
    rest_in_all(
        [
            ("false", {}, "spark.informix-cdc.readInJvm is false"),
            ("true", {"shape": "arrow"}, "rows of shape=arrow are read in Python"),
        ]
    ),
)
def test_a_stream_that_python_reads_is_refused_by_name(
    switch: str,
    options: dict[str, str],
    why: str,
    session: SparkSession,
    served: Served,
    tmp_path: Path,
) -> None:
    session.conf.set(IN_JVM, switch)
    frame = session.readStream.format("informix-cdc")
    frame_of_rows = frame.options(**source_options(served[1].port, **options)).load()
    sink = LineSink(tmp_path / "lines")
    query = sink.start(frame_of_rows.select("_commit_version"), tmp_path / "checkpoint", **LONG)
    with pytest.raises(Exception, match=why):
        until(query, lambda: False, lambda: "it runs")


@pytest.mark.only_in_all
def test_a_query_in_real_time_mode_can_be_stopped_and_started_in_one_session(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    """With a schema that is given, Spark creates the source later, which must learn of the jar too."""
    server, listening = served
    sink, checkpoint = LineSink(tmp_path / "lines"), tmp_path / "checkpoint"
    source = session.readStream.format("informix-cdc").options(**source_options(listening.port))
    frame = source.schema(source.load().schema).load()
    frame = frame.select("_commit_version", "_change_ordinal", "order_num")
    for number in range(3):
        query = sink.start(frame, checkpoint, **SHORT)
        until_committed(query, checkpoint, 2 * number)
        commit(server, number)
        until_seen(query, sink, number)
        query.stop()
        assert query.exception() is None


def test_asynchronous_progress_can_be_stopped_and_started_in_one_session(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    """Spark commits after it has stopped the source: a failure would keep the query registered."""
    server, listening = served
    sink, checkpoint = LineSink(tmp_path / "lines"), tmp_path / "checkpoint"
    options = {
        "asyncProgressTrackingEnabled": "true",
        "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
    }
    for number in range(3):
        frame = numbered(session, listening)
        query = sink.start(frame, checkpoint, options=options, processingTime="0 seconds")
        until_committed(query, checkpoint)
        for place in range(5):
            commit(server, 10 * number + place)
            until_seen(query, sink, 10 * number + place)
        query.stop()
        assert "ClosedChannel" not in str(query.exception())
    expected = {10 * number + place for number in range(3) for place in range(5)}
    assert {row[2] for row in sink.values()} == expected
