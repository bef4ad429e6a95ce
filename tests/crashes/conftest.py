"""One Spark for all crash tests: processes below it die, it lives.

The environment variable that arms failpoints is inherited by every process that this JVM starts, and
names a file; a test writes the failpoint's name into it, and who dies there removes it.
"""

from __future__ import annotations

import datetime
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connector.jvm.java_reader import has_javac
from end_to_end.conftest import spark as spark  # the suite's one session
from harness.runs.examples import PROFILE
from harness.servers.stores import listening_stores, source_options
from harness.spark.mortal_stream import MortalStream, MortalStreams
from informix_capture_client.failpoints import VARIABLE
from informix_emulator import EmulatedServer, ListeningServer

SEEDS_VARIABLE = "INFORMIX_CDC_CRASH_SEEDS"
TURN_VARIABLE = "INFORMIX_CDC_CRASH_TURN"
ARMED = Path(tempfile.mkdtemp(prefix="informix-cdc-crashes-")) / "failpoint"
os.environ[VARIABLE] = str(ARMED)  # here, since the session may be started by another test

_LOCAL_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"


def seeds() -> list[int]:
    """Return the seeds to try: INFORMIX_CDC_CRASH_SEEDS=7,8 or random:20; else one of two by turns."""
    by_turns = chosen_of(["1", "2"])[0]
    chosen = os.environ.get(SEEDS_VARIABLE, "random:6" if PROFILE == "thorough" else by_turns)
    if chosen.startswith("random:"):
        return [random.SystemRandom().randrange(10**6) for _ in range(int(chosen[7:]))]
    return [int(seed) for seed in chosen.split(",")]


def turn() -> str:
    """Return what chooses deaths in this build: the date, or INFORMIX_CDC_CRASH_TURN."""
    return os.environ.setdefault(TURN_VARIABLE, datetime.date.today().isoformat())


def chosen_of(failpoints: list[str]) -> list[str]:
    """Return the one of this build, by its turn; all of them in the thorough profile."""
    if PROFILE == "thorough":
        return failpoints
    return [random.Random(f"{turn()} {failpoints}").choice(failpoints)]


def pytest_report_header() -> str:
    return f"crash matrix: {TURN_VARIABLE}={turn()}, {SEEDS_VARIABLE}={','.join(map(str, seeds()))}"


@pytest.fixture(scope="session")
def mortal_spark(spark: SparkSession) -> SparkSession:
    """The session of these tests, with the settings that make small batches cheap."""
    assert str(spark._jvm.System.getenv(VARIABLE)) == str(ARMED)  # type: ignore[union-attr]
    session = spark.newSession()
    manager = f"{_LOCAL_CHECKPOINTS}.FileSystemBasedCheckpointFileManager"
    session.conf.set("spark.sql.streaming.checkpointFileManagerClass", manager)
    return session


@pytest.fixture
def served() -> Iterator[tuple[EmulatedServer, ListeningServer]]:
    with listening_stores() as (server, listening):
        yield server, listening


@pytest.fixture
def both_streams(
    mortal_spark: SparkSession, served: tuple[EmulatedServer, ListeningServer], tmp_path: Path
) -> Iterator[MortalStreams]:
    """Two streams of orders at once: one keeps its spool over a death, one has a private spool.

    The one is read in the JVM, where its jar could be made; the other in Python.

    Limits are low enough to be reached: batches end at them, and a large transaction goes to disk.
    """
    limits = {"maxRowsPerTrigger": "600", "maxTransactionMemoryBytes": str(1 << 20)}
    options = source_options(served[1].port, **limits)
    in_spool = {**options, "spoolPath": str(tmp_path / "spool")}
    kept = MortalStream(mortal_spark, in_spool, tmp_path / "a", in_jvm=has_javac())
    made = MortalStreams([kept, MortalStream(mortal_spark, options, tmp_path / "b")], ARMED)
    yield made
    made.stop()


@pytest.fixture
def streams(both_streams: MortalStreams, request: pytest.FixtureRequest) -> MortalStreams:
    """One of the two by turns, another for each test; both in the thorough profile."""
    if PROFILE != "thorough":
        chance = random.Random(f"{turn()} {request.node.name}")
        both_streams.streams = [chance.choice(both_streams.streams)]
    return both_streams
