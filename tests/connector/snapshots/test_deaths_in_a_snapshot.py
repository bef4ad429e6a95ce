"""A process dies while a table is read: the next one goes on behind the last chunk that Spark has."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import pytest

from harness.capture.batches import Batches, run_batches
from harness.capture.driving import failure_of
from harness.capture.snapshots import serving_tables
from harness.runs.deaths import die_at
from harness.runs.tiers import rest_in_all
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import DATABASE
from informix_capture_client.errors import DataLoss
from informix_capture_client.failpoints import failpoint
from informix_emulator import EmulatedServer, load_rows

pytestmark = pytest.mark.slow  # processes of their own
LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
ROWS = 7
# The first chunk, or a later one; the first thing that is appended to a manifest is no chunk.
FAILPOINTS = [
    "snapshot.after_select",
    "snapshot.after_select@2",
    "snapshot.before_marker",
    "snapshot.before_append@2",
    "snapshot.after_append",
    "spool.before_manifest@2",
    "batch.before_offset@2",
    "batch.after_offset@2",
    "batch.before_commit@2",
]
FAULT = "the process dies at every step of a chunk of a snapshot, and before and after each offset"


def run(port: int, folder: Path, options: dict[str, str]) -> None:
    """Run batches in a process of its own."""
    run_batches(port, folder, failpoint, **options)


def state_of(kept: Batches) -> dict[int, str]:
    """Return what a consumer has that upserts what comes."""
    state: dict[int, str] = {}
    for rows in kept.results:
        for row in rows:
            if row["_change_type"] in ("insert", "update_postimage"):
                state[row["id"]] = row["name"]
            else:
                state.pop(row["id"], None)
    return state


def has_lost_a_chunk(kept: Batches) -> bool:
    """Tell whether the batch that has to run again had rows of a chunk."""
    ends = kept.offsets
    if len(ends) == len(kept.results):
        return False
    before = ends[-2].get("chunk", 0) if len(ends) > 1 else 0
    return ends[-1].get("chunk", 0) > before


@pytest.mark.parametrize(
    ("name", "goes_on"),
    rest_in_all([*((each, "fail") for each in FAILPOINTS), ("batch.before_commit@2", "continue")]),
)
@pytest.mark.fault(
    fault="the process dies at every step of a chunk of a snapshot, and the spool is lost",
    outcome="a planned batch with rows of a chunk is refused by name; else the snapshot goes on, and"
    " the state of a consumer is exact",
)
def test_a_death_and_a_lost_spool(name: str, goes_on: str, tmp_path: Path) -> None:
    with serving_tables(LINES) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.lines", given(ROWS))
        options = options_of(tmp_path, onDataLoss=goes_on)
        die_at(name, run, listening.port, tmp_path / "spark", options)
        rmtree(tmp_path / "spool")
        upto = change(server, writer)
        kept = Batches(tmp_path / "spark")
        if has_lost_a_chunk(kept):  # the log does not have these rows, whatever may be lost
            failure = failure_of(lambda: run_batches(listening.port, tmp_path / "spark", **options))
            assert isinstance(failure, DataLoss)
            assert "snapshot rows" in str(failure)
            assert "empty the sink's copies of the tables" in failure.remedy
            return
        run_batches(listening.port, tmp_path / "spark", upto=upto, **options)
    assert state_of(kept) == EXPECTED


@pytest.mark.parametrize("name", rest_in_all(FAILPOINTS))
@pytest.mark.fault(
    fault=FAULT,
    outcome="the next one goes on behind the last chunk in the spool; no key comes twice, none is"
    " missing, and a batch that runs again has the same rows",
)
def test_a_death_with_the_spool_kept(name: str, tmp_path: Path) -> None:
    with serving_tables(LINES) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.lines", given(ROWS))
        options = options_of(tmp_path)
        die_at(name, run, listening.port, tmp_path / "spark", options)
        upto = change(server, writer)
        kept = run_batches(listening.port, tmp_path / "spark", upto=upto, **options)
    assert state_of(kept) == EXPECTED
    read = [row["id"] for rows in kept.results for row in rows if row["_snapshot"]]
    assert len(read) == len(set(read))
    assert read == sorted(read)


EXPECTED = {0: "changed", 2: "x", 3: "x", 4: "x", 6: "x", 50: "x"}


def change(server: EmulatedServer, writer: InProcessConnection) -> int:
    """Change rows of all chunks while nobody captures; return a place below the last commit."""
    writer.rows("UPDATE informix.lines SET name = 'changed' WHERE id = 0")
    writer.rows("DELETE FROM informix.lines WHERE id = 1")
    place = server.position()
    writer.rows("UPDATE informix.lines SET id = 50 WHERE id = 5")
    return place


def given(count: int) -> list[dict[str, object]]:
    return [{"id": n, "name": "x"} for n in range(count)]


def options_of(folder: Path, **more: str) -> dict[str, str]:
    return {
        "table": "informix.lines",
        "initialSnapshot": "all",
        "snapshotChunkRows": "3",
        "spoolPath": str(folder / "spool"),
        **more,
    }
