"""The rules of section 5 for another source or stream, for replays, jumps and quiet tables."""

from __future__ import annotations

import pytest

from harness.simulation.account import COLUMNS, TABLE
from harness.simulation.faults import lose_connections, overwrite, switch_log
from harness.simulation.scripts import DIE, ScriptedWorld, failure, play
from harness.simulation.steps import Steps, begun, minutes, quiet_pair, rows
from informix_capture_client.errors import ConnectionLost, DataLoss, InformixCdcError
from informix_capture_client.positions import show


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
        former.append(world.last["tables"]["informix.changes"]["digest"])
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


def replayed(ends_at: int) -> InformixCdcError:
    def script(world: ScriptedWorld) -> Steps:
        yield from planned(world, ends_at)
        while True:
            world.spark_step()
            yield

    return failure(script, watch_one_in=1)


def test_a_replay_whose_end_lies_far_beyond_the_servers_log_is_loss() -> None:
    reason = replayed(ends_at=5000 << 12)
    assert isinstance(reason, DataLoss)
    assert "but the server's log ends at" in reason.message


@pytest.mark.slow
def test_a_replay_whose_end_may_still_be_in_the_log_buffer_is_no_loss() -> None:
    reason = replayed(ends_at=3 << 12)
    assert isinstance(reason, ConnectionLost)
    assert "only TIMEOUT records arrived for 60 s" in reason.message
    assert "log buffer" in reason.remedy


@pytest.mark.slow
@pytest.mark.fault(
    fault="a planned batch is captured again, and the server sends TIMEOUT records only for minutes",
    outcome="one more session, then IFXCDC-0001: nothing is lost; started again, the same rows once it"
    " sends them",
)
def test_a_replay_from_a_server_that_stands_still_is_no_loss() -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from planned(world, ends_at=0)
        world.server.silence(True)
        while True:
            world.spark_step()
            yield

    reason = failure(script, watch_one_in=1)
    assert isinstance(reason, ConnectionLost)
    assert "Nothing is lost: start the query again" in reason.remedy


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
    fault="the log is overwritten while nobody reads, with onDataLoss=continue",
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
        counts.append(capture.state.counters.assembly.unseen_transactions if capture else -1)

    world = play(script, keeps_spool=keeps_spool, on_data_loss="continue")
    assert world.stream_count == 2
    assert rows(world) == [1, 5]
    assert counts == [1]


@pytest.mark.fault(
    fault="the log is overwritten under an open session, with onDataLoss=continue",
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

    world = play(script, keeps_spool=keeps_spool, on_data_loss="continue")
    assert world.stream_count == 2
    assert world.failures == []
    assert rows(world)[0] == 1


def test_a_batch_planned_of_a_stream_that_is_lost_before_it_runs_is_empty() -> None:
    def script(world: ScriptedWorld) -> Steps:
        yield from begun(world)
        switch_log(world)
        world.server.begin().commit()
        yield from minutes(world)
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

    world = play(script, on_data_loss="continue")
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
