"""From the spool to an executor without Spark: by file, by file with its bytes compared, by Flight.

By Flight with TLS, as the product has it, and beside it without.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyarrow import flight

from harness.capture.shaped import delivery_of
from informix_cdc.executors import flight_client
from informix_cdc.executors.flight_server import SegmentServer
from informix_cdc.executors.places import SegmentPlaces
from informix_checkpoints.spool import segments
from informix_checkpoints.spool.segments import SegmentRange
from lab.benchmarks.measuring import REPEATS, Report, Timing, timed
from lab.benchmarks.pipeline import START, fill_spool, open_spool
from lab.benchmarks.workload import captured, catalog_table

ROWS = 500_000
DELIVERY = delivery_of([catalog_table()])
WITHOUT_TLS = "by Flight without TLS, both ends"


class PlainServer(flight.FlightServerBase):  # type: ignore[misc]
    """What the product would be without TLS and token."""

    do_get = SegmentServer.do_get

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        super().__init__("grpc://127.0.0.1:0")


def read(places: SegmentPlaces, ranges: list[SegmentRange]) -> None:
    rows = DELIVERY.rows(places.stored(ranges))
    assert sum(batch.num_rows for batch in rows) == ROWS


def test_rows_are_read_in_several_ways(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_spool(captured(ROWS, 10), tmp_path)
    captured.cache_clear()
    spool = open_spool(tmp_path)
    ranges = spool.between(START.place, spool.manifest.end.place)
    server, plain = SegmentServer(tmp_path, "127.0.0.1", 0), PlainServer(tmp_path)
    plain_client = flight.FlightClient(f"grpc://127.0.0.1:{plain.port}")
    clients = {WITHOUT_TLS: lambda _: plain_client}
    ways = {
        "by file, compared by the same process before": SegmentPlaces("files"),
        "by file, its bytes compared first": SegmentPlaces("files"),
        "by Flight, both ends": SegmentPlaces("flight", server=server.address),
        WITHOUT_TLS: SegmentPlaces("flight", server=server.address),
    }
    with_tls = flight_client.flight_connection
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    cpu_seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS + 1):
        for name, places in ways.items():
            if "compared by" not in name:  # the one before it has read all of them
                segments._file_checksum.cache_clear()
            monkeypatch.setattr(flight_client, "flight_connection", clients.get(name, with_tls))
            before = time.process_time()
            seconds[name].append(timed(lambda places=places: read(places, ranges)))
            cpu_seconds[name].append(time.process_time() - before)
    server.shutdown()
    plain.shutdown()
    spool.close()
    for name in ways:  # the first turn warms up
        cpu = f"{min(cpu_seconds[name][1:]) / ROWS * 1e6:.2f} µs of CPU a row"
        report.add("spool -> executor", name, Timing(tuple(seconds[name][1:])).rate(ROWS), cpu)
