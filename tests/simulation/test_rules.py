"""Each rule of the design page's section 5 by itself, as a schedule that shows it and nothing else.

Rule: the schedules say what happens; that rows come once, whole and in order, that offsets only move
forward and that every pair is valid is judged by the same oracle as in thousands of random ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from informix_cdc.capture_client.errors import DataLoss
from informix_cdc.capture_client.positions import show
from simulation.account import COLUMNS, TABLE
from simulation.faults import lose_connections, overwrite, switch_log
from simulation.scripts import DIE, ScriptedWorld, failure, play

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
    """Let minutes pass, so that a restart position is published, and let its batch run."""
    world.now += 130
    yield
    yield from world.batch()


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
    assert restarts == begins * 3
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
        counts.append(capture.state.counters.unseen_transactions if capture else -1)

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
    assert first.begin < lasting.begin == world.last["restart"] < world.last["commit"]


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
        world.edit(1, restart=world.last["commit"])
        yield DIE
        lasting = world.account.open[0]
        world.account.commit(lasting)
        commits.append(lasting.commit or 0)
        while True:
            world.spark_step()
            yield

    reason = failure(script)
    assert isinstance(reason, DataLoss)
    assert f"committed at {show(commits[0])}, but its beginning lies before" in reason.message


@pytest.mark.fault(
    fault="a captured table is dropped and created anew between two runs",
    outcome="the query ends: data loss that names both identities",
    seeds="with and without spoolPath",
)
@pytest.mark.parametrize("keeps_spool", [False, True])
def test_another_source_is_refused_by_an_error_that_names_both(keeps_spool: bool) -> None:
    former: list[str] = []

    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        former.append(world.last["source"])
        yield DIE
        world.server.drop_table(TABLE)
        world.server.create_table(TABLE, COLUMNS)
        while True:
            world.spark_step()
            yield

    reason = failure(script, keeps_spool=keeps_spool)
    assert isinstance(reason, DataLoss)
    assert reason.facts["expected"] == former[0] != reason.facts["found"]
    assert former[0] in reason.message
    assert str(reason.facts["found"]) in reason.message


def test_another_stream_is_refused_by_an_error_that_names_both() -> None:
    former: list[str] = []

    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        former.append(world.last["stream"])
        world.account.transaction()
        yield from world.until("batch 1 is in the offset log")
        world.edit(1, stream="another")
        yield DIE
        while True:
            world.spark_step()
            yield

    reason = failure(script)
    assert isinstance(reason, DataLoss)
    assert f"stream {former[0]} of" in reason.message
    assert "stream another of" in reason.message


def planned(world: ScriptedWorld, ends_at: int) -> Steps:
    """Die with a batch in the offset log whose end is so many bytes behind its last commit."""
    yield from begun(world)
    world.account.transaction()
    yield from world.until("batch 1 is in the offset log")
    world.edit(1, commit=world.last["commit"] + ends_at)
    yield DIE


def test_a_replay_that_meets_a_timeout_before_its_end_is_loss() -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from planned(world, ends_at=1 << 12)
        while True:
            world.spark_step()
            yield

    reason = failure(script)
    assert isinstance(reason, DataLoss)
    assert "but the server has nothing beyond" in reason.message


def test_a_replay_that_meets_a_later_commit_before_its_end_is_loss() -> None:
    later: list[int] = []

    def script(world: ScriptedWorld) -> Steps:
        yield from planned(world, ends_at=1)
        later.append(world.account.transaction().commit or 0)
        while True:
            world.spark_step()
            yield

    reason = failure(script)
    assert isinstance(reason, DataLoss)
    assert f"but the log continues with {show(later[0])}" in reason.message


@pytest.mark.parametrize("keeps_spool", [False, True])
def test_a_planned_batch_is_the_same_rows_after_several_deaths(keeps_spool: bool) -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        world.account.transaction()
        yield from world.until("batch 1 is in the offset log")
        for where in ("batch 1 has", "batch 1 is in the sink", "batch 1 is in the sink"):
            yield DIE
            world.account.transaction()
            yield from world.until(where)

    world = play(script, keeps_spool=keeps_spool)
    assert world.checkpoint.sink[1]["id"].to_pylist() == [1]
    assert rows(world) == [1, 2, 3, 4]


@pytest.mark.fault(
    fault="the log is overwritten while nobody reads, with failOnDataLoss=false",
    outcome="all rows before it come, none twice, and the stream goes on at the oldest log; a"
    " transaction without its beginning is counted and no error",
    seeds="with and without spoolPath",
)
@pytest.mark.parametrize("keeps_spool", [False, True])
def test_after_a_jump_headless_transactions_are_counted_and_no_errors(keeps_spool: bool) -> None:
    counts: list[int] = []

    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        world.account.transaction()
        yield from world.batch()
        yield DIE
        world.account.transaction()  # lost
        cut = world.account.transaction(commit=False)
        switch_log(world)
        world.account.insert(cut)
        world.account.commit(cut)
        overwrite(world, switches=1)
        world.account.transaction()
        yield from world.until("latestOffset gave")
        yield from world.batch()
        yield from world.until("latestOffset gave")
        yield from world.batch()
        capture = world.process.capture
        counts.append(capture.state.counters.unseen_transactions if capture else -1)

    world = play(script, keeps_spool=keeps_spool, fail_on_data_loss=False)
    assert world.stream_count == 2
    assert rows(world) == [1, 5]
    assert counts == [1]


@pytest.mark.fault(
    fault="the log is overwritten under an open session, with failOnDataLoss=false",
    outcome="rows that were captured come first, also when Spark is slow; then the stream goes on",
    seeds="with and without spoolPath",
)
@pytest.mark.parametrize("keeps_spool", [False, True])
def test_a_jump_waits_until_spark_has_what_was_captured(keeps_spool: bool) -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        world.account.transaction()
        yield from world.until("batch 1 has 1 partitions")  # planned, and not yet read
        for _ in range(3):
            switch_log(world)
        overwrite(world)
        lose_connections(world)
        world.account.transaction()
        for _ in range(9):
            yield
        yield from world.batch()
        yield from world.until("latestOffset gave")
        yield from world.batch()
        world.account.transaction()

    world = play(script, keeps_spool=keeps_spool, fail_on_data_loss=False)
    assert world.stream_count == 2
    assert world.failures == []
    assert rows(world)[0] == 1


def test_a_batch_planned_of_a_stream_that_is_lost_before_it_runs_is_empty() -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        world.server.begin().commit()
        world.now += 130
        yield from world.until("batch 1 is in the offset log")  # a pair that moves restart only
        for _ in range(3):
            switch_log(world)
        overwrite(world)
        lose_connections(world)
        for _ in range(9):
            yield
        yield from world.batch()
        yield from world.batch()
        world.account.transaction()

    world = play(script, fail_on_data_loss=False)
    assert world.stream_count == 2
    assert rows(world) == [1]


@pytest.mark.fault(
    fault="nothing captured changes while the log comes round",
    outcome="the restart position moves on by itself, and a restart finds it in the log",
    seeds="with and without spoolPath, foreign commits and rollbacks only",
)
@pytest.mark.parametrize("keeps_spool", [False, True])
@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_quiet_table_keeps_its_place_over_a_log_wrap(keeps_spool: bool, ending: str) -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        world.account.transaction()
        yield from world.batch()
        for _ in range(4):
            former = world.last["restart"]
            switch_log(world)
            foreign = world.server.begin()
            getattr(foreign, ending)()
            yield from quiet_pair(world)
            assert world.last["restart"] > former
            switch_log(world)
        assert world.server.oldest_log() > 1
        yield DIE
        world.account.transaction()
        yield from world.batch()

    world = play(script, keeps_spool=keeps_spool)
    assert rows(world) == [1, 2]


def test_a_quiet_table_takes_few_batches() -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        for _ in range(50):
            world.server.begin().commit()
            world.now += 10
            yield
            world.spark_step()

    assert len(play(script).checkpoint.offsets) <= 8
