"""Reads over Informix's own protocol beside reads over the ODBC driver of the tests, in one run.

Both cross the same wire to one server in another process; the runs take turns, so that what else the
machine does meets both. Nothing is done to the bytes: rows a second, and CPU of this process.
"""

from __future__ import annotations

import statistics
import time

from lab.benchmarks.emulated_source import ROWS_PER_TRANSACTION, Plan
from lab.benchmarks.measuring import Report, Timing
from lab.benchmarks.processes import emulated_source
from lab.benchmarks.sessions import read_bytes_only
from odbc_driver.build import build_drivers

ROWS = 300_000
RECORDS = ROWS + 2 * ROWS // ROWS_PER_TRANSACTION
REPEATS = 7


def test_reads_over_both_transports(report: Report) -> None:
    ways = {"sqli": "", "odbc": str(build_drivers().narrow)}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    cpu: dict[str, list[float]] = {way: [] for way in ways}
    with emulated_source(Plan(backlog_rows=ROWS)) as source:
        source.start_writing()
        source.wait_until_written()
        read_bytes_only(source)  # lets the emulator encode its log
        for _ in range(REPEATS):
            for way, driver in ways.items():
                before = time.process_time()
                seconds[way].append(read_bytes_only(source, driver))
                cpu[way].append(time.process_time() - before)
    for way in ways:
        used = f"{statistics.median(cpu[way]):.2f} s of CPU"
        rate = Timing(tuple(seconds[way])).rate(RECORDS)
        report.add("reading", f"reads over {way}, nothing done to the bytes", rate, used)
