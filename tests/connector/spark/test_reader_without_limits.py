"""Spark 4.0 and 4.1: what they call, in their order, played by hand; `make matrix` runs the real ones.

The orders were seen on 4.0.1 and 4.1.1: connector/informix_cdc/spark/reader_without_limits.py.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql.types import StructType

from harness.capture.driving import NOT_STARTED, Offset, Served, insert, numbers
from harness.runs.patience import patiently
from harness.servers.stores import source_options
from informix_cdc.options.source import SourceOptions
from informix_cdc.reading import next_offset
from informix_cdc.server.source_tables import look_up_tables
from informix_cdc.spark.reader_without_limits import ReaderWithoutLimits
from informix_cdc.spark.schema import to_spark


@contextmanager
def old_reader(port: int, **changes: str) -> Iterator[ReaderWithoutLimits]:
    options = SourceOptions.parse(source_options(port, **changes))
    made = ReaderWithoutLimits(options, to_spark(look_up_tables(options).schema()))
    try:
        yield made
    finally:
        made.stop()


def rows_of(made: ReaderWithoutLimits, start: Offset, end: Offset) -> list[dict[str, Any]]:
    batches = [batch for part in made.partitions(start, end) for batch in made.read(part)]
    return [row for batch in batches for row in batch.to_pylist()]


def begun(port: int, **changes: str) -> Offset:
    """Run a query's first batch, and stop."""
    with old_reader(port, **changes) as made:
        anchor = made.latestOffset()
        assert made.partitions(made.initialOffset(), anchor) == []
    return anchor


def next_end(made: ReaderWithoutLimits, start: Offset) -> Offset:
    """Ask as Spark does, at each tick, until there is something new."""
    for _ in range(int(patiently(50))):
        if (end := made.latestOffset()) != start:
            return end
    raise AssertionError(f"nothing new after {start}")


@pytest.mark.only_in_all
def test_a_query_goes_on_from_where_its_last_batch_ended(served: Served) -> None:
    server, listening = served
    with old_reader(listening.port) as made:
        anchor = made.latestOffset()
        assert made.partitions(NOT_STARTED, anchor) == []
        assert made.latestOffset() == anchor
        insert(server, 1, 2)
        first = next_end(made, anchor)
        assert numbers(rows_of(made, anchor, first)) == [1, 2]
        insert(server, 3)
        second = next_end(made, first)
        made.commit(first)
        assert numbers(rows_of(made, first, second)) == [3]


def test_no_batch_takes_more_than_the_options_allow(served: Served) -> None:
    server, listening = served
    with old_reader(listening.port, maxRowsPerTrigger="2") as made:
        start = made.latestOffset()
        made.partitions(NOT_STARTED, start)
        for number in range(5):
            insert(server, number)
        sizes = []
        while sum(sizes) < 5:
            end = next_end(made, start)
            sizes.append(len(rows_of(made, start, end)))
            start = end
    assert max(sizes) == 2


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_planned_batch_runs_again_and_the_stream_goes_on_behind_it(served: Served) -> None:
    server, listening = served
    anchor = begun(listening.port)
    insert(server, 1)
    with old_reader(listening.port) as made:
        assert made.partitions(anchor, anchor) == []  # what the latest offset in the log is
        planned = next_end(made, anchor)
    insert(server, 2)
    with old_reader(listening.port) as made:
        assert made.partitions(planned, planned) == []
        assert numbers(rows_of(made, anchor, planned)) == [1]
        following = next_end(made, planned)
        assert numbers(rows_of(made, planned, following)) == [2]


def test_the_only_question_of_a_run_is_answered_with_all_that_was_committed_before_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trigger.AvailableNow asks once: an answer after a while would often be "nothing new"."""
    monkeypatch.setattr(next_offset, "LONG_POLL_SECONDS", 0.0)
    server, listening = served
    anchor = begun(listening.port)
    for number in range(5):
        insert(server, number)
    with old_reader(listening.port) as made:
        made.partitions(anchor, anchor)
        end = made.latestOffset()
        assert numbers(rows_of(made, anchor, end)) == [0, 1, 2, 3, 4]


def test_a_query_that_stops_at_the_end_has_any_number_of_batches(served: Served) -> None:
    server, listening = served
    start, seen = begun(listening.port), []
    for number in range(5):
        insert(server, number)
    with old_reader(listening.port, maxRowsPerTrigger="2", stopAtEnd="true") as made:
        made.partitions(start, start)
        while True:
            end = made.latestOffset()
            if end == start:
                break
            seen.append(numbers(rows_of(made, start, end)))
            start = end
        insert(server, 9)
        assert numbers(rows_of(made, end, made.latestOffset())) == []
    assert [rows for rows in seen if rows] == [[0, 1], [2, 3], [4]]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_the_only_question_of_a_run_over_a_limit_is_answered_with_a_full_batch(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_offset, "LONG_POLL_SECONDS", 0.0)
    server, listening = served
    start, seen = begun(listening.port), []
    for number in range(5):
        insert(server, number)
    for _ in range(4):  # runs, the last with nothing new
        with old_reader(listening.port, maxRowsPerTrigger="2") as made:
            made.partitions(start, start)
            end = made.latestOffset()
            seen.append(numbers(rows_of(made, start, end)))
            start = end
    assert seen == [[0, 1], [2, 3], [4], []]


def said_by(program: str) -> str:
    """Run a program in a process of its own; return what it prints."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patiently(60), check=False)
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_spark_without_admission_control_gets_the_reader_that_needs_none() -> None:
    said = said_by(
        "import sys, pyspark.sql.datasource\n"
        "sys.modules['pyspark.sql.streaming.datasource'] = None\n"
        "from pyspark.sql.types import StructType\n"
        "from informix_cdc import InformixCdcDataSource\n"
        f"made = InformixCdcDataSource({source_options(1)!r}).streamReader(StructType())\n"
        "print(type(made).__name__, made.initialOffset()['version'])"
    )
    assert said.splitlines()[-1:] == ["ReaderWithoutLimits 1"], said


def test_a_spark_without_data_sources_in_python_is_refused_with_what_to_do() -> None:
    said = said_by(
        "import sys; sys.modules['pyspark.sql.datasource'] = None\nimport pyspark_informix_cdc"
    )
    last = said.splitlines()[-1]
    assert "requires PySpark 4.0 or later" in last, said
    assert "docs/versions.md" in last


def test_a_declared_schema_is_compared_in_utc_whatever_the_parameter_is_called() -> None:
    from informix_cdc.spark.versions import arrow_schema_of

    field = arrow_schema_of(StructType().add("at", "timestamp")).field("at")
    assert str(field.type) == "timestamp[us, tz=UTC]"


def test_a_beginning_that_takes_long_is_not_waited_for_without_end(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_offset, "ANCHOR_WAIT_SECONDS", 0.0)
    with old_reader(served[1].port) as made:
        assert made.latestOffset() == NOT_STARTED
