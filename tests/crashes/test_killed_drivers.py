"""The driver dies around Spark's two logs and around the sink's rename; another Spark goes on."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crashes.conftest import ARMED, chosen_of, seeds
from crashes.driver_to_kill import EXIT_CODE
from harness.oracles.delivered import committed_batches, last_commit_of, planned_batches
from harness.oracles.long_workload import LongWorkload
from harness.runs.patience import patiently
from harness.spark.mortal_stream import MortalStreams, descendants, end_and_compare, is_alive, wait_for
from harness.spark.starting import python_path
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Served = tuple[EmulatedServer, ListeningServer]
PROGRAM = Path(__file__).parent / "driver_to_kill.py"
STEPS = ["before the sink", "before the rename", "after the rename"]
SEEDS = "one of three places by the date in `make test-all`; all of them in `make thorough`"


@contextmanager
def driver(
    streams: MortalStreams, log: Path, step: str = "", batch: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the streams in a process of their own; they have begun when the block is entered."""
    plan = {
        "step": step,
        "batch": batch,
        "streams": [
            {"options": one.options, "sink": str(one.sink), "checkpoint": str(one.checkpoint)}
            for one in streams.streams
        ],
    }
    environment = {**os.environ, "PYTHONPATH": python_path()}
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, PROGRAM, json.dumps(plan)], env=environment, stdout=output, stderr=output
        ) as process,
    ):
        try:
            wait_for(
                lambda: process.poll() is not None or all(one.has_begun for one in streams.streams),
                lambda: log.read_text()[-3000:],
            )
            yield process
        finally:
            for child in descendants(process.pid):
                with contextlib.suppress(ProcessLookupError):  # it has died by itself
                    os.kill(child, signal.SIGKILL)
            process.kill()


def jvm_of(process: subprocess.Popen[bytes]) -> int:
    return next(
        pid for pid in descendants(process.pid) if Path(f"/proc/{pid}/exe").resolve().name == "java"
    )


@pytest.mark.fault(
    fault="kill -9 of the JVM after the offset log, before, in and after the sink's write",
    outcome="the planned batch runs again with the same rows and replaces what was written of it",
    seeds=SEEDS,
)
@pytest.mark.parametrize("step", chosen_of(STEPS))
def test_a_jvm_killed_between_sparks_two_logs_runs_the_batch_again(
    step: str, streams: MortalStreams, served: Served, tmp_path: Path
) -> None:
    seed = seeds()[0]
    work = LongWorkload(served[0], seed)
    batch = random.Random(f"{seed} {step}").randint(1, 4)
    with driver(streams, tmp_path / "log", step, batch) as process:
        with work.going_on():
            wait_for(lambda: process.poll() is not None, (tmp_path / "log").read_text)
        assert process.returncode == EXIT_CODE, (tmp_path / "log").read_text()[-3000:]
    for one in streams.streams:
        (unfinished,) = planned_batches(one.checkpoint) - committed_batches(one.checkpoint)
        assert unfinished >= batch
        assert (one.sink / f".draft-{unfinished}").exists() == (step == "before the rename")
        assert (one.sink / f"batch={unfinished}").exists() == (step == "after the rename")
    end_and_compare(streams, work)


@pytest.mark.fault(
    fault="kill -9 of the JVM after the commit log",
    outcome="what was delivered is not delivered again, what came later is not missed",
)
def test_a_jvm_killed_after_sparks_commit_log_goes_on_after_it(
    streams: MortalStreams, served: Served, tmp_path: Path
) -> None:
    work = LongWorkload(served[0], seeds()[0])
    with driver(streams, tmp_path / "log") as process:
        with work.going_on():
            streams.wait_for_batches()
        wait_for(lambda: _is_at_rest(streams, work), lambda: "the rows do not come")
        os.kill(jvm_of(process), signal.SIGKILL)
        assert process.wait(patiently(60)) != 0
    for one in streams.streams:
        assert planned_batches(one.checkpoint) == committed_batches(one.checkpoint)
    end_and_compare(streams, work)


@pytest.mark.fault(
    fault="an executor's worker dies in read",
    outcome="the task is tried again, the query goes on, no row is doubled",
)
@pytest.mark.fault(
    fault="SIGTERM of the driver", outcome="after a restart every change is there once, in order"
)
def test_a_dead_worker_costs_a_task_attempt_and_a_terminated_driver_loses_nothing(
    streams: MortalStreams, served: Served, tmp_path: Path
) -> None:
    work = LongWorkload(served[0], seeds()[0])
    with driver(streams, tmp_path / "log") as process:
        with work.going_on():
            streams.arm("reader.read@2")
            wait_for(lambda: not ARMED.exists(), lambda: "no worker read a second time")
            done = max(len(committed_batches(one.checkpoint)) for one in streams.streams)
            streams.wait_for_batches(done + 2)
            assert process.poll() is None, "the query ended"
            below = descendants(process.pid)
            process.send_signal(signal.SIGTERM)
            assert process.wait(patiently(60)) != 0
        wait_for(lambda: not any(map(is_alive, below)), lambda: "processes are left over")
    end_and_compare(streams, work)


def _is_at_rest(streams: MortalStreams, work: LongWorkload) -> bool:
    return all(
        last_commit_of(one.sink) == work.committed[-1].commit
        and planned_batches(one.checkpoint) == committed_batches(one.checkpoint)
        for one in streams.streams
    )
