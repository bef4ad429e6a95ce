"""A table joins with the rows it had: they are in the spool, and in no log to read them from again."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from harness.capture.driving import (
    LIMIT,
    Offset,
    anchor_of,
    drained,
    failure_of,
    reader,
    rows_of,
)
from harness.capture.snapshots import serving_tables
from harness.servers.stores import DATABASE
from informix_capture_client.errors import DataLoss
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import load_rows

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(20))"
PARTS = "CREATE TABLE informix.parts (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(20))"
NOTES = "CREATE TABLE informix.notes (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(20))"
ROWS = 7
JOINING = {"initialSnapshot": "informix.lines", "snapshotChunkRows": "3"}


def snapshot_of(offset: Offset) -> dict[str, Any]:
    """Return what an offset knows of the joiner's snapshot."""
    state: dict[str, Any] = offset["tables"].get("informix.lines", {}).get("snapshot", {})
    return {"rows": 0, "done": False, **state}


def until_a_chunk(made: InformixStreamReader, start: Offset) -> tuple[Offset, Offset]:
    """Run batches until one is planned that has rows of a chunk; return where it begins and ends."""
    while snapshot_of(end := made.latestOffset(start, LIMIT))["rows"] == 0:
        rows_of(made, start, end)
        start = end
    return start, end


def until_all_is_read(made: InformixStreamReader, start: Offset) -> list[dict[str, Any]]:
    """Run batches until the joiner's snapshot is done; return what came."""
    rows = []
    while not snapshot_of(start)["done"]:
        end = made.latestOffset(start, LIMIT)
        rows += rows_of(made, start, end)
        start = end
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("already", ["informix.parts", "informix.parts,informix.notes"])
@pytest.mark.fault(
    fault="a process ends with a planned batch that has rows of a chunk of a table that has just joined"
    " one other, or two",
    outcome="the next process has the same rows, from the spool, and goes on behind them",
)
@pytest.mark.only_in_all
def test_a_planned_batch_with_rows_of_a_joiner_comes_again_from_the_spool(
    already: str, tmp_path: Path
) -> None:
    spool = {"spoolPath": str(tmp_path)}
    with serving_tables(LINES, PARTS, NOTES) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.lines", [{"id": n, "name": "x"} for n in range(ROWS)])
        with reader(listening.port, table=already, **spool) as made:
            start = anchor_of(made)
            place = server.position()
            writer.rows("INSERT INTO informix.parts VALUES (1, 'y')")
            _, start = drained(made, start, place + 1)
        both = f"{already},informix.lines"
        with reader(listening.port, table=both, **JOINING, **spool) as made:
            start, end = until_a_chunk(made, start)
            planned = rows_of(made, start, end)
        with reader(listening.port, table=both, **JOINING, **spool) as made:
            assert rows_of(made, start, end) == planned
            more = until_all_is_read(made, end)
    read = [row["lines"]["id"] for row in planned + more if row["_snapshot"]]
    assert sorted(read) == list(range(ROWS))


@pytest.mark.slow
@pytest.mark.parametrize("goes_on", ["fail", "continue"])
@pytest.mark.fault(
    fault="the spool is lost with a planned batch that has rows of a chunk of a joiner",
    outcome="refused by name, with onDataLoss=continue too: no log has these rows",
)
@pytest.mark.only_in_all
def test_a_planned_batch_with_rows_of_a_joiner_is_refused_without_its_spool(
    goes_on: str, tmp_path: Path
) -> None:
    spool = {"spoolPath": str(tmp_path / "spool"), "onDataLoss": goes_on}
    both = "informix.parts,informix.lines"
    with serving_tables(LINES, PARTS) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", [{"id": n, "name": "x"} for n in range(ROWS)])
        with reader(listening.port, table="informix.parts", **spool) as made:
            start = anchor_of(made)
        with reader(listening.port, table=both, **JOINING, **spool) as made:
            start, end = until_a_chunk(made, start)
        rmtree(tmp_path / "spool")
        with reader(listening.port, table=both, **JOINING, **spool) as made:
            failure = failure_of(lambda: rows_of(made, start, end))
    assert isinstance(failure, DataLoss)
    assert "snapshot rows" in failure.message
    assert "empty the sink's copies of the tables" in failure.remedy
