"""Tables that change all the time, with maintenance: does anything grow?

    python -m lab.benchmarks.table_soak FOLDER MINUTES    # retain is a minute

Prints a line of JSON each half minute, and at its end whether the tables are exact and every version of
the last minute can be read.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from harness.lake.batches_by_hand import Mirrored
from harness.lake.rows_of_batches import batch_row
from lab.benchmarks.processes import report_json

COLUMNS = {"id": pa.int32(), "note": pa.string(), "n": pa.int64()}
LARGE, HOT, CHANGES = "informix.large", "informix.hot", "informix.events"
ROWS = {LARGE: 1_000_000, HOT: 2_000}
SETTINGS = {LARGE: {"merge": "on-read"}, HOT: {"merge": "on-read"}, CHANGES: {"keep": "changes"}}
A_BATCH, EVERY_SECONDS, PAUSE_SECONDS = 50, 30.0, 0.05


class Peak:
    """The most memory that the process has had while a thread watches."""

    def __init__(self) -> None:
        self.own = self.mapped = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ends.wait(0.02):
            lines = Path("/proc/self/status").read_text().splitlines()
            found = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
            self.own = max(self.own, int(found["RssAnon"]) >> 10)
            self.mapped = max(self.mapped, int(found["RssFile"]) >> 10)

    def end(self) -> None:
        self._ends.set()
        self._thread.join()


class Soaked:
    """Three tables: a large one with random changes, a small hot one, and one of all changes."""

    def __init__(self, folder: Path) -> None:
        self.made = Mirrored(folder, retain="1 minute", tables=SETTINGS)
        self.folder, self.draw = folder, np.random.default_rng(7)
        self.held = {name: np.zeros(count, np.int64) for name, count in ROWS.items()}
        self.ends: list[tuple[float, int, dict[str, int]]] = []  # time, batch, sum of each table
        self.events = 0
        for name, count in ROWS.items():
            for first in range(0, count, 250_000):
                ids = range(first, min(first + 250_000, count))
                self._batch({name: [("insert", {"id": i, "note": f"row {i}", "n": 0}) for i in ids]})

    def _batch(self, changes: dict[str, list[tuple[str, dict[str, Any]]]]) -> float:
        commit = 100 * (self.made.number + 1)
        rows = [
            batch_row(name, COLUMNS, [(kind, commit, row) for kind, row in of])
            for name, of in changes.items()
        ]
        begun = time.monotonic()
        self.made.batch(*rows, tables=(LARGE, HOT, CHANGES))
        return time.monotonic() - begun

    def batch(self) -> float:
        """Change rows of all tables; return the seconds."""
        number, changes = self.made.number + 1, dict[str, list[tuple[str, dict[str, Any]]]]()
        for name, held in self.held.items():
            ids = np.unique(self.draw.integers(0, len(held), A_BATCH))
            held[ids] = number
            changes[name] = [
                ("update_postimage", {"id": i, "note": f"row {i}", "n": number}) for i in ids.tolist()
            ]
        changes[CHANGES] = [("insert", {"id": number, "note": "event", "n": number})]
        self.events += 1
        seconds = self._batch(changes)
        sums = {name: int(held.sum()) for name, held in self.held.items()}
        self.ends.append((time.time(), self.made.number, sums))
        return seconds

    def figures(self) -> dict[str, Any]:
        """Return what there is on disk, and what opening the tables costs."""
        sizes, kinds = Counter[str](), Counter[str]()
        for path in (self.folder / "lake").rglob("*"):
            if path.is_file():
                kind = "log" if "_delta_log" in path.parts else "files"
                kind = "checkpoints" if ".checkpoint." in path.name else kind
                kinds[kind] += 1
                sizes[kind] += path.stat().st_size
        begun = time.monotonic()
        table = DeltaTable(f"{self.folder}/lake/large")
        opened = time.monotonic() - begun
        checkpoints = sorted((self.folder / "lake/large/_delta_log").glob("*.checkpoint.parquet"))
        return {
            "files": kinds["files"],
            "mib": round(sizes["files"] / (1 << 20), 1),
            "log_files": kinds["log"] + kinds["checkpoints"],
            "log_mib": round((sizes["log"] + sizes["checkpoints"]) / (1 << 20), 1),
            "live": len(table.file_uris()),
            "checkpoint_kib": checkpoints[-1].stat().st_size >> 10 if checkpoints else 0,
            "open_ms": round(1000 * opened, 1),
        }

    def exact(self) -> bool:
        """Return whether the tables have the rows that they should have."""
        for name, held in self.held.items():
            rows = pa.table(DeltaTable(f"{self.folder}/lake/{name[9:]}").scan().read_all())
            order = np.argsort(rows["id"].to_numpy())
            if not np.array_equal(rows["n"].to_numpy()[order], held):
                return False
        events = pa.table(DeltaTable(f"{self.folder}/lake/events").scan().read_all())
        return len(events) == self.events

    def readable(self) -> tuple[int, int]:
        """Return how many batches of the last minute there are, and how many can be read."""
        now, found, wanted = time.time(), 0, 0
        versions = {
            (row["batch"], each["target"]): each["version"]
            for row in pa.table(
                DeltaTable(f"{self.folder}/lake/_informix_cdc_batches").scan().read_all()
            ).to_pylist()
            for each in row["versions"]
        }
        for at, number, sums in self.ends[-1::-20]:
            if at < now - 55:  # this takes some seconds itself
                break
            wanted += 1
            table = DeltaTable(f"{self.folder}/lake/hot", versions[number, "hot"])
            rows = pa.table(table.scan(columns=["n"]).read_all())
            found += int(rows["n"].to_numpy().sum()) == sums[HOT]
        return wanted, found


def soak(folder: Path, minutes: float) -> None:
    """Print a line each half minute."""
    soaked = Soaked(folder)
    maintenance = soaked.made.mirror.maintenance
    assert maintenance is not None
    maintenance.start()
    begun, seconds, done = time.monotonic(), list[float](), 0
    peak = Peak()
    while time.monotonic() - begun < 60 * minutes:
        seconds.append(soaked.batch())
        time.sleep(PAUSE_SECONDS)  # Spark needs more between two batches
        elapsed = time.monotonic() - begun
        if elapsed // EVERY_SECONDS > done:
            done = int(elapsed // EVERY_SECONDS)
            took = sorted(seconds)
            peak.end()
            facts = {
                "minutes": round(elapsed / 60, 1),
                "batches": len(seconds),
                "p50_ms": round(1000 * statistics.median(took), 1),
                "p99_ms": round(1000 * took[int(len(took) * 0.99)], 1),
                **soaked.figures(),
                "own_mib": peak.own,
                "mapped_mib": peak.mapped,
                "maintenance": round(maintenance.done.seconds / elapsed, 3),
                "removed": maintenance.done.removed,
            }
            report_json(facts)
            soaked.made.batches.clear()
            soaked.ends = soaked.ends[-2000:]
            seconds, peak = [], Peak()
    peak.end()
    wanted, found = soaked.readable()
    report_json({"exact": soaked.exact(), "promised": wanted, "readable": found})
    soaked.made.mirror.close()


if __name__ == "__main__":
    soak(Path(sys.argv[1]), float(sys.argv[2]))
