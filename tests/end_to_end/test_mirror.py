"""`lake.mirror` in Spark: Delta tables that equal Informix, and all of them as of one commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.lake.ledger import Ledger, LedgerTable, State, ledger
from harness.lake.mirroring import MirrorRun
from harness.servers.stores import source_options
from informix_capture_client.errors import BadOption
from informix_cdc import lake

pytestmark = pytest.mark.spark


def mirrored(spark: SparkSession, folder: Path, port: int) -> list[lake.MirroredBatch]:
    """Run a mirror until it has all that was committed before."""
    batches: list[lake.MirroredBatch] = []
    query = lake.mirror(
        spark,
        source=source_options(port, table="informix.*", snapshotParallelism="8"),
        into=str(folder / "lake"),
        checkpoint=str(folder / "checkpoint"),
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


def require_equal(folder: Path, port: int, made: Ledger, commit: int) -> None:
    run = MirrorRun(folder, port)
    for table in made.tables:
        assert run.keyed(table) == made.state_at(commit)[table.name]
