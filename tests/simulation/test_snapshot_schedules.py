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
from dataclasses import replace
from typing import NamedTuple

import pytest

from harness.runs.examples import PROFILE, in_this_run
from harness.runs.tiers import rest_in_all
from harness.simulation.decisions import Decisions
from harness.simulation.schedules import play, played
from harness.simulation_of_snapshots.schedules import (
    play_many,
    with_a_snapshot,
    with_a_table_that_joins,
)
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

FIXED_SEEDS = 80
RANDOM_SEEDS = 40
PARTS = 4
JOINING_SEEDS = (16, 8)  # fixed ones, and new ones
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
    seeds="16 fixed and 8 new ones in each build, 60 in `make test-all`, 10,800 in `make thorough`",
)
@pytest.mark.parametrize("part", rest_in_all(range(PARTS)))  # which may go to several workers
def test_at_every_batch_end_a_consumer_has_the_rows_of_the_writers_own_account(
    part: int, capsys: pytest.CaptureFixture[str]
) -> None:
    base = secrets.randbelow(1 << 40)
    share = 9 if PROFILE == "thorough" else 1  # a schedule takes half a second
    count = share * in_this_run(RANDOM_SEEDS) // PARTS
    reached = play_many(range(part, share * in_this_run(FIXED_SEEDS), PARTS))
    reached += play_many(range(base, base + count))
    with capsys.disabled():
        sys.stdout.write(f"\nsnapshots: seeds, and {count} from {base} on: {reached}\n")
    unsure = reached.taken_for_older
    assert unsure <= max(2, reached.schedules // 100), "too much is beyond the oracle's judgement"
    missing = [name for name, times in vars(replace(reached, taken_for_older=1)).items() if times == 0]
    if PROFILE == "thorough":  # fewer may be tame by chance
        assert not missing, "the schedules have become too tame"


@pytest.mark.fault(
    fault="a table joins with a snapshot while writers change both tables in the same transactions,"
    " open before and after it joins: deaths, lost connections and a lost spool in its snapshot too",
    outcome="the rows of the other table come once each, in order; of the one that joins, a consumer"
    " has at the end of every batch what the writers' own account has, in the range that was read",
    seeds="3 fixed and 2 new ones in each build, 12 in `make test-all`, 480 in `make thorough`",
)
def test_a_table_joins_with_its_rows_and_the_other_one_loses_and_repeats_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = secrets.randbelow(1 << 40)
    share = 20 if PROFILE == "thorough" else 1
    fixed, new = (share * in_this_run(count) for count in JOINING_SEEDS)
    reached = play_many(range(fixed), with_a_table_that_joins)
    reached += play_many(range(base, base + new), with_a_table_that_joins)
    with capsys.disabled():
        sys.stdout.write(f"\njoining: seeds, and {new} from {base} on: {reached}\n")
    assert reached.rows_of_chunks
    assert reached.rows_of_the_log


def _waits_for_no_older_one(patch: Patch) -> None:
    patch.setattr(Snapshots, "may_leave_out_older", lambda _self, _answer: True)


STATE, CHANGES = "state after batch", "batch "


class Fault(NamedTuple):
    """A fault, and how it shows.

    Attributes:
        put: puts it into the product.
        shows_in: what a schedule must have for it.
        first: of these, one in which it has shown: it is tried first.
        wrong: how the violation begins; any other one would be another reason to fail.
    """

    put: Callable[[Patch], None]
    first: int
    shows_in: Callable[[SnapshotSetup], bool] = lambda _: True
    wrong: str = STATE


FAULTS = {
    "the low watermark is not settled": Fault(_unsettled, 14, lambda setup: setup.late_release),
    "post-images alone count as touched, as where before images are off": Fault(_post_images_only, 23),
    "touched keys are known from the chunk's start": Fault(_from_the_chunks_start, 16),
    "a TIMEOUT passes the barrier": Fault(_passed_by_a_timeout, 46, lambda setup: setup.is_buffered),
    "whatever the reader has passed is behind the SELECT": Fault(_passed_by_anything, 46),
    "nothing is left out": Fault(_nothing_dropped, 0),
    "a TRUNCATE touches nothing": Fault(_truncate_ignored, 65, lambda setup: bool(setup.truncate)),
    "the snapshot does not wait for transactions older than the stream": Fault(
        _waits_for_no_older_one, 4, lambda setup: bool(setup.older_steps), CHANGES
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_of_the_product_is_found_by_what_a_consumer_has(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is the fault: without it the same schedule is as it must be."""
    fault.put(monkeypatch)
    seeds = (fault.first, *range(_MOST_SEEDS_FOR_A_FAULT))
    fit = (seed for seed in seeds if fault.shows_in(SnapshotSetup.decided(Decisions(seed))))
    found = ((seed, wrong) for seed in fit if (wrong := played(seed, with_a_snapshot)[1]))
    seed, wrong = next(found)
    assert str(wrong).startswith(fault.wrong)
    monkeypatch.undo()
    assert not played(seed, with_a_snapshot)[1]


@pytest.mark.slow
def test_the_same_seed_is_the_same_schedule() -> None:
    """Of this seed connections are lost, so that it waits between two tries."""
    first, second = play(7, with_a_snapshot), play(7, with_a_snapshot)
    assert first.decide.made == second.decide.made
    assert first.steps == second.steps


@pytest.mark.skipif("INFORMIX_CDC_SNAPSHOT_SEED" not in os.environ, reason="names no seed")
def test_one_seed_with_its_steps(capsys: pytest.CaptureFixture[str]) -> None:
    world = play(int(os.environ["INFORMIX_CDC_SNAPSHOT_SEED"]), with_a_snapshot)
    with capsys.disabled():
        sys.stdout.write("\n".join(["", str(world.setup), *world.steps]))
