"""Copies of segments for executors: bytes and CPU of a row, compressed and as segments are."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from informix_checkpoints.spool import copies as segment_copies
from informix_checkpoints.spool import segments
from informix_checkpoints.spool.copies import SegmentCopies
from informix_checkpoints.spool.segments import Segment, SegmentRange, checksum_of, rows_in
from informix_checkpoints.spool.stored_rows import in_row_form
from lab.benchmarks.measuring import REPEATS, Report
from lab.benchmarks.pipeline import START, fill_spool, open_spool
from lab.benchmarks.workload import captured

ROWS = 500_000


class CopiedSpool:
    """The segments of a full spool, their copies, and beside these the segments' own bytes."""

    def __init__(self, folder: Path) -> None:
        self._spool, self._plain = folder / "spool", folder / "plain"
        (folder / "copies" / "bench").mkdir(parents=True)
        self._plain.mkdir()
        fill_spool(captured(ROWS, 10), self._spool)
        captured.cache_clear()
        spool = open_spool(self._spool)
        self._upto, self._held = spool.manifest.end.commit, spool._manifest.segments
        spool.close()
        self._copies = SegmentCopies((folder / "copies").as_uri(), "bench")
        self.copied: list[Segment] = []

    def write_plain(self) -> None:
        """Copy bytes, as they are."""
        for one in self._held:
            shutil.copyfile(self._spool / one.file, self._plain / one.file)

    def write_copies(self) -> None:
        """Compare the bytes of each segment, which is new, and compress them."""
        segments._file_checksum.cache_clear()
        self.copied = [self._copies.put(self._spool / one.file, one) for one in self._held]

    def read_plain(self) -> None:
        """Compare every byte, then read every row."""
        assert self._rows(self._plain_batches(one) for one in self._ranges()) == ROWS

    def read_copies(self) -> None:
        """Compare every byte, then read every row."""
        segment_copies._is_whole.cache_clear()
        assert self._rows(self._copies.stored_range(one) for one in self._ranges()) == ROWS

    def _ranges(self) -> list[SegmentRange]:
        of = segments.rows_between
        return [of(self._spool, one, START.commit, self._upto) for one in self.copied]

    def _plain_batches(self, wanted: SegmentRange) -> Iterator[pa.RecordBatch]:
        file = pa.OSFile(str(self._plain / wanted.file))
        assert checksum_of(file) == wanted.checksum
        return rows_in(file, wanted)

    @staticmethod
    def _rows(ranges: Iterator[Iterator[pa.RecordBatch]]) -> int:
        return sum(in_row_form(batch).num_rows for batches in ranges for batch in batches)


def test_copies_are_smaller_than_segments(report: Report, tmp_path: Path) -> None:
    spool = CopiedSpool(tmp_path)
    ways = {
        "a segment's own bytes: write": spool.write_plain,
        "compressed: write": spool.write_copies,
        "a segment's own bytes: read": spool.read_plain,
        "compressed: read": spool.read_copies,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS + 1):
        for name, way in ways.items():
            before = time.process_time()
            way()
            seconds[name].append(time.process_time() - before)
    plain, compressed = (
        sum(getattr(one, name) for one in spool.copied) / ROWS for name in ("size_bytes", "copy_bytes")
    )
    for name in ways:  # the first turn warms up
        cpu = f"{min(seconds[name][1:]) / ROWS * 1e6:.2f} µs of CPU a row"
        size_bytes = compressed if name.startswith("compressed") else plain
        report.add("copies of segments", name, cpu, f"{size_bytes:.0f} bytes a row")
