"""From the spool to an executor without Spark: by file, by file with its bytes compared, by Flight.

By Flight as the product has it, in a process of its own behind the relay, and beside it without both.
"""

from __future__ import annotations

import time
from pathlib import Path

from connector.executors.served_folder import ServedFolder, published
from harness.capture.shaped import delivery_of
from informix_cdc.executors.places import SegmentPlaces
from informix_checkpoints.spool import segments
from informix_checkpoints.spool.segments import SegmentRange
from lab.benchmarks.measuring import REPEATS, Report, Timing, timed
from lab.benchmarks.pipeline import START, fill_spool, open_spool
from lab.benchmarks.workload import captured, catalog_table

ROWS = 500_000
DELIVERY = delivery_of([catalog_table()])
IN_ONE_PROCESS = "by Flight in one process without the relay, both ends"


def read(places: SegmentPlaces, ranges: list[SegmentRange]) -> None:
    rows = DELIVERY.rows(places.stored(ranges))
    assert sum(batch.num_rows for batch in rows) == ROWS


def test_rows_are_read_in_several_ways(report: Report, tmp_path: Path) -> None:
    fill_spool(captured(ROWS, 10), tmp_path)
    captured.cache_clear()
    spool = open_spool(tmp_path)
    ranges = spool.between(START.place, spool.manifest.end.place)
    direct = ServedFolder(tmp_path)
    publishing = published(spool)
    _, address = publishing.__enter__()
    ways = {
        "by file, compared by the same process before": SegmentPlaces("files"),
        "by file, its bytes compared first": SegmentPlaces("files"),
        "by Flight, the executor": SegmentPlaces("flight", server=address),
        IN_ONE_PROCESS: SegmentPlaces("flight", server=direct.address),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    cpu_seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS + 1):
        for name, places in ways.items():
            if "compared by" not in name:  # the one before it has read all of them
                segments._file_checksum.cache_clear()
            before = time.process_time()
            seconds[name].append(timed(lambda places=places: read(places, ranges)))
            cpu_seconds[name].append(time.process_time() - before)
    direct.shutdown()
    publishing.__exit__(None, None, None)
    spool.close()
    for name in ways:  # the first turn warms up
        cpu = f"{min(cpu_seconds[name][1:]) / ROWS * 1e6:.2f} µs of CPU a row"
        report.add("spool -> executor", name, Timing(tuple(seconds[name][1:])).rate(ROWS), cpu)
