"""Each rule of the design page's section 5 by itself, as a schedule that shows it and nothing else.

Rule: the schedules say what happens; that rows come once, whole and in order, that offsets only move
forward and that every pair is valid is judged by the same oracle as in thousands of random ones.
"""

from __future__ import annotations

import pytest

from harness.simulation.scripts import DIE, ScriptedWorld, failure, play
from harness.simulation.steps import Steps, begun, quiet_pair, rows
from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import show


def test_no_pair_cuts_a_transaction_that_commits_above_it() -> None:
    restarts: list[int] = []
    begins: list[int] = []

    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        world.account.transaction()
        older = world.account.transaction(commit=False)
        begins.append(older.begin)
        for _ in range(3):
            world.account.transaction()
            yield from world.batch()
            restarts.append(world.last["restart"])
        yield DIE
        world.account.commit(older)

    world = play(script)
    assert len(restarts) == 3
    assert max(restarts) <= begins[0]
    assert rows(world) == [1, 3, 4, 5, 2]


def test_a_restart_position_moves_on_once_the_oldest_transaction_has_ended() -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        older = world.account.transaction(commit=False)
        world.account.transaction()
        yield from world.batch()
        world.account.rollback(older)
        yield from quiet_pair(world)
        assert world.last["restart"] > older.begin

    play(script)


def test_a_death_before_the_anchor_is_logged_begins_another_stream() -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from world.until("latestOffset gave")
        yield DIE
        world.account.transaction()
        yield from begun(world)
        world.account.transaction()

    assert rows(play(script)) == [2]


@pytest.mark.fault(
    fault="death in batch 0, whose start Spark never logs",
    outcome="the batch is empty, and nothing that commits after the anchor is lost",
    seeds="with and without spoolPath",
)
@pytest.mark.parametrize("keeps_spool", [False, True])
def test_the_anchors_batch_is_empty_and_nothing_is_lost_when_death_comes_in_it(
    keeps_spool: bool,
) -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from world.until("batch 0 is in the offset log")
        anchor = world.last
        yield DIE
        world.account.transaction()
        yield from world.until("batch 0 has 0 partitions")
        yield DIE
        world.account.transaction()
        yield from begun(world)
        assert world.last == anchor

    assert rows(play(script, keeps_spool=keeps_spool)) == [1, 2]


def test_a_first_start_waits_for_transactions_older_than_itself() -> None:
    def script(world: ScriptedWorld) -> Steps:
        older = world.account.transaction(commit=False)
        for _ in range(3):
            world.spark_step()
            yield
        world.account.commit(older)
        yield from begun(world)
        assert world.last["unseen"] == []
        assert world.last["commit"] >= (older.commit or 0)

    assert rows(play(script)) == []


@pytest.mark.fault(
    fault="a transaction open over the start, over several restarts, whose id is used again",
    outcome="it is left out and counted; the next one with its id is delivered",
    seeds="with and without spoolPath",
)
@pytest.mark.parametrize("keeps_spool", [False, True])
def test_an_unseen_transaction_is_left_out_over_restarts_and_its_id_is_free_again(
    keeps_spool: bool,
) -> None:
    counts: list[int] = []

    def script(world: ScriptedWorld) -> Steps:
        older = world.account.transaction(commit=False)
        yield from begun(world)
        number = older.transaction.id
        for _ in range(2):
            assert world.last["unseen"] == [number]
            yield DIE
            world.account.insert(older)
            world.account.transaction()
            yield from world.batch()
        world.account.commit(older)
        again = world.account.transaction()
        assert again.transaction.id == number
        yield from world.batch()
        assert world.last["unseen"] == []
        capture = world.process.capture
        counts.append(capture.state.counters.assembly.unseen_transactions if capture else -1)

    world = play(script, keeps_spool=keeps_spool)
    assert rows(world) == [3, 5, 6]
    assert counts == [1]


@pytest.mark.fault(
    fault="a transaction that began after the start is open over several restarts",
    outcome="it comes once and whole when it commits",
    seeds="with and without spoolPath",
)
@pytest.mark.parametrize("keeps_spool", [False, True])
def test_a_transaction_that_is_open_over_several_restarts_comes_once_and_whole(
    keeps_spool: bool,
) -> None:
    def script(world: ScriptedWorld) -> Steps:
        older = world.account.transaction(commit=False)
        yield from begun(world)
        lasting = world.account.transaction(commit=False)
        for _ in range(3):
            world.account.insert(lasting)
            world.account.transaction()
            yield from world.batch()
            yield DIE
        world.account.commit(older)
        world.account.commit(lasting)

    assert rows(play(script, keeps_spool=keeps_spool)) == [4, 6, 8, 2, 3, 5, 7]


def headless(world: ScriptedWorld) -> Steps:
    """Deliver a transaction that began before the restart position and committed after it."""
    yield from begun(world)
    first = world.account.transaction(commit=False)
    lasting = world.account.transaction(commit=False)
    world.account.insert(first)
    world.account.commit(first)
    yield from world.batch()
    world.edit(1, restart=lasting.begin, witness=None)
    assert first.begin < lasting.begin < world.last["commit"]


def test_a_headless_transaction_at_or_below_the_last_commit_ends_silently() -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from headless(world)
        yield DIE
        world.account.transaction()
        yield from world.batch()

    assert rows(play(script)) == [1, 3, 4, 2]


@pytest.mark.fault(
    fault="a transaction commits whose beginning lies before the restart position",
    outcome="the query ends: data loss, with the transaction and both positions",
)
def test_a_headless_transaction_above_the_last_commit_is_loss() -> None:
    commits: list[int] = []

    def script(world: ScriptedWorld) -> Steps:
        yield from headless(world)
        world.edit(1, restart=world.last["commit"], witness=None, logged=None)
        yield DIE
        lasting = world.account.open[0]
        world.account.commit(lasting)
        commits.append(lasting.commit or 0)
        while True:
            world.spark_step()
            yield

    reason = failure(script)
    assert isinstance(reason, DataLoss)
    assert f"committed at {show(commits[0])}, but it began before" in reason.message
