"""Ten readers of one capture: the server's log is read once, and so is each segment from the disk."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from connector.reading.conftest import SharedPlace
from harness.capture.driving import LIMIT, Served, anchor_of, drained, insert
from harness.runs.patience import wait_until
from harness.servers.stores import ORDERS, order_row

pytestmark = pytest.mark.slow

READERS = 10
TRANSACTIONS, ROWS_EACH = 40, 500


def bytes_from_disk() -> int:
    """Return what this process has read from block devices: proc(5), /proc/pid/io."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def forget_pages(folder: Path) -> int:
    """Let the kernel forget the content of segments; return their size."""
    size_bytes = 0
    for path in folder.glob("*.arrow"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            size_bytes += path.stat().st_size
    return size_bytes


@pytest.mark.only_in_all
def test_ten_readers_cost_one_read_of_the_log_and_of_the_disk(served: Served, at: SharedPlace) -> None:
    server, listening = served
    with at.capturing(listening.port, spool__segment_bytes=1 << 20) as running:
        with at.reader("first") as made:
            start = anchor_of(made)
        for number in range(TRANSACTIONS):
            with server.transaction() as transaction:
                for each in range(ROWS_EACH):
                    row = order_row((number * ROWS_EACH + each, 1, f"note {each}" * 4, None))
                    transaction.insert(ORDERS, row)
        last = insert(server, -1)
        state = running.process.state
        wait_until(lambda: state.spool_rows == TRANSACTIONS * ROWS_EACH + 1)
        assert len(server.sessions()) == 1
        assert state.spool is not None
        size_bytes = forget_pages(state.spool.folder)
        before = bytes_from_disk()

        def read(number: int) -> int:
            with at.reader(f"reader{number}") as made:
                return len(drained(made, start, last)[0])

        with ThreadPoolExecutor(READERS) as pool:
            counts = list(pool.map(read, range(READERS)))
        assert counts == [TRANSACTIONS * ROWS_EACH + 1] * READERS
        assert bytes_from_disk() - before < 2 * size_bytes
        assert len(server.sessions()) == 1


def test_a_reader_that_is_away_does_not_keep_rows_from_one_that_waits(
    served: Served, at: SharedPlace
) -> None:
    """Segments that only the former needs count little for when rows are written."""
    server, listening = served
    with at.capturing(listening.port, maxLatencyMs="1") as running:
        state = running.process.state
        with at.reader("away") as away, at.reader("waits") as waits:
            anchor_of(away)
            end = anchor_of(waits)
            for number in range(5):
                _, end = drained(waits, end, insert(server, number))
            waits.commit(end)
            waits.latestOffset(end, LIMIT)
            wait_until(lambda: state.segments_ahead[0] >= 5 and not state.segments_ahead[1])
        file = at.folder / "readers" / "waits.json"
        os.utime(file, (0, 0))  # it is away too
        wait_until(lambda: state.segments_ahead[1] >= 5)
