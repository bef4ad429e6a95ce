"""Thousands of seeded schedules of workload, faults, deaths and restarts, without Spark.

    INFORMIX_CDC_SIMULATION_SEEDS=100000    so many schedules, from a seed that is printed
    INFORMIX_CDC_SIMULATION_SEED=17         only this one, with its steps

Rule: a seed that fails is printed with its steps, and goes into REGRESSIONS with a sentence of what it
showed. What it showed has a schedule written by hand in test_rules.py as well: a seed means something
else once the world decides more.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Iterator

import pytest

from harness.runs.examples import PROFILE, in_this_run
from harness.runs.tiers import rest_in_all
from harness.simulation.schedules import play, play_many

FIXED_SEEDS = 400
RANDOM_SEEDS = 200
PARTS = 4
SHARE = {"quick": 0.4, "thorough": 1.5}.get(PROFILE, 1.0)  # some fifty find what is broken
REGRESSIONS = [
    (2, "a log overwritten under an open session ended the query although onDataLoss was continue"),
    (1013, "a jump removed segments that Spark had planned and not yet read"),
    (1569, "a batch planned of a stream that was left since met the spool of the next one"),
]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Losses are logged loudly, thousands of times."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


@pytest.mark.fault(
    fault="death at every failpoint and between any two steps, lost connections, killed sessions, a"
    " server that restarts, is silent or sends TIMEOUT only, logs that come round; reads cut anywhere",
    outcome="the workload's own account: same rows, whole, in order, once; every pair valid; batches"
    " replayed to the byte",
    seeds="80 fixed and 40 new ones in each build, 300 in `make test-all`, 9,000 in `make thorough`",
)
@pytest.mark.parametrize("part", rest_in_all(range(PARTS)))  # which may go to several workers
def test_every_schedule_ends_with_the_rows_of_the_workloads_own_account(
    part: int, capsys: pytest.CaptureFixture[str]
) -> None:
    base = secrets.randbelow(1 << 40)
    asked = os.environ.get("INFORMIX_CDC_SIMULATION_SEEDS", in_this_run(SHARE * RANDOM_SEEDS))
    count = int(asked) // PARTS
    fixed = range(part, in_this_run(SHARE * FIXED_SEEDS), PARTS)
    with capsys.disabled():
        say(f"\nsimulation: seeds {fixed}, and {count} from {base} on")
    reached = play_many(fixed) + play_many(range(base, base + count))
    with capsys.disabled():
        say(f"simulation: {reached}")
    missing = [name for name, times in vars(reached).items() if times == 0]
    if PROFILE == "thorough":  # fewer may be tame by chance
        assert not missing, "the schedules have become too tame"


@pytest.mark.parametrize("seed", [seed for seed, _ in REGRESSIONS])
def test_a_seed_that_once_failed_passes(seed: int) -> None:
    play(seed)


def test_the_same_seed_is_the_same_schedule() -> None:
    first, second = play(7), play(7)
    assert first.decide.made == second.decide.made
    assert len(first.steps) == len(second.steps)


def test_the_decisions_of_a_schedule_play_it_again() -> None:
    first = play(7)
    assert play(first.decide.made).steps == first.steps


@pytest.mark.skipif("INFORMIX_CDC_SIMULATION_SEED" not in os.environ, reason="names no seed")
def test_one_seed_with_its_steps(capsys: pytest.CaptureFixture[str]) -> None:
    world = play(int(os.environ["INFORMIX_CDC_SIMULATION_SEED"]))
    with capsys.disabled():
        say("\n".join(["", str(world.setup), *world.steps]))
