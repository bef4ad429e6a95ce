"""A snapshot from its first row to its last, each side in a process of its own: how much, how long.

    python -m lab.benchmarks.whole_snapshot '{"rows": 10000000, "per_second": 50}'

Prints what was measured as a line of JSON; PYTHONPATH names the tests' folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.benchmarks.emulated_source import say
from lab.benchmarks.processes import EmulatedSource
from lab.benchmarks.rows_that_were_there import Filled

_QUIET_SECONDS = 8.0  # for which the stream goes on beside a writer once all rows are there


@dataclass(frozen=True)
class Run:
    """What one snapshot took.

    Attributes:
        rows: put into the stream by chunks.
        seconds: from the first question for an offset until the last row was there.
        busy_seconds: in which rows were read from the server, encoded, or stored; the others are waits.
        cpu, server_cpu: seconds, of the process that captures and of the emulator.
        peak_mib: of the process that captures.
        during, after: how old each transaction was when it was in the spool, of those that were
            committed while rows were read, and of later ones.
    """

    rows: int
    seconds: float
    busy_seconds: float
    cpu: float
    server_cpu: float
    peak_mib: float
    during: list[float]
    after: list[float]


@contextmanager
def filled_source(plan: Filled) -> Iterator[tuple[EmulatedSource, int]]:
    """Run an emulated server whose table has rows for the length of a block; its process's id too."""
    command = [sys.executable, "-m", "lab.benchmarks.rows_that_were_there", json.dumps(asdict(plan))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield EmulatedSource(port, process.stdin, process.stdout), process.pid
        process.stdin.close()


def snapshot_of(source: EmulatedSource, server: int, plan: Filled, **options: str) -> Run:
    """Take a snapshot of the table, beside a writer if the plan has one."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = source.options(initialSnapshot="all", spoolPath=folder, **options)
        task = json.dumps({"options": wanted, "rows": plan.rows})
        command = [sys.executable, "-m", "lab.benchmarks.snapshot_run", task]
        before = cpu_seconds(server)
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as capturing:
            assert capturing.stdin is not None
            assert capturing.stdout is not None
            _line(capturing.stdout)
            if plan.per_second:
                source.start_writing()
            _line(capturing.stdout)
            server_cpu = cpu_seconds(server) - before
            if plan.per_second:
                time.sleep(_QUIET_SECONDS)
                source.start_writing()  # the second line ends it
                source.output.readline()
            capturing.stdin.write("over\n")
            capturing.stdin.flush()
            told = _line(capturing.stdout)
    told.pop("figures")
    return Run(**told, server_cpu=server_cpu)


def _line(output: Any) -> dict[str, Any]:
    line = output.readline()
    assert line, "the process that captures has failed"
    told: dict[str, Any] = json.loads(line)
    return told


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    task: Mapping[str, Any] = json.loads(sys.argv[1])
    plan = Filled(task["rows"], task.get("per_second", 0))
    with filled_source(plan) as (source, server):
        run = snapshot_of(source, server, plan, **task.get("options", {}))
    ages = {name: sorted(getattr(run, name)) for name in ("during", "after")}
    told = asdict(run) | {
        name: [round(of[int(len(of) * part)], 3) for part in (0.5, 0.95)] if of else []
        for name, of in ages.items()
    }
    say(json.dumps(told | {"load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
