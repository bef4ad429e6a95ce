"""Failpoints, with and without a spool that is kept: die there, start again, compare.

A stream with `spoolPath` or one without, by turns; both over the same changes, and both die, in the
sequences and in `make thorough`.

    INFORMIX_CDC_CRASH_TURN=2026-11-21 pytest tests/crashes    the failpoints of that day
    INFORMIX_CDC_CRASH_SEEDS=17 pytest tests/crashes           a run again
    INFORMIX_CDC_CRASH_SEEDS=random:50 pytest tests/crashes    a long one
"""

from __future__ import annotations

import random
import signal

import pytest

from crashes.conftest import chosen_of, seeds
from harness.oracles.delivered import planned_batches
from harness.oracles.long_workload import LongWorkload
from harness.runs.examples import PROFILE
from harness.spark.mortal_stream import MortalStreams, end_and_compare, wait_for
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Served = tuple[EmulatedServer, ListeningServer]

EACH_TIME = [
    "spool.before_manifest",
    "replace_file.after_rename",
    "reader.partitions",
    "reader.commit",
]
# These die without Spark in each build: tests/checkpoints/spool and tests/simulation.
BY_TURNS = [
    "capture.after_lo_read",
    "capture.in_assembly",
    "capture.before_flush",
    "segment.before_sync",
    "journal.before_append",
    "journal.after_append",
    "replace_file.before_rename",
    "reader.latest_offset",
    "reader.read",
    "spool.before_unlink",
]
FAILPOINTS = EACH_TIME + BY_TURNS
CHOSEN = EACH_TIME + chosen_of(BY_TURNS)
DEATHS_IN_A_SEQUENCE = 6 if PROFILE == "thorough" else 3
SEQUENCES = "1 or 2 by the date; others by INFORMIX_CDC_CRASH_SEEDS"
SIGNALS = {"SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL}


@pytest.mark.fault(
    fault="the process at a failpoint dies under load, with spoolPath (read in the JVM) and"
    " without (in Python): each step of capture, segment, manifest, latestOffset, partitions, read,"
    " commit and trim",
    outcome="after a restart every change is there once, in order; transactions are whole",
    seeds="4 of 14 failpoints in `make test-all` and another by the date, each with one of two streams;"
    " all of them with both in `make thorough`",
)
@pytest.mark.parametrize("seed", seeds()[:1])
@pytest.mark.parametrize("failpoint", CHOSEN)
def test_death_at_a_failpoint_loses_and_repeats_nothing(
    failpoint: str, seed: int, streams: MortalStreams, served: Served
) -> None:
    work = LongWorkload(served[0], seed)
    passing = random.Random(f"{seed} {failpoint}").randint(1, 3)
    if failpoint == "reader.read":  # a reader in the JVM passes none
        streams.all_read_in_python()
    streams.begin()
    with work.going_on():
        streams.wait_for_batches()
        streams.all_die_at(f"{failpoint}@{passing}")
    end_and_compare(streams, work)


@pytest.mark.fault(
    fault="the runner dies before or in the first micro-batch",
    outcome="the stream begins where the checkpoint says, or if it says nothing at the restart",
    seeds="one of three failpoints by the date in `make test-all`; all of them in `make thorough`",
)
@pytest.mark.parametrize(
    "failpoint", chosen_of(["capture.after_lo_read", "reader.latest_offset", "reader.partitions"])
)
def test_death_at_the_start_does_not_move_a_start_that_was_noted(
    failpoint: str, streams: MortalStreams, served: Served
) -> None:
    work = LongWorkload(served[0], seeds()[0])
    streams.all_start_and_die_at(failpoint)
    if failpoint == "reader.partitions":  # in batch 0, whose end is noted: from there on all counts
        work.steps(100)
        work.leave_some_open()
    for one in streams.streams:
        assert bool(planned_batches(one.checkpoint)) == bool(work.committed)
    streams.begin()
    end_and_compare(streams, work)


@pytest.mark.fault(
    fault="kill -9 or SIGTERM of the runner",
    outcome="the query fails; after a restart every change is there once, in order",
    seeds="one of the two by the date in each build; both in `make thorough`",
)
@pytest.mark.parametrize("name", chosen_of(list(SIGNALS)))
def test_a_killed_runner_loses_and_repeats_nothing(
    name: str, streams: MortalStreams, served: Served
) -> None:
    with_signal = SIGNALS[name]
    work = LongWorkload(served[0], seeds()[0])
    streams.begin()
    with work.going_on():
        streams.wait_for_batches()
        for _ in streams.streams:
            streams.one_runner_is_sent(with_signal)
    end_and_compare(streams, work)


@pytest.mark.fault(
    fault="kill -9 of the runner while rows of an open transaction lie on disk",
    outcome="after a restart the transaction is read again, whole, and delivered once",
)
def test_a_spilled_transaction_outlives_the_runner(streams: MortalStreams, served: Served) -> None:
    work = LongWorkload(served[0], seeds()[0])
    streams.begin()
    work.begin_large(rows=12_000)
    with work.going_on():
        for one in streams.streams:
            wait_for(lambda one=one: one.figures().get("spilledBytes", 0) > 0, one.said)  # type: ignore[misc]
        for _ in streams.streams:
            streams.one_runner_is_sent(signal.SIGKILL)
    end_and_compare(streams, work)


@pytest.mark.fault(
    fault="query.stop(), and the runner dies before it has closed its session",
    outcome="after a restart every change is there once, in order",
)
def test_death_in_stop_loses_and_repeats_nothing(streams: MortalStreams, served: Served) -> None:
    work = LongWorkload(served[0], seeds()[0])
    streams.begin()
    with work.going_on():
        streams.wait_for_batches()
        for _ in streams.streams:
            streams.one_dies_in_stop()
    end_and_compare(streams, work)


@pytest.mark.fault(
    fault="a seeded sequence of deaths and restarts, transactions open over all of them",
    outcome="every change is there once, in order; offsets only move forward",
    seeds=SEQUENCES,
)
@pytest.mark.parametrize("seed", seeds())
def test_deaths_one_after_the_other_lose_and_repeat_nothing(
    seed: int, both_streams: MortalStreams, served: Served
) -> None:
    work, chance = LongWorkload(served[0], seed), random.Random(seed)
    both_streams.begin()
    with work.going_on():
        both_streams.wait_for_batches()
        for failpoint in chance.choices(
            [*FAILPOINTS, "reader.stop", "SIGKILL"], k=DEATHS_IN_A_SEQUENCE
        ):
            _die(both_streams, failpoint, chance.randint(1, 4))
            both_streams.start()
    end_and_compare(both_streams, work)


def _die(streams: MortalStreams, where: str, passing: int) -> None:
    if where == "SIGKILL":
        streams.one_runner_is_sent(signal.SIGKILL)
    elif where == "reader.stop":
        streams.one_dies_in_stop()
    else:
        streams.one_dies_at(f"{where}@{passing}")
