"""Thousands of seeded schedules of a snapshot with writers between any two of its steps.

    INFORMIX_CDC_SNAPSHOT_SEED=17    only this one, with its steps

Rule: the whole product but for Spark, sockets and threads; what reads the table stands still between
two of its statements, two rows of a SELECT, and at its failpoints. At the end of every batch the state
of a consumer is what the writers' own account says; each fault put into the product is found.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Callable, Iterator

import pytest

from harness.runs.examples import PROFILE, in_this_run
from harness.simulation.decisions import Decisions
from harness.simulation.schedules import play, played
from harness.simulation_of_snapshots.schedules import play_many, with_a_snapshot
from harness.simulation_of_snapshots.world import SnapshotSetup
from informix_cdc.snapshots.snapshots import Snapshots
from simulation.test_snapshot_rules import (
    Patch,
    _from_the_chunks_start,
    _nothing_dropped,
    _passed_by_a_timeout,
    _passed_by_anything,
    _post_images_only,
    _truncate_ignored,
    _unsettled,
)

FIXED_SEEDS = 200
RANDOM_SEEDS = 80
PARTS = 4
_MOST_SEEDS_FOR_A_FAULT = 1500


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Errors are logged loudly, thousands of times."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.fault(
    fault="writers of every kind between any two steps of a chunk of a snapshot: insert, update,"
    " delete, a key that moves, TRUNCATE, rollback, savepoints; locks that stay after a COMMIT, a log"
    " that is flushed late, locks on pages; deaths, lost connections and a lost spool",
    outcome="at the end of every batch a consumer has the rows that the writers' own account has, in"
    " the range that was read; each change once; places unique and rising",
    seeds="100 fixed and 40 new ones in each build, 11,200 in `make thorough`",
)
@pytest.mark.parametrize("part", range(PARTS))  # which may go to several workers
def test_at_every_batch_end_a_consumer_has_the_rows_of_the_writers_own_account(
    part: int, capsys: pytest.CaptureFixture[str]
) -> None:
    base = secrets.randbelow(1 << 40)
    share = 4 if PROFILE == "thorough" else 1  # a schedule takes half a second
    count = share * in_this_run(RANDOM_SEEDS) // PARTS
    reached = play_many(range(part, share * in_this_run(FIXED_SEEDS), PARTS))
    reached += play_many(range(base, base + count))
    with capsys.disabled():
        sys.stdout.write(f"\nsnapshots: seeds, and {count} from {base} on: {reached}\n")
    missing = [name for name, times in vars(reached).items() if times == 0]
    if PROFILE == "thorough":  # fewer may be tame by chance
        assert not missing, "the schedules have become too tame"


def _waits_for_no_older_one(patch: Patch) -> None:
    patch.setattr(Snapshots, "may_leave_out_older", lambda _self, _answer: True)


Fault = tuple[Callable[[Patch], None], Callable[[SnapshotSetup], bool]]
# and in which schedules it can show
FAULTS: dict[str, Fault] = {
    "the low watermark is not settled": (_unsettled, lambda setup: setup.late_release),
    "post-images alone count as touched, as where before images are off": (
        _post_images_only,
        lambda _: True,
    ),
    "touched keys are known from the chunk's start": (_from_the_chunks_start, lambda _: True),
    "a TIMEOUT passes the barrier": (_passed_by_a_timeout, lambda setup: setup.is_buffered),
    "whatever the reader has passed is behind the SELECT": (_passed_by_anything, lambda _: True),
    "nothing is left out": (_nothing_dropped, lambda _: True),
    "a TRUNCATE touches nothing": (_truncate_ignored, lambda setup: bool(setup.truncate)),
    "the snapshot does not wait for transactions older than the stream": (
        _waits_for_no_older_one,
        lambda setup: bool(setup.older_steps),
    ),
}


@pytest.mark.parametrize(("fault", "may_show"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_of_the_product_is_found(
    fault: Callable[[Patch], None],
    may_show: Callable[[SnapshotSetup], bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault(monkeypatch)
    seeds = range(_MOST_SEEDS_FOR_A_FAULT)
    fit = (seed for seed in seeds if may_show(SnapshotSetup.decided(Decisions(seed))))
    assert any(played(seed, with_a_snapshot)[1] for seed in fit)


def test_the_same_seed_is_the_same_schedule() -> None:
    first, second = play(7, with_a_snapshot), play(7, with_a_snapshot)
    assert first.decide.made == second.decide.made
    assert first.steps[:20] == second.steps[:20]


@pytest.mark.skipif("INFORMIX_CDC_SNAPSHOT_SEED" not in os.environ, reason="names no seed")
def test_one_seed_with_its_steps(capsys: pytest.CaptureFixture[str]) -> None:
    world = play(int(os.environ["INFORMIX_CDC_SNAPSHOT_SEED"]), with_a_snapshot)
    with capsys.disabled():
        sys.stdout.write("\n".join(["", str(world.setup), *world.steps]))
