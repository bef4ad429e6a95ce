"""Tables that change all the time, with maintenance: does anything grow?

    python -m lab.benchmarks.table_soak FOLDER MINUTES    # retain is a minute
    python -m lab.benchmarks.table_soak FOLDER --commits 1000000    # made beforehand

The first prints a line of JSON each half minute, and at its end whether the tables are exact and every
version of the last minute can be read. The second states what a table costs that has so many commits.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from harness.lake.batches_by_hand import Mirrored
from harness.lake.rows_of_batches import batch_row
from informix_cdc.merge_on_read import TableLog, TablePlace
from lab.benchmarks.emulated_source import say
from lab.benchmarks.large_merge import Peak

COLUMNS = {"id": pa.int32(), "note": pa.string(), "n": pa.int64()}
LARGE, HOT, CHANGES = "informix.large", "informix.hot", "informix.events"
ROWS = {LARGE: 1_000_000, HOT: 2_000}
SETTINGS = {LARGE: {"merge": "on-read"}, HOT: {"merge": "on-read"}, CHANGES: {"keep": "changes"}}
A_BATCH, EVERY_SECONDS, PAUSE_SECONDS = 50, 30.0, 0.05


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
            say(json.dumps(facts))
            soaked.made.batches.clear()
            soaked.ends = soaked.ends[-2000:]
            seconds, peak = [], Peak()
    peak.end()
    wanted, found = soaked.readable()
    say(json.dumps({"exact": soaked.exact(), "promised": wanted, "readable": found}))
    soaked.made.mirror.close()


class Timed(dict[str, Any]):
    """Figures, and how long steps took."""

    def __call__(self, name: str, step: Callable[[], object]) -> None:
        begun = time.monotonic()
        step()
        self[name] = round(time.monotonic() - begun, 2)


def commits_beforehand(folder: Path, count: int) -> None:
    """Print what a table costs with so many commits, each of which removed a file."""
    made, timed = Mirrored(folder, merge="on-read", retain="7 days"), Timed(commits=count)
    made.orders(*(("insert", 1, {"id": number, "note": "a"}) for number in range(1000)))
    _grow(Path(made.settings.into) / "orders", count)
    _start_again(made)
    made.orders(("insert", 10**8, {"id": -2, "note": "a"}))  # the checkpoint records the commits
    place, peak = TablePlace(f"{made.settings.into}/orders"), Peak()
    timed("start_s", lambda: _start_again(made))
    timed("first_maintenance_s", lambda: _work(made))
    log = Path(place.name) / "_delta_log"
    timed["checkpoint_mib"] = max(path.stat().st_size for path in log.glob("*.parquet")) >> 20
    timed("open_s", lambda: TableLog(place).at())
    timed("delta_rs_open_s", lambda: DeltaTable(place.name))
    timed("batch_s", lambda: made.orders(("insert", 10**9, {"id": -1, "note": "a"})))
    assert made.mirror.maintenance is not None
    timed["tombstones"] = made.mirror.maintenance.tombstones()["orders"]
    timed["pause_s"] = round(made.mirror.maintenance.pause_before(["orders"]), 1)
    _age(Path(place.name), 8 * 86400)
    _start_again(made)
    timed("cleaning_s", lambda: _work(made))
    peak.end()
    timed |= {"own_mib": peak.own, "mapped_mib": peak.mapped}
    timed["removed"] = made.mirror.maintenance.done.removed
    timed["files_after"] = sum(path.is_file() for path in Path(place.name).rglob("*"))
    say(json.dumps(timed))
    made.mirror.close()


def _start_again(made: Mirrored) -> None:
    made.mirror.close()
    made.restart()


def _work(made: Mirrored) -> None:
    while made.mirror.maintenance is not None and made.mirror.maintenance.work():
        pass


def _age(place: Path, seconds: int) -> None:
    """Let all files look as if they had been written some time ago, but for the newest entries."""
    log = place / "_delta_log"
    checkpoint = max(log.glob("*.checkpoint.parquet"))
    version = int(checkpoint.name[:20])
    table = pq.read_table(checkpoint)
    removed = table.column("remove").combine_chunks()
    fields = dict(zip(removed.type.names, removed.flatten(), strict=True))
    earlier = pc.subtract(fields["deletionTimestamp"], 1000 * seconds)
    parts = [earlier if name == "deletionTimestamp" else each for name, each in fields.items()]
    aged = pa.StructArray.from_arrays(parts, fields=list(removed.type), mask=removed.is_null())
    pq.write_table(table.set_column(table.schema.get_field_index("remove"), "remove", aged), checkpoint)
    for path in [*place.glob("*.parquet"), *log.glob("*.*")]:
        if path.parent != log or (path.name[:20].isdigit() and int(path.name[:20]) <= version):
            then = path.stat().st_mtime - seconds
            os.utime(path, (then, then))


def _grow(place: Path, count: int) -> None:
    """Append entries that each replace a file that an earlier one has added, and a checkpoint."""
    log, now = place / "_delta_log", int(time.time() * 1000)
    first = len(list(log.glob("*.json")))
    stats = json.dumps({"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {}})
    names = [f"part-{uuid.uuid4()}-c000.zstd.parquet" for _ in range(count)]
    (application,) = TableLog(TablePlace(str(place))).at().numbers
    about_us = {"operation": "OPTIMIZE", "timestamp": now}
    about_us |= {"userMetadata": json.dumps({"informix-cdc": application})}
    DeltaTable(str(place)).create_checkpoint()
    (before,) = log.glob("*.checkpoint.parquet")
    for number, path in enumerate(names):
        about = {"path": path, "partitionValues": {}, "size": 1}
        (place / path).write_bytes(b"-")
        actions: list[dict[str, Any]] = [{"commitInfo": about_us}]
        if number:
            removed = {**about, "path": names[number - 1], "deletionTimestamp": now}
            actions.append({"remove": {**removed, "dataChange": False}})
        if number < count - 1:
            added = {**about, "modificationTime": now, "dataChange": False, "stats": stats}
            actions.append({"add": added})
        (log / f"{first + number:020}.json").write_text("\n".join(map(json.dumps, actions)))
    _checkpoint(log, before, first + count - 1, names[:-1], now)


def _checkpoint(log: Path, before: Path, version: int, names: list[str], now: int) -> None:
    """Write the checkpoint that delta-rs would write, in ten minutes for a million entries."""
    known = pq.read_table(before)
    known = known.cast(pa.schema([_nullable(each) for each in known.schema]))
    of = known.schema.field("remove").type
    values = {
        "path": pa.array(names),
        "dataChange": pa.array([False] * len(names)),
        "deletionTimestamp": pa.array([now] * len(names)),
    }
    parts = [values.get(each.name, pa.nulls(len(names))).cast(each.type) for each in of]
    rows = [
        pa.StructArray.from_arrays(parts, fields=list(of))
        if each.name == "remove"
        else pa.nulls(len(names), each.type)
        for each in known.schema
    ]
    table = pa.concat_tables([known, pa.Table.from_arrays(rows, schema=known.schema)])
    pq.write_table(table, log / f"{version:020}.checkpoint.parquet")
    named = {"version": version, "size": len(table)}
    (log / "_last_checkpoint").write_text(json.dumps(named))
    before.unlink()


def _nullable(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_nullable(each) for each in kind])
    return pa.field(field.name, kind)


if __name__ == "__main__":
    where = Path(sys.argv[1])
    if sys.argv[2] == "--commits":
        commits_beforehand(where, int(sys.argv[3]))
    else:
        soak(where, float(sys.argv[2]))
