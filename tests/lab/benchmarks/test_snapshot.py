"""A snapshot beside the same SELECT row by row, beside Spark's JDBC, and the stream beside a snapshot.

The emulator is in a process of its own, and sends rows as they lie in a table. Snapshots begin
with a second until the stream is settled: one rate is that from begin to end, the other that of all
rows while any of them is read, encoded or stored. Both are medians, with their spread.
"""

from __future__ import annotations

from contextlib import closing
from statistics import median

import pytest

from lab.benchmarks.measuring import Report, Timing, median_and_spread, percentiles, timed
from lab.benchmarks.rows_that_were_there import Filled
from lab.benchmarks.sessions import connect
from lab.benchmarks.whole_snapshot import Run, filled_source, snapshot_of
from lab.benchmarks.workload import catalog_table
from odbc_driver.build import build_drivers

ROWS = 400_000
REPEATS = 3
ROWS_ONE_BY_ONE = 60_000
ROWS_IN_MEMORY = 1_000_000
MOST_MIB = 512
_COLUMNS = ", ".join(column.name for column in catalog_table().columns)
ONE_BY_ONE = f"SELECT FIRST {ROWS_ONE_BY_ONE} {_COLUMNS} FROM informix.lines ORDER BY line_num"


def test_rows_a_second_of_a_snapshot_and_of_the_same_rows_one_by_one(report: Report) -> None:
    drivers = {"sqli": "", "odbc": str(build_drivers().narrow)}
    plan = Filled(ROWS, per_second=0)
    with filled_source(plan) as source:
        for name, driver in drivers.items():
            chosen = {"transport": name} | ({"driver": driver} if driver else {})
            runs, seconds = list[Run](), list[float]()
            with closing(connect(source, driver)) as transport:
                for _ in range(REPEATS):
                    runs.append(snapshot_of(source, plan, **chosen))
                    seconds.append(timed(lambda transport=transport: _all(transport.rows(ONE_BY_ONE))))  # type: ignore[misc]
            _add_runs(report, name, runs, Timing(tuple(seconds)))


def _all(rows: object) -> None:
    assert isinstance(rows, list)
    assert len(rows) == ROWS_ONE_BY_ONE


def _add_runs(report: Report, transport: str, runs: list[Run], one_by_one: Timing) -> None:
    assert {run.rows for run in runs} == {ROWS}
    busy = [ROWS / run.busy_seconds for run in runs]
    whole = [ROWS / run.seconds for run in runs]
    alone = ROWS_ONE_BY_ONE / median(one_by_one.seconds)
    report.add(
        "snapshot",
        f"over {transport}, while rows are read or stored",
        median_and_spread(busy),
        f"row by row: {median(busy) / alone:.1f} x",
    )
    report.add(
        "snapshot",
        f"over {transport}, {ROWS:,} rows from begin to end",
        median_and_spread(whole),
        f"CPU, µs a row: capture {_each(median(run.cpu for run in runs))},"
        f" emulator {_each(median(run.server_cpu for run in runs))}",
    )
    each = median_and_spread([ROWS_ONE_BY_ONE / seconds for seconds in one_by_one.seconds])
    report.add("snapshot", f"SELECT over {transport}, row by row", each)


def _each(seconds: float) -> str:
    return f"{seconds / ROWS * 1e6:.1f}"


@pytest.mark.parametrize("transport", ["sqli", "odbc"])
def test_memory_and_the_stream_beside_a_snapshot(report: Report, transport: str) -> None:
    chosen = {"transport": transport}
    if transport == "odbc":
        chosen["driver"] = str(build_drivers().narrow)
    plan = Filled(ROWS_IN_MEMORY)
    with filled_source(plan) as source:
        run = snapshot_of(source, plan, **chosen)
    assert run.peak_mib < MOST_MIB
    written = f"{plan.per_second} transactions/s"
    peak = f"peak {run.peak_mib:.0f} MiB"
    report.add("memory", f"snapshot of 1 M rows over {transport}, {written}", peak)
    report.add(
        "commit -> spool",
        f"beside a snapshot over {transport}",
        percentiles(run.during),
        f"without one {percentiles(run.after)}",
    )
