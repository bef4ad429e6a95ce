"""The reader in the JVM under Spark: the same name and checkpoint, and where it cannot read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row, SparkSession

from connector.jvm.java_reader import require_javac
from end_to_end.conftest import IN_JVM
from end_to_end.test_every_type import HIGHEST, LOWEST, USUAL, VALUES, name_of, null_row, row
from harness.servers.stores import ORDERS, listening_stores, order_row, source_options
from harness.spark import files_elsewhere
from harness.spark.collected import Collected
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = pytest.mark.spark

EVERY_TYPE = "stores:informix.every_type"
Served = tuple[EmulatedServer, ListeningServer]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    require_javac()
    with listening_stores() as (server, listening):
        server.create_table(EVERY_TYPE, ", ".join(f"{name_of(text)} {text}" for text in VALUES))
        yield server, listening


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """A session of its own: what is registered and set in it, others do not see."""
    return spark.newSession()


def run(session: SparkSession, options: dict[str, str], checkpoint: Path, *, in_jvm: bool) -> Collected:
    """Run a stream once, to the end of what is there."""
    session.conf.set(IN_JVM, str(in_jvm).lower())
    frame = session.readStream.format("informix-cdc").options(**options).load()
    made = Collected(frame, checkpoint).start(availableNow=True)
    made.wait_until(lambda: made.query is not None and not made.query.isActive)
    return made


def is_read_in_columns(made: Collected) -> bool:
    """Tell which reader the plan of the last batch names; one without rows shows no columns."""
    query: Any = made.query
    plan = query._jsq.explainInternal(False)
    is_named = "[rows read in the JVM]" in plan
    if query.lastProgress["numInputRows"]:
        assert ("ColumnarToRow" in plan) == is_named
    return is_named


@pytest.mark.only_in_all
def test_a_query_changes_between_both_readers_and_loses_and_repeats_nothing(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    server, listening = served
    options = source_options(listening.port, minPartitions="2")
    run(session, options, tmp_path / "checkpoint", in_jvm=True)  # notes where the stream begins
    arrived: list[Row] = []
    for number, in_jvm in enumerate((True, False, True, False)):
        with server.transaction() as transaction:
            for place in range(5):
                transaction.insert(ORDERS, order_row((5 * number + place, number, "a note", None)))
        made = run(session, options, tmp_path / "checkpoint", in_jvm=in_jvm)
        assert is_read_in_columns(made) == in_jvm
        arrived += made.rows
    assert [one.order_num for one in arrived] == list(range(20))
    assert len(set(arrived)) == 20
    memory = session._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()  # type: ignore[union-attr]
    assert memory.getAllocatedMemory() == 0


def test_an_executor_without_the_files_reads_in_python_and_has_the_same_values(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    cloudpickle.register_pickle_by_value(files_elsewhere)  # Spark's processes do not see the tests
    session.dataSource.register(files_elsewhere.FilesElsewhere)
    server, listening = served
    options = source_options(
        listening.port, table="informix.every_type", delivery="grpc+tls://127.0.0.1", shape="envelope"
    )
    run(session, options, tmp_path / "checkpoint", in_jvm=True)
    rows = [row(USUAL), row(LOWEST), row(HIGHEST), null_row()]
    with server.transaction() as transaction:
        for written, _ in rows:
            transaction.insert(EVERY_TYPE, written)
    made = run(session, options, tmp_path / "checkpoint", in_jvm=True)
    assert is_read_in_columns(made)
    assert [one.after.asDict() for one in made.rows] == [expected for _, expected in rows]
    assert {one.before for one in made.rows} == {None}


def started(session: SparkSession, options: dict[str, str], checkpoint: Path) -> Collected:
    """Start a query that the reader in the JVM is to read."""
    session.conf.set(IN_JVM, "true")
    frame = session.readStream.format("informix-cdc").options(**options).load()
    return Collected(frame, checkpoint).start()


def test_an_error_of_the_source_is_its_line_with_the_jar_too(
    session: SparkSession, served: Served, tmp_path: Path
) -> None:
    """Java's proxies take the text from a checked exception, and Spark's own is one."""
    served[0].set_full_row_logging(ORDERS, True)
    options = source_options(served[1].port, startingPosition="47")
    made = started(session, options, tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException) as caught:
        made.wait_until(lambda: False)
    assert "BadOption: IFXCDC-0003: option 'startingPosition' is 0:0x2f" in str(caught.value)
    assert "UndeclaredThrowable" not in str(caught.value)
