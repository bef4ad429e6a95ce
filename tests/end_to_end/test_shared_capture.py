"""Spark reads a shared capture: by its folder, with the reader in the JVM, and over Flight."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from connector.jvm.java_reader import has_javac
from end_to_end.conftest import IN_JVM
from end_to_end.test_reader_in_the_jvm import is_read_in_columns, run
from harness.capture.driving import insert
from harness.capture.scraping import free_port
from harness.capture.shared import capturing, options_of_reader
from harness.lake.ledger import ledger
from harness.lake.mirroring import MirrorRun
from harness.servers.stores import listening_stores
from informix_cdc import lake
from informix_emulator import EmulatedServer

pytestmark = pytest.mark.spark

Shared = tuple[EmulatedServer, Path, int]


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    port = free_port()
    with listening_stores() as (server, listening):
        given: dict[str, object] = {"listen": f"127.0.0.1:{port}"}
        with capturing(listening.port, tmp_path / "shared", given):
            yield server, tmp_path / "shared", port


@pytest.mark.only_in_all
def test_one_capture_serves_queries_of_all_kinds(
    spark: SparkSession, shared: Shared, tmp_path: Path
) -> None:
    server, folder, port = shared
    session = spark.newSession()
    kinds = {"folder": (0, False), "flight": (port, False)}
    if has_javac():
        kinds["jvm"] = (0, True)
    arrived: dict[str, list[Row]] = {name: [] for name in kinds}
    for number in range(4):
        insert(server, *range(10 * number, 10 * number + 3))
        for name, (served_port, in_jvm) in kinds.items():
            options = options_of_reader(folder, name, served_port)
            made = run(session, options, tmp_path / name, in_jvm=in_jvm)
            if in_jvm and made.rows:
                assert is_read_in_columns(made)
            arrived[name] += made.rows
    session.conf.set(IN_JVM, "false")
    expected = [10 * number + each for number in range(4) for each in range(3)]
    for rows in arrived.values():
        assert [one.order_num for one in rows] == expected


def test_a_mirror_over_flight_equals_informix(spark: SparkSession, tmp_path: Path) -> None:
    port = free_port()
    folder = tmp_path / "shared"
    with ledger(21, 3) as (made, listening):
        made.change(20)
        given: dict[str, object] = {"listen": f"127.0.0.1:{port}", "mirror": True}
        with capturing(listening.port, folder, given, table="informix.*", snapshotParallelism="8"):
            batches: list[lake.MirroredBatch] = []
            for _ in range(2):
                query = lake.mirror(
                    spark,
                    source=options_of_reader(folder, "mirror", port),
                    into=str(tmp_path / "lake"),
                    checkpoint=str(tmp_path / "checkpoint"),
                    trigger={"availableNow": True},
                    on_batch=batches.append,
                )
                query.awaitTermination()
                assert query.exception() is None
                made.change(20)
        run_of = MirrorRun(tmp_path, listening.port)
        for table in made.tables:
            assert run_of.keyed(table) == made.state_at(batches[-1].commit)[table.name]
