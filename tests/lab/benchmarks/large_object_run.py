"""One process that captures a transaction of large objects: how long it takes, how large it gets.

    python -m lab.benchmarks.large_object_run FOLDER COUNT BYTES TRANSPORT [DRIVER]

Prints one line of JSON: seconds from the commit until the rows are in the spool, the same of a row of
another table that is committed right behind them, and of one when nothing else is to do; and the peak
of this process in MiB.
"""

from __future__ import annotations

import subprocess
import sys
import time

from harness.capture.driving import LIMIT, Offset, anchor_of, figure, reader
from informix_cdc.spark.reader import InformixStreamReader
from lab.benchmarks.processes import answer_of, ask, memory, program, report_json


def waited(made: InformixStreamReader, start: Offset, upto: int) -> Offset:
    """Ask as Spark does, and read nothing, until a commit is in the spool."""
    while start["commit"] < upto:
        start = made.latestOffset(start, LIMIT)
    return start


def measured(server: subprocess.Popen[str], made: InformixStreamReader) -> dict[str, float]:
    """Let the server commit objects and other rows; return what that took."""

    def commit(what: str) -> int:
        ask(server, what)
        return answer_of(server)

    start = anchor_of(made)
    begun = time.perf_counter()
    start = waited(made, start, commit("other"))
    alone = time.perf_counter() - begun
    objects = commit("objects")
    begun = time.perf_counter()
    other = commit("other")
    start = waited(made, start, objects)
    seconds = time.perf_counter() - begun
    waited(made, start, other)
    behind = time.perf_counter() - begun
    figures = {"read": figure(made, "lobRead"), "read_bytes": figure(made, "lobReadBytes")}
    return {"seconds": seconds, "behind": behind, "alone": alone, "peak": memory()["peak"], **figures}


def main(folder: str, count: int, size: int, transport: str, driver: str = "") -> None:
    """Run once."""
    options = {"table": "informix.files,informix.others", "lobs": "content", "spoolPath": folder}
    options |= {"transport": transport, "maxSpoolBytes": "16g"} | ({"driver": driver} if driver else {})
    with (
        program("large_object_server", count, size) as server,
        reader(answer_of(server), **options) as made,
    ):
        report_json(measured(server, made))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
