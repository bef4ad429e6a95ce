"""One process that captures a transaction of large objects: how long it takes, how large it gets.

    python -m lab.benchmarks.large_object_run FOLDER COUNT BYTES TRANSPORT [DRIVER]

Prints one line of JSON: seconds from the commit until the rows are in the spool, the same of a row of
another table that is committed right behind them, and of one when nothing else is to do; and the peak
of this process in MiB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from harness.capture.driving import LIMIT, Offset, anchor_of, figure, reader
from informix_cdc.spark.reader import InformixStreamReader
from lab.benchmarks.endless_stream import memory

_TESTS = Path(__file__).parents[2]


@contextmanager
def serving(count: int, size: int) -> Iterator[tuple[int, Any]]:
    """Start the server; yields its port, and what commits and returns the commit."""
    command = [sys.executable, "-m", "lab.benchmarks.large_object_server", str(count), str(size)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=_TESTS,
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told, answers = process.stdin, process.stdout

        def commit(what: str) -> int:
            return _asked(told, answers, what)

        yield int(answers.readline()), commit
        told.close()


def _asked(told: IO[str], answers: IO[str], what: str) -> int:
    told.write(f"{what}\n")
    told.flush()
    return int(answers.readline())


def waited(made: InformixStreamReader, start: Offset, upto: int) -> Offset:
    """Ask as Spark does, and read nothing, until a commit is in the spool."""
    while start["commit"] < upto:
        start = made.latestOffset(start, LIMIT)
    return start


def main(folder: str, count: int, size: int, transport: str, driver: str = "") -> None:
    """Run once."""
    options = {"table": "informix.files,informix.others", "lobs": "content", "spoolPath": folder}
    options |= {"transport": transport, "maxSpoolBytes": "16g"} | ({"driver": driver} if driver else {})
    with serving(count, size) as (port, commit), reader(port, **options) as made:
        start = anchor_of(made)
        begun = time.perf_counter()
        start = waited(made, start, commit("other"))
        alone = time.perf_counter() - begun
        objects = commit("objects")
        begun = time.perf_counter()
        other = commit("other")
        start = waited(made, start, objects)
        seconds = time.perf_counter() - begun
        start = waited(made, start, other)
        behind = time.perf_counter() - begun
        told = {
            "seconds": seconds,
            "behind": behind,
            "alone": alone,
            "peak": memory()["peak"],
            "read": figure(made, "lobRead"),
            "read_bytes": figure(made, "lobReadBytes"),
        }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
