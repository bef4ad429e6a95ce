"""Targets equal Informix after every batch, whatever they keep, and whenever the process dies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.lake.ledger import Ledger, LedgerTable, ledger, require_account
from harness.lake.mirroring import MirrorRun, is_caught_up, until
from harness.lake.put_back import dying
from harness.runs.tiers import rest_in_all

pytestmark = pytest.mark.slow

QUICKLY = {"snapshotParallelism": "8"}


def worked_on(made: Ledger, run: MirrorRun, step: Callable[[], bool], rounds: int = 5) -> None:
    """Change the tables at random, in rounds, each of which the mirror has caught up with."""
    for _ in range(rounds):
        made.change(25)
        if made.random.random() < 0.4:
            made.truncate(made.random.choice(made.tables))
        made.change(3)
        until(step, is_caught_up(run, made))


def require_equal(run: MirrorRun, made: Ledger) -> None:
    """Compare all targets that are whole with the account at the end of the last batch."""
    batch = run.batches[-1]
    state = made.state_at(batch.commit)
    for table in made.tables:
        snapshot = batch.snapshots.get(f"informix.{table.name}")
        if snapshot is not None and snapshot.is_done:
            assert run.keyed(table) == state.get(table.name, {}), (table, batch)


@pytest.mark.parametrize(("seed", "tables"), rest_in_all([(1, 6), (2, 30)]))
def test_tables_equal_informix_after_every_batch(seed: int, tables: int, tmp_path: Path) -> None:
    with ledger(seed, tables) as (made, listening):
        made.change(2 * tables)
        settings = {"merge": "on-read" if seed == 1 else "auto"}
        run = MirrorRun(tmp_path, listening.port, settings, **QUICKLY)
        run.on_batch = lambda _: require_equal(run, made)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            worked_on(made, run, step)
        require_equal(run, made)
        assert sum(1 for table in made.tables if run.keyed(table)) > tables / 2


@pytest.mark.parametrize("seed", rest_in_all([3, 4]))
@pytest.mark.only_in_all
def test_changes_while_rows_are_read_for_the_first_time_are_in_the_tables_too(
    seed: int, tmp_path: Path
) -> None:
    with ledger(seed, 8) as (made, listening):
        made.change(200)
        run = MirrorRun(tmp_path, listening.port, **QUICKLY, snapshotChunkRows="3")
        run.on_batch = lambda _: require_equal(run, made)
        with run.running() as step:
            while not (run.batches and not run.batches[-1].loading):
                made.change(2)
                step()
            until(step, is_caught_up(run, made))
        require_equal(run, made)


@pytest.mark.only_in_all
def test_rows_that_are_gone_are_kept_with_the_time_where_deletes_are_soft(tmp_path: Path) -> None:
    with ledger(5, 6) as (made, listening):
        made.change(30)
        run = MirrorRun(tmp_path, listening.port, {"deletes": "soft"}, **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            worked_on(made, run, step)
        deleted = 0
        for table in made.tables:
            rows = run.rows(table.name)
            require_account("soft", rows, made, table)
            deleted += sum(row["_deleted_at"] is not None for row in rows)
        assert deleted > 0


def test_a_history_has_the_state_at_every_commit(tmp_path: Path) -> None:
    with ledger(6, 6) as (made, listening):
        made.change(30)
        run = MirrorRun(tmp_path, listening.port, {"keep": "history"}, **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            begun = run.batches[-1].commit
            worked_on(made, run, step)
        for table in made.tables:
            history = run.rows(table.name)
            require_account("history", history, made, table, begun)
            for row in history:
                is_open = row["_valid_to"] is None
                assert (row["_valid_to_timestamp"] is None) == is_open
                assert is_open or row["_valid_from"] < row["_valid_to"]


@pytest.mark.only_in_all
def test_changes_are_kept_as_they_came(tmp_path: Path) -> None:
    with ledger(7, 6) as (made, listening):
        made.change(30)
        run = MirrorRun(tmp_path, listening.port, {"keep": "changes"}, **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            begun = run.batches[-1].commit
            worked_on(made, run, step)
        for table in made.tables:
            rows = run.rows(table.name)
            require_account("changes", rows, made, table, begun)
            assert {row["_snapshot"] for row in rows if row["_commit_version"] <= begun} <= {True}


@pytest.mark.only_in_all
def test_a_table_that_is_created_while_the_mirror_runs_is_mirrored_too(tmp_path: Path) -> None:
    with ledger(9, 3) as (made, listening):
        made.change(30)
        run = MirrorRun(tmp_path, listening.port, stream__discovery_seconds=1, **QUICKLY)
        run.on_batch = lambda _: require_equal(run, made)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            late = LedgerTable("late", ("k0",), {"k0": "serial", "c0": "decimal(16,2)"})
            made.add(late)
            made.change(5, [late])
            until(step, lambda: "informix.late" in run.batches[-1].snapshots)
            made.change(20)
            until(step, is_caught_up(run, made))
            assert run.keyed(late) == made.state_at(run.batches[-1].commit)["late"] != {}
        assert [record["status"] for record in run.control("informix.late")] == ["mirrored"]


KEEPS: list[dict[str, str]] = [{}, {"keep": "history"}, {"keep": "changes"}, {"deletes": "soft"}]
DEATHS = [("mirror.after_table", 1), ("mirror.before_control", 1)]
MORE_DEATHS = [
    ("mirror.before_table", 1),
    ("mirror.before_table", 3),
    ("mirror.after_table", 3),
    ("mirror.after_control", 1),
]


@pytest.mark.parametrize(
    ("settings", "place", "passing"),
    rest_in_all(
        [(settings, *death) for settings in KEEPS for death in DEATHS]
        + [({}, *death) for death in MORE_DEATHS]
    ),
)
def test_a_batch_that_died_half_way_runs_again_without_a_second_version(
    settings: dict[str, str], place: str, passing: int, tmp_path: Path
) -> None:
    with ledger(8, 6) as (made, listening):
        made.change(30)
        run = MirrorRun(tmp_path, listening.port, {**settings, "parallelism": 1}, **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
        made.change(40)
        with dying(place, passing, threads_too=True), run.running(available_now=True) as step:
            step()  # has the 40 changes: another first batch might only move the restart position
        died = run.number
        before = {table.name: run.batches_in(table.name) for table in made.tables}
        is_in = [name for name, batches in before.items() if died in batches]
        with run.running() as step:
            assert step()
            after = {table.name: run.batches_in(table.name) for table in made.tables}
            assert {name: after[name] for name in is_in} == {name: before[name] for name in is_in}
            done = {"mirror.before_table": passing - 1, "mirror.after_table": passing}
            assert len(is_in) == done.get(place, len(run.batches[-1].changes))
            assert all(batches.count(died) <= 1 for batches in after.values())
            assert sum(batches.count(died) for batches in after.values()) >= 3
            assert run.batches_in("_informix_cdc_batches").count(died) == 1
            until(step, is_caught_up(run, made))
        if not settings:
            require_equal(run, made)
