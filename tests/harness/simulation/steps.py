"""Steps that several schedules written by hand have in common."""

from __future__ import annotations

from collections.abc import Iterator

from harness.simulation.scripts import ScriptedWorld

Steps = Iterator[str | None]


def begun(world: ScriptedWorld) -> Steps:
    """Let the stream begin: the anchor's batch is through."""
    yield from world.batch()
    assert world.checkpoint.sink == {0: None}


def rows(world: ScriptedWorld) -> list[int]:
    """The numbers of all rows in the sink, batch by batch."""
    tables = [table for _, table in sorted(world.checkpoint.sink.items()) if table is not None]
    return [number for table in tables for number in table["id"].to_pylist()]


def quiet_pair(world: ScriptedWorld) -> Steps:
    """Let minutes pass, so that a restart position is found and published, and let its batch run."""
    yield from minutes(world)
    yield from world.batch()


def minutes(world: ScriptedWorld) -> Steps:
    """Let minutes pass in which a server that has nothing to say is taken at its word."""
    for _ in range(6):
        world.now += 65
        yield
