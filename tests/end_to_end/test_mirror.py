"""`lake.mirror` in Spark: Delta tables that equal Informix, and all of them as of one commit."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from harness.lake.batches_by_hand import COLUMNS, Mirrored
from harness.lake.ledger import Ledger, LedgerTable, State, ledger
from harness.lake.mirroring import MirrorRun, is_caught_up, until
from harness.lake.object_stores import object_store
from harness.lake.put_back import DeltaFolder
from harness.servers.stores import source_options
from informix_capture_client.errors import BadOption
from informix_cdc import lake
from informix_cdc.lake import large_batches, mirrored_table, mirroring
from informix_cdc.lake.sessions import RESULT_LIMIT, lift_result_limit
from informix_checkpoints.requests import RESYNC, Request, RequestFolder

pytestmark = pytest.mark.spark


def mirrored(spark: SparkSession, folder: Path, port: int) -> list[lake.MirroredBatch]:
    """Run a mirror until it has all that was committed before."""
    batches: list[lake.MirroredBatch] = []
    query = lake.mirror(
        spark,
        source=source_options(port, table="informix.*", snapshotParallelism="8"),
        into=str(folder / "lake"),
        checkpoint=str(folder / "checkpoint"),
        merge="on-read",
        trigger={"availableNow": True},
        on_batch=batches.append,
    )
    query.awaitTermination()
    assert query.exception() is None
    return batches


def read(tables: lake.TablesAsOf, of: list[LedgerTable]) -> State:
    found: State = {}
    for table in of:
        rows = [row.asDict(recursive=True) for row in tables[table.name].collect()]
        found[table.name] = {tuple(row[name] for name in table.key): row for row in rows}
        assert len(found[table.name]) == len(rows)
    return found


def test_tables_equal_informix_as_of_every_batch_and_through_restarts(
    spark: SparkSession, tmp_path: Path
) -> None:
    with ledger(11, 4) as (made, listening):
        made.change(40)
        batches = mirrored(spark, tmp_path, listening.port)
        assert spark.sparkContext.getConf().get(RESULT_LIMIT) == "0"
        first = batches[-1].commit
        for _ in range(2):
            made.change(15)
            made.truncate(made.tables[0])
            made.change(15)
            batches += mirrored(spark, tmp_path, listening.port)
        require_equal(tmp_path, listening.port, made, batches[-1].commit)
        ends = [batch for batch in batches if batch.commit >= first and batch.changes]
        into = str(tmp_path / "lake")
        for batch in ends:
            found = lake.as_of(spark, into, batch.commit)
            assert (found.commit, found.committed_at, found.missing) == (
                batch.commit,
                batch.committed_at,
                {},
            )
            assert read(found, made.tables) == made.state_at(batch.commit)
        between = lake.as_of(spark, into, ends[-1].commit - 1)
        assert between.commit == ends[-2].commit
        assert batches[-1].committed_at is not None
        assert lake.as_of(spark, into, batches[-1].committed_at).commit == batches[-1].commit
        with pytest.raises(BadOption, match="no batch of the mirror ends at or before"):
            lake.as_of(spark, into, 1)


def test_a_batch_may_be_larger_than_what_the_driver_collects(spark: SparkSession) -> None:
    assert spark.sparkContext._jsc is not None
    conf = spark.sparkContext._jsc.sc().conf()
    try:
        conf.set(RESULT_LIMIT, "100k")
        frame = spark.range(0, 8000, 1, 8).selectExpr("uuid()")
        with pytest.raises(Py4JJavaError, match="maxResultSize"):
            frame.toArrow()
        with pytest.raises(BadOption, match="is 100k, but a task may return 65536 bytes"):
            lift_result_limit(spark, 1 << 16)
        lift_result_limit(spark, 1 << 15)
        assert frame.toArrow().num_rows == 8000
    finally:
        conf.remove(RESULT_LIMIT)


def test_a_large_batch_is_collected_partition_by_partition(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(0, 20, 1, 4).selectExpr("id", "encode(repeat(id, id), 'UTF-8') arrow")
    wanted = [{"id": n, "arrow": (str(n) * n).encode()} for n in range(20)]
    for limit in (1 << 20, 1):
        monkeypatch.setattr(large_batches, "LARGE_BYTES", limit)
        found = large_batches.collected(frame, tmp_path, 1, 1000)
        assert [{**row, "arrow": bytes(row["arrow"])} for row in found] == wanted


def test_tables_equal_informix_after_batches_that_do_not_fit_in_memory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected = large_batches.collected
    for module in (large_batches, mirrored_table):
        monkeypatch.setattr(module, "LARGE_BYTES", 0)
    monkeypatch.setattr(mirroring, "collected", lambda frame, at, *_: collected(frame, at, 0, 1))
    with ledger(13, 2) as (made, listening):
        for _ in range(3):
            made.change(40)
            batches = mirrored(spark, tmp_path, listening.port)
            require_equal(tmp_path, listening.port, made, batches[-1].commit)


def require_equal(folder: Path, port: int, made: Ledger, commit: int) -> None:
    run = MirrorRun(folder, port)
    for table in made.tables:
        assert run.keyed(table) == made.state_at(commit)[table.name]


def test_a_commit_is_read_after_maintenance_from_any_folder(
    spark: SparkSession, tmp_path: Path
) -> None:
    """OPTIMIZE makes a version of the same rows, VACUUM removes the files of the recorded one."""
    with ledger(12, 2) as (made, listening):
        made.change(30)
        folder = tmp_path / "größe #1? x"
        run = MirrorRun(folder, listening.port, table="informix.*")
        kept = made.tables[0]
        for tables in (made.tables, made.tables, made.tables[1:]):
            made.change(20, tables)
            with run.running() as step:
                until(step, is_caught_up(run, made))
        commit = run.batches[-1].commit
        for table in made.tables:
            DeltaFolder(run.lake).optimize(table.name)
            DeltaFolder(run.lake).vacuum(table.name)
            DeltaTable(str(run.lake / table.name)).create_checkpoint()
        for entry in sorted((run.lake / kept.name / "_delta_log").glob("*.json"))[:-1]:
            entry.unlink()  # the log's clean-up
        found = lake.as_of(spark, str(run.lake), commit)
        assert (found.commit, found.missing) == (commit, {})
        assert read(found, made.tables) == made.state_at(commit)
        with run.running() as step:
            made.change(10)
            until(step, is_caught_up(run, made))
        assert not run.stopped
        assert read(lake.as_of(spark, str(run.lake), commit), [kept]) == {
            kept.name: made.state_at(commit)[kept.name]
        }


def test_a_clock_that_was_set_back_and_a_table_made_anew(spark: SparkSession, tmp_path: Path) -> None:
    clock = [datetime(2026, 5, 1, 10, tzinfo=UTC).timestamp()]
    with ledger(13, 2) as (made, listening):
        made.server.clock = lambda: clock[0]
        run = MirrorRun(tmp_path, listening.port)
        ends = []
        for seconds in (0, 60, -3600, 60):
            clock[0] += seconds
            made.change(20)
            with run.running() as step:
                until(step, is_caught_up(run, made))
            ends.append(run.batches[-1])
        for end in ends[2:]:  # after the clock was set back
            assert end.committed_at is not None
            found = lake.as_of(spark, str(run.lake), end.committed_at)
            assert (found.commit, found.missing) == (end.commit, {})
            assert read(found, made.tables) == made.state_at(end.commit)
        again = made.tables[0]
        shutil.rmtree(run.lake / again.name)
        made.change(10)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            assert run.start is not None
            folder = RequestFolder(tmp_path / "checkpoint" / "spool" / run.start["stream"])
            folder.submit(Request(kind=RESYNC, tables=(f"informix.{again.name}",)))
            until(step, lambda: not run.batches[-1].stopped and not run.batches[-1].loading)
        found = lake.as_of(spark, str(run.lake), ends[2].commit)
        assert found.missing == {again.name: "it was made anew since"}
        assert read(found, made.tables[1:]) == {
            made.tables[1].name: made.state_at(ends[2].commit)[made.tables[1].name]
        }


def test_tables_in_an_object_store_are_read_as_of_a_commit(spark: SparkSession, tmp_path: Path) -> None:
    """Without Hadoop's file system: rows that are gone stay away, new columns are NULL in old files."""
    with object_store() as store:
        options = {"storage_options": store.options, "merge": "on-read"}
        made = Mirrored(tmp_path, into=store.url("a b"), **options)
        made.orders(*(("insert", 10, {"id": each, "note": f"n{each}"}) for each in range(4)))
        wide = {**COLUMNS, "n": pa.int64()}
        made.orders(
            ("delete", 110, {"id": 1, "note": "n1", "n": None}),
            ("insert", 110, {"id": 9, "note": "b", "n": 7}),
            columns=wide,
        )
        made.mirror.close()
        found = {}
        for commit in (100, 200):
            tables = lake.as_of(spark, store.url("a b"), commit, storage_options=store.options)
            found[commit] = sorted(map(tuple, tables["orders"].collect()))
    assert found[100] == [(each, f"n{each}", None) for each in range(4)]
    assert found[200] == [(0, "n0", None), (2, "n2", None), (3, "n3", None), (9, "b", 7)]
