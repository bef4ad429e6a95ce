"""A mirror into Delta tables: how soon a commit is in its table, and how fast tables are loaded."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lab.benchmarks.measuring import Report, percentiles
from lab.benchmarks.processes import answer_of, ask, program
from lab.benchmarks.rows_that_were_there import Filled
from lab.benchmarks.shop_of_tables import Shop
from lab.benchmarks.test_latency import RECOMMENDED
from lab.benchmarks.whole_snapshot import filled_source

pytestmark = pytest.mark.spark

ROWS = 1_000_000
Batches = Iterator[dict[str, Any]]


@contextmanager
def mirrored(folder: Path, source: dict[str, str], **settings: Any) -> Iterator[Batches]:
    """Run a mirror for the length of a block; yields its batches as they come."""
    task = {
        "source": source,
        "into": f"{folder}/lake",
        "checkpoint": f"{folder}/checkpoint",
        "spark": RECOMMENDED,
        **settings,
    }
    with program("mirror_run", json.dumps(task), errors=subprocess.DEVNULL) as running:
        yield map(json.loads, running.stdout)


@pytest.mark.parametrize("merge", ["on-write", "on-read"])
def test_how_soon_a_commit_is_in_its_table(merge: str, report: Report, tmp_path: Path) -> None:
    shop = Shop()
    ages: list[float] = []
    batches: list[dict[str, Any]] = []
    with program("shop_of_tables", json.dumps(asdict(shop))) as server:
        source = answer_of(server) | {"initialSnapshot": "none"}
        with mirrored(tmp_path, source, merge=merge) as running:
            next(running)  # the stream has begun
            ask(server, "go")
            wanted = shop.per_second * shop.seconds
            while len(ages) < wanted * 0.9 * 0.9:  # a delete has no age
                batch = next(running)
                batches.append(batch)
                ages += batch["ages"]
            settled(running, answer_of(server), tmp_path)
    warm = ages[len(ages) // 5 :]
    middle = batches[len(batches) // 2]
    report.add(
        "mirror",
        f"{shop.tables} tables, {shop.hot} hot, {shop.per_second:,} changes/s, merged {merge}:"
        " commit -> in its table",
        percentiles([age / 1000 for age in warm]),
        f"a batch: {middle['changes']} changes, {middle['tables']} tables, {middle['seconds']:.2f} s",
    )
    written_to = [path for path in (tmp_path / "lake").iterdir() if path.name[0] != "_"]
    assert len(written_to) == shop.hot, "a table without changes was written"


def settled(running: Batches, held: list[list[list[Any]]], folder: Path) -> None:
    """Wait until the tables equal what was written."""
    wanted = [{row[0]: (row[1], Decimal(row[2])) for row in rows} for rows in held if rows]
    while True:
        found = [
            {row["id"]: (row["name"], row["amount"]) for row in rows_of(folder, f"t{number:03}")}
            for number in range(len(wanted))
        ]
        if found == wanted:
            return
        next(running)


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    table = DeltaTable(f"{folder}/lake/{name}")
    rows: list[dict[str, Any]] = pa.table(table.scan().read_all()).to_pylist()
    return rows


def test_rows_a_second_of_a_table_that_is_loaded(report: Report, tmp_path: Path) -> None:
    plan = Filled(ROWS, per_second=0)
    with filled_source(plan) as source:
        batches: list[dict[str, Any]] = []
        options = source.options(snapshotChunkRows="100000", snapshotKey="informix.lines(line_num)")
        with mirrored(tmp_path, options) as running:
            for batch in running:
                batches.append(batch)
                if not batch["loading"]:
                    break
    loaded = [batch for batch in batches if batch["changes"] > 1]
    assert DeltaTable(f"{tmp_path}/lake/lines").count() == ROWS
    seconds = loaded[-1]["at"] - loaded[0]["at"] + loaded[0]["seconds"]
    report.add(
        "mirror",
        f"a table of {ROWS:,} rows is loaded, from the first batch of rows to the last",
        f"{ROWS / seconds / 1000:.0f} k rows/s",
        f"peak of the driver's Python {max(batch['peak_mib'] for batch in batches):.0f} MiB",
    )
