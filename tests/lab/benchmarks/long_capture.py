"""A shared capture over minutes, with a reader that keeps up and one that has stopped: how large is it?

    python -m lab.benchmarks.long_capture 300 400

For so many seconds, with so many transactions of ten rows a second; a third argument has settings of
the capture. Prints lines of JSON: after how many seconds, the memory of `informix-cdc capture`, the
rows that it has stored, and their segments.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.capture.capture_process import CaptureCommand, capture_command
from harness.capture.driving import LIMIT, Offset, anchor_of
from harness.capture.shared import shared_reader
from informix_checkpoints.spool import Manifest, load_manifest
from lab.benchmarks.emulated_source import Plan
from lab.benchmarks.processes import EmulatedSource, emulated_source

SAMPLES = 30


def memory_of(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """Return how many MiB of its own a process has, and how many with mapped files."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    sizes = {
        line.split()[0]: int(line.split()[1]) / 1024 for line in lines if line[:3] in ("VmR", "Rss")
    }
    return {"anonymous": sizes["RssAnon:"], "rss": sizes["VmRSS:"]}


class KeepingUp(threading.Thread):
    """A query that reads and commits all the time."""

    def __init__(self, spool: Path) -> None:
        super().__init__(daemon=True)
        self._spool = spool
        self.is_done = threading.Event()
        self.rows = 0

    def run(self) -> None:
        with shared_reader(self._spool, "here") as made:
            start: Offset = anchor_of(made)
            while not self.is_done.is_set():
                end = made.latestOffset(start, LIMIT)
                if end != start:
                    parts = made.partitions(start, end)
                    self.rows += sum(batch.num_rows for part in parts for batch in made.read(part))
                    made.commit(end)
                    start = end


@contextmanager
def two_readers(spool: Path) -> Iterator[KeepingUp]:
    """Register a reader that stops at once, and run another one for the length of a block."""
    with shared_reader(spool, "away") as made:
        anchor_of(made)
    here = KeepingUp(spool)
    here.start()
    try:
        yield here
    finally:
        here.is_done.set()
        here.join()


def manifest_in(spool: Path) -> Manifest:
    """Return what the capture has stored."""
    (folder,) = {path.parent for path in spool.glob("*/manifest.json")}
    found = load_manifest(folder)
    assert found is not None
    return found


def watch(command: CaptureCommand, capture: subprocess.Popen[bytes], seconds: float) -> None:
    """Print the memory of the capture again and again."""
    begun = time.monotonic()
    with two_readers(command.spool) as here:
        for number in range(1, SAMPLES + 1):
            time.sleep(max(0.0, begun + number * seconds / SAMPLES - time.monotonic()))
            stored = manifest_in(command.spool)
            told = {
                "seconds": time.monotonic() - begun,
                **memory_of(capture),
                "rows": stored.row_count,
                "read": here.rows,
                "stored": stored.size_bytes / 2**20,
                "segments": len(stored.segments),
            }
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


def run(source: EmulatedSource, folder: Path, seconds: float, settings: str) -> None:
    """Capture, and watch it."""
    given = {name: value for name, value in source.options().items() if name != "port"}
    with capture_command(folder, source.port, settings, **given) as command:
        capture = command.begin()
        source.start_writing()
        watch(command, capture, seconds)


def main() -> None:
    seconds, per_second = float(sys.argv[1]), int(sys.argv[2])
    settings = sys.argv[3] if len(sys.argv) > 3 else ""
    plan = Plan(transactions=int(seconds * per_second) + 1, per_second=per_second)
    with emulated_source(plan) as source, tempfile.TemporaryDirectory() as folder:
        run(source, Path(folder), seconds, settings)


if __name__ == "__main__":
    main()
