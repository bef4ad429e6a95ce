"""An emulated server in a process of its own: python emulated_source.py '{"backlog_rows": 1000}'.

Prints its port as soon as it listens; a line on its input starts the writing, "written" tells its
end, and the end of its input ends the process.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass

from informix_emulator import EmulatedServer, ListeningServer, keep_rows
from lab.benchmarks.processes import report_json
from lab.benchmarks.workload import TABLE, bench_server, rows_without_end, write

ROWS_PER_TRANSACTION = 10


@dataclass(frozen=True)
class Plan:
    """What to write: at first as fast as it goes, then at a steady pace; and how far away it is."""

    backlog_rows: int = 0
    transactions: int = 0
    per_second: int = 50
    wait_to_fill: bool = False
    latency_ms: float = 0
    keeps_rows: bool = False  # for SELECT


def write_steadily(server: EmulatedServer, plan: Plan) -> None:
    """Commit transactions at equal distances; each row says when its transaction was begun."""
    rows, begun = rows_without_end(), time.monotonic()
    for number in range(plan.transactions):
        time.sleep(max(0.0, begun + number / plan.per_second - time.monotonic()))
        batch = [next(rows) for _ in range(ROWS_PER_TRANSACTION)]
        now = time.time_ns()
        with server.transaction() as transaction:
            for row in batch:
                transaction.insert(TABLE, {**row, "line_num": number, "written_at": now})


def main() -> None:
    plan = Plan(**json.loads(sys.argv[1]))
    latency_seconds = plan.latency_ms / 1000
    server = bench_server(wait_to_fill=plan.wait_to_fill, latency_seconds=latency_seconds)
    if plan.keeps_rows:
        keep_rows(server)
    with ListeningServer(server) as listening:
        report_json(listening.port)
        if sys.stdin.readline():
            write(server, plan.backlog_rows, ROWS_PER_TRANSACTION)
            write_steadily(server, plan)
            report_json("written")
        sys.stdin.read()


if __name__ == "__main__":
    main()
