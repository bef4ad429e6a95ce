"""A snapshot from its first row to its last, each side in a process of its own: how much, how long.

    python -m lab.benchmarks.whole_snapshot '{"rows": 10000000, "per_second": 50}'

Prints what was measured as a line of JSON; PYTHONPATH names the tests' folder.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

from lab.benchmarks.processes import (
    EmulatedSource,
    answer_of,
    ask,
    cpu_seconds,
    emulated_source,
    program,
    report_json,
)
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


def filled_source(plan: Filled) -> AbstractContextManager[EmulatedSource]:
    """Run an emulated server whose table has rows for the length of a block."""
    return emulated_source(plan, "rows_that_were_there")


def snapshot_of(source: EmulatedSource, plan: Filled, **options: str) -> Run:
    """Take a snapshot of the table, beside a writer if the plan has one."""
    server = source.process.pid
    with tempfile.TemporaryDirectory() as folder:
        wanted = source.options(initialSnapshot="all", spoolPath=folder, **options)
        before = cpu_seconds(server)
        with program("snapshot_run", json.dumps({"options": wanted, "rows": plan.rows})) as capturing:
            answer_of(capturing)
            if plan.per_second:
                source.start_writing()
            answer_of(capturing)
            server_cpu = cpu_seconds(server) - before
            if plan.per_second:
                time.sleep(_QUIET_SECONDS)
                source.start_writing()  # the second line ends it
                source.wait_until_written()
            ask(capturing, "over")
            told = answer_of(capturing)
    told.pop("figures")
    return Run(**told, server_cpu=server_cpu)


def main() -> None:
    task: Mapping[str, Any] = json.loads(sys.argv[1])
    plan = Filled(task["rows"], task.get("per_second", 0))
    with filled_source(plan) as source:
        run = snapshot_of(source, plan, **task.get("options", {}))
    ages = {name: sorted(getattr(run, name)) for name in ("during", "after")}
    told = asdict(run) | {
        name: [round(of[int(len(of) * part)], 3) for part in (0.5, 0.95)] if of else []
        for name, of in ages.items()
    }
    report_json(told | {"load": os.getloadavg()[0]})


if __name__ == "__main__":
    main()
