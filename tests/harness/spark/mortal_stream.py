"""Streams that die and are started again, while the workload on the server waits for nobody.

Rule: a death must be proven. A failpoint not reached, or a query that lives on, fails the test.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from exactly_once_sink import write_batch
from harness.oracles.delivered import assert_delivered_exactly_once, committed_batches
from harness.oracles.long_workload import LongWorkload
from harness.runs.patience import wait_until
from harness.spark.starting import is_late_worker

DEATH_SECONDS = 60.0
_STOPS = 4
_RUNNER = "python_streaming_source_runner"


class MortalStream:
    """A query from the emulator into the exactly-once sink."""

    def __init__(
        self, spark: SparkSession, options: dict[str, str], folder: Path, *, in_jvm: bool = False
    ) -> None:
        self.in_jvm = in_jvm
        self.checkpoint = folder / "checkpoint"
        self.sink = folder / "sink"
        self.options = options
        self.query: StreamingQuery | None = None
        self._spark = spark
        self._frame = spark.readStream.format("informix-cdc").options(**options).load()

    @property
    def is_running(self) -> bool:
        """Whether the query was started and has not ended."""
        return self.query is not None and self.query.isActive

    @property
    def has_begun(self) -> bool:
        """Whether the checkpoint says where the stream begins: from there on all counts."""
        return bool(committed_batches(self.checkpoint))

    def figures(self) -> dict[str, Any]:
        """Return how the capture stood when Spark last asked; empty before that."""
        progress = self.query.lastProgress if self.query is not None else None
        return json.loads(progress.json)["sources"][0]["latestOffset"] or {} if progress else {}

    def start(self, *, available_now: bool = False) -> None:
        """Start or restart from the checkpoint."""
        self._spark.conf.set("spark.informix-cdc.readInJvm", str(self.in_jvm).lower())
        writer = self._frame.writeStream.foreachBatch(partial(write_batch, self.sink))
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        self.query = (writer.trigger(availableNow=True) if available_now else writer).start()

    def has_caught_up(self) -> bool:
        """Tell whether a run of AvailableNow is over; one that Spark could not begin begins again."""
        if is_late_worker(self.said()):
            self.start(available_now=True)
        assert self.query is not None
        if not self.query.isActive:
            self.query.awaitTermination()  # raises what ended it
        return not self.query.isActive

    def said(self) -> str:
        """Return what Spark says of the end of the query; empty when it was no failure."""
        return str((self.query and self.query.exception()) or "")

    def stop(self) -> None:
        """Stop the query in the orderly way."""
        if self.query is not None:
            self.query.stop()


class MortalStreams:
    """Several streams of one workload, and the ways in which they die.

    Args:
        armed: the file that names the failpoint at which processes of this JVM die.
    """

    def __init__(self, streams: list[MortalStream], armed: Path) -> None:
        self.streams = streams
        self._armed = armed

    def start(self) -> None:
        """Start or restart those that do not run."""
        for one in self.streams:
            if not one.is_running:
                one.start()

    def all_read_in_python(self) -> None:
        """Let executors read in Python from the next start on."""
        for one in self.streams:
            one.in_jvm = False

    def begin(self) -> None:
        """Start, and wait until every checkpoint says where its stream begins."""
        self.start()
        self.wait_for_batches(1)

    def wait_for_batches(self, count: int = 3) -> None:
        """Wait until Spark counts this many batches as done, so that a death has a past."""
        wait_for(
            lambda: self._have_committed(count),
            lambda: "no more batches: " + " ".join(one.said() for one in self.streams),
        )

    def one_dies_at(self, failpoint: str) -> None:
        """Let the next process that passes a failpoint die there, and with it a query."""
        running = self._running()
        self.arm(failpoint)
        dead = self._first_to_end(running)
        assert not self._armed.exists(), f"not at {failpoint}, but: {dead.said()}"
        return dead

    def all_die_at(self, failpoint: str) -> None:
        """Let the streams die at a failpoint one after the other."""
        for _ in self._running():
            self.one_dies_at(failpoint)

    def all_start_and_die_at(self, failpoint: str) -> None:
        """Start the streams one after the other; each dies when it first passes a failpoint."""
        for one in self.streams:
            self.arm(failpoint)
            one.start()
            self._first_to_end([one])
            assert not self._armed.exists(), f"not at {failpoint}, but: {one.said()}"

    def one_dies_in_stop(self) -> None:
        """Stop a query in the orderly way; its runner dies before it has closed its session.

        Spark may kill a runner outright, without asking it to stop: then the query is stopped again.
        """
        self.arm("reader.stop")
        one = self._running()[0]

        for _ in range(_STOPS):
            one.stop()
            with contextlib.suppress(AssertionError):
                wait_until(lambda: not self._armed.exists(), seconds=3)
                return
            one.start()
            wait_for(lambda: bool(one.figures()), one.said)
        raise AssertionError("the reader was not stopped")

    def one_runner_is_sent(self, with_signal: signal.Signals) -> None:
        """Send a signal to a process that captures."""
        running, runner = self._running(), runners()[0]
        os.kill(runner, with_signal)
        self._first_to_end(running)
        wait_for(lambda: not is_alive(runner), lambda: "the runner lives on")

    def catch_up(self) -> None:
        """Run as far as the server had come, and end."""
        for one in self.streams:
            one.start(available_now=True)
        for one in self.streams:
            wait_for(lambda one=one: one.has_caught_up(), lambda one=one: f"does not end {one.said()}")  # type: ignore[misc]

    def arm(self, failpoint: str) -> None:
        """Let the next process that passes a failpoint die there."""
        draft = self._armed.with_suffix(".draft")
        draft.write_text(failpoint)
        draft.replace(self._armed)

    def stop(self) -> None:
        """End without a trace for the next test."""
        self._armed.unlink(missing_ok=True)
        for one in self.streams:
            one.stop()

    def _have_committed(self, count: int) -> bool:
        for one in self.streams:
            if not one.is_running and is_late_worker(one.said()):
                one.start()
        return all(len(committed_batches(one.checkpoint)) >= count for one in self.streams)

    def _running(self) -> list[MortalStream]:
        running = [one for one in self.streams if one.is_running]
        assert running, "nothing runs that could die"
        return running

    def _first_to_end(self, running: list[MortalStream]) -> MortalStream:
        wait_for(
            lambda: not all(one.is_running for one in running),
            lambda: f"the queries live on; failpoint reached: {not self._armed.exists()}",
        )
        dead = next(one for one in running if not one.is_running)
        assert dead.said(), "the query ended without an error"
        return dead


def end_and_compare(streams: MortalStreams, work: LongWorkload) -> None:
    """Let the workload end while nobody reads, start again, run to its end, compare."""
    work.steps(60)
    work.finish()
    streams.catch_up()
    for one in streams.streams:
        assert_delivered_exactly_once(one.sink, one.checkpoint, work.committed)
    assert work.rolled_back
    assert work.savepoints_undone


def runners() -> list[int]:
    """Return the processes that capture for this process's own Spark."""
    return [pid for pid in descendants(os.getpid()) if _RUNNER in _command_of(pid)]


def descendants(ancestor: int) -> list[int]:
    """Return the children of a process, their children, and so on."""
    children = [pid for pid in _processes() if _parent_of(pid) == ancestor]
    return children + [each for child in children for each in descendants(child)]


def wait_for(is_true: Callable[[], bool], complaint: Callable[[], str]) -> None:
    """Poll until something is true, or fail with the complaint."""
    wait_until(is_true, DEATH_SECONDS, complaint)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that nobody has waited for yet does not."""
    return bool(_command_of(pid))


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""
