"""One process that captures a table from its first row on, as Spark's own process of a query does.

    python -m lab.benchmarks.snapshot_run '{"options": {...}, "rows": 1000000, "seconds": 0}'

What executors do, reading rows out of the spool, is done by a second process. A line on the input ends
the wait for more changes. Prints a line of JSON when the stream has begun, one when the snapshot is
done, and one at the end: `whole_snapshot.Run` says what it has.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.datasource import ReadMaxRows

from informix_capture_client.shapes.encoder import ChangeEncoder
from informix_cdc.options.source import SourceOptions
from informix_cdc.server.source_tables import look_up_tables
from informix_cdc.snapshots.connection import SnapshotConnection
from informix_cdc.spark.reader import InformixStreamReader
from informix_cdc.spark.schema import to_spark
from informix_checkpoints.spool.segments import Segment
from informix_checkpoints.spool.spool import Spool
from lab.benchmarks.measuring import busy_seconds
from lab.benchmarks.processes import memory, report_json

_NO_LIMIT = ReadMaxRows((1 << 63) - 1)


@dataclass
class Seen:
    """What a reader of the rows has seen, and when each of its own transactions was written."""

    rows: int
    keys: Any = field(init=False)
    snapshot_rows: int = 0
    writes: list[tuple[int, int]] = field(default_factory=list)  # commit, nanoseconds

    def __post_init__(self) -> None:
        self.keys = np.zeros(self.rows, bool)

    def take(self, batch: pa.RecordBatch) -> None:
        """Note the rows of a batch."""
        numbers = batch["line_num"].to_numpy(zero_copy_only=False)
        self.keys[numbers[numbers < self.rows]] = True
        is_read = pc.fill_null(batch["_snapshot"], False)
        self.snapshot_rows += pc.sum(is_read).as_py() or 0
        written = batch.filter(pc.invert(is_read))
        if written.num_rows:
            pairs = zip(
                written["_commit_version"].to_pylist(), written["written_at"].to_pylist(), strict=True
            )
            self.writes += dict(pairs).items()


def read_as_executors_do(rows: int, tasks: Connection) -> None:
    """Read what is asked for until there is no more."""
    seen = Seen(rows)
    reader = tasks.recv()
    while (parts := tasks.recv()) is not None:
        for part in parts:
            for batch in reader.read(part):
                seen.take(batch)
        tasks.send(seen.snapshot_rows)
    assert seen.keys.all(), f"{int((~seen.keys).sum())} rows were not delivered"
    tasks.send((seen.snapshot_rows, seen.writes))


class Work:
    """When rows of a snapshot were read from the server, encoded, or put into the spool.

    These spans contain the transfer of every row, and no wait for a marker. The time between two
    chunks in the spool would not do: chunks that wait for the same marker are stored in one burst,
    long after they were read.
    """

    def __init__(self) -> None:
        self.spans: list[tuple[float, float]] = []  # appended to by several threads
        for owner, name in (
            (SnapshotConnection, "chunk"),
            (ChangeEncoder, "encode_chunk"),
            (Spool, "append_chunk"),
        ):
            setattr(owner, name, self._noted(getattr(owner, name)))

    def _noted(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **named: Any) -> Any:
            begun = time.monotonic()
            try:
                return work(*arguments, **named)
            finally:
                self.spans.append((begun, time.monotonic()))

        return noted


class Appends:
    """When each commit place was in the spool, and the last chunk."""

    def __init__(self) -> None:
        self.commits, self.times = list[int](), list[int]()
        self.last_chunk = 0  # nanoseconds
        self.is_done = False
        append, append_chunk = Spool.append, Spool.append_chunk

        def noted(spool: Spool, *arguments: Any, **named: Any) -> Segment:
            done = append(spool, *arguments, **named)
            self.commits.append(spool.manifest.high_watermark.commit)
            self.times.append(time.time_ns())
            return done

        def chunk_noted(spool: Spool, *arguments: Any, **named: Any) -> Segment:
            done = append_chunk(spool, *arguments, **named)
            self.last_chunk = time.time_ns()
            states = arguments[2].values()
            self.is_done = all(state.snapshot.is_done for state in states)
            return done

        Spool.append, Spool.append_chunk = noted, chunk_noted  # type: ignore[method-assign]

    def ages(self, writes: list[tuple[int, int]]) -> dict[str, list[float]]:
        """Return how old transactions were, of those that were written beside chunks, and later."""
        found = {"during": list[float](), "after": list[float]()}
        for commit, at in writes:
            if self.commits and commit <= self.commits[-1]:
                age = (self.times[bisect_left(self.commits, commit)] - at) / 1e9
                found["during" if at < self.last_chunk else "after"].append(age)
        return found


def batches(
    reader: InformixStreamReader, start: Mapping[str, Any], executors: Connection
) -> Iterator[Mapping[str, Any]]:
    """Plan batch after batch, have it read, and commit it; yield where each ends."""
    while True:
        end = reader.latestOffset(start, _NO_LIMIT)
        if end != start:
            executors.send(reader.partitions(start, end))
            executors.recv()
            reader.commit(end)
        start = end
        yield end


def run(task: Mapping[str, Any], executors: Connection) -> dict[str, Any]:
    """Run the stream; return what is to be said of it."""
    work, appends, over = Work(), Appends(), threading.Event()
    options = SourceOptions.parse(task["options"])
    reader = InformixStreamReader(options, to_spark(look_up_tables(options).schema()))
    executors.send(reader)
    begun, cpu = time.time(), time.process_time()
    start = reader.latestOffset(reader.initialOffset(), _NO_LIMIT)
    report_json({"begun": True})
    threading.Thread(target=lambda: (sys.stdin.readline(), over.set()), daemon=True).start()
    told: dict[str, Any] = {}
    for _ in batches(reader, start, executors):
        if appends.is_done and not told:
            seconds = appends.last_chunk / 1e9 - begun
            told = {"seconds": seconds, "cpu": time.process_time() - cpu}
            report_json(told)
        if over.is_set() and told:
            break
    figures = reader.reportLatestOffset() or {}
    reader.stop()
    executors.send(None)
    rows, writes = executors.recv()
    told |= {"rows": rows, "busy_seconds": busy_seconds(work.spans), "peak_mib": memory()["peak"]}
    return {**told, **appends.ages(writes), "figures": figures}


def main() -> None:
    task = json.loads(sys.argv[1])
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    arguments = (task["rows"], theirs)
    process = multiprocessing.get_context("spawn").Process(target=read_as_executors_do, args=arguments)
    process.start()
    report_json(run(task, ours))
    process.join()


if __name__ == "__main__":
    main()
