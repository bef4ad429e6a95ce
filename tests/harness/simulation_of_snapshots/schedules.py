"""Play schedules of snapshots, and count what they came through.

Rule: as of streams: a failure names what is needed to play it again, and its shortest form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.simulation.decisions import Decisions
from harness.simulation.schedules import Make, Tally, play_all
from harness.simulation.world import World
from harness.simulation_of_snapshots.joining import JoiningSetup, JoiningWorld
from harness.simulation_of_snapshots.oracle import SnapshotOracle
from harness.simulation_of_snapshots.requesting import RequestingSetup, RequestingWorld
from harness.simulation_of_snapshots.world import SnapshotSetup, SnapshotWorld


@dataclass
class Reached(Tally):
    """What schedules of snapshots came through."""

    commits: int = 0
    truncates: int = 0
    batches: int = 0
    rows_of_chunks: int = 0
    rows_of_the_log: int = 0
    rows_left_out: int = 0
    steps_of_readers: int = 0
    deaths: int = 0
    lost_spools: int = 0
    refused_for_it: int = 0
    taken_for_older: int = 0  # transactions that no oracle can judge


def with_a_snapshot(decide: Decisions, folder: Path) -> SnapshotWorld:
    """Make the world of a stream that begins with a snapshot."""
    return SnapshotWorld(decide, SnapshotSetup.decided(decide), folder)


def with_requests(decide: Decisions, folder: Path) -> SnapshotWorld:
    """Make the world of a stream whose table joins, is read again and is altered."""
    return RequestingWorld(decide, RequestingSetup.decided(decide), folder)


def with_a_table_that_joins(decide: Decisions, folder: Path) -> SnapshotWorld:
    """Make the world of a stream that a table joins, with a snapshot."""
    return JoiningWorld(decide, JoiningSetup.decided(decide), folder)


def play_many(seeds: Iterable[int], make: Make = with_a_snapshot) -> Reached:
    """Play schedules of snapshots."""
    return play_all(seeds, make, _counted)


def _counted(world: World) -> Reached:
    assert isinstance(world, SnapshotWorld)
    assert isinstance(world.oracle, SnapshotOracle)
    tables = [table for table in world.checkpoint.sink.values() if table is not None]
    kinds = [is_of_chunk for table in tables for is_of_chunk in table["_snapshot"].to_pylist()]
    changes = [change for noted in world.account.committed for change in noted.changes]
    return Reached(
        schedules=1,
        commits=len(world.account.committed),
        truncates=sum(kind == "truncate" for kind, _, _ in changes),
        batches=len(tables),
        rows_of_chunks=sum(map(bool, kinds)),
        rows_of_the_log=len(kinds) - sum(map(bool, kinds)),
        rows_left_out=world.rows_left_out,
        steps_of_readers=sum("snapshot goes on" in step for step in world.steps),
        deaths=world.lives - 1,
        lost_spools=world.lost_spools,
        refused_for_it=world.is_lost,
        taken_for_older=world.oracle.left_out_count,
    )
