"""A batch of 50 changes into a large Delta table: merged on read, beside delta-rs's MERGE."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from informix_cdc.lake.merges import of_images
from informix_cdc.lake.on_read_tables import OnReadTarget
from informix_cdc.lake.table_changes import AT, GONE
from lab.benchmarks.measuring import Report

STEP, CHANGES, BATCHES = 1_000_000, 50, 20
KEY = pa.field("id", pa.int64(), nullable=False)
NARROW = pa.schema([KEY, ("a", pa.string()), ("b", pa.float64()), ("n", pa.int64())])
WIDE = pa.schema([KEY, ("a", pa.string()), *((f"n{number}", pa.int64()) for number in range(30))])
TEXTS = pa.schema(
    [
        pa.field("a", pa.string(), nullable=False),
        pa.field("b", pa.string(), nullable=False),
        ("n", pa.int64()),
    ]
)
FORMS = {"4 columns": NARROW, "32 columns with statistics": WIDE, "a text key of two columns": TEXTS}


def rows(schema: pa.Schema, numbers: np.ndarray, mark: str) -> pa.Table:
    columns = {
        "int64": lambda: pa.array(numbers),
        "double": lambda: pa.array(numbers.astype(float)),
        "string": lambda: pa.array([f"text {n} {n * 7919 % 1000003}" for n in numbers.tolist()]),
    }
    made = {each.name: columns[str(each.type)]() for each in schema}
    if schema is not TEXTS:
        made["a"] = pa.array([f"{mark} {n}" for n in numbers.tolist()])
    return pa.table(made, schema=schema)


def size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def merged(
    place: Path, schema: pa.Schema, count: int, *, on_read: bool
) -> tuple[float, float, Callable[[], int]]:
    """Return the median of seconds and of bytes written of a batch, and what counts the rows."""
    target = OnReadTarget(str(place), "informix-cdc/bench")
    target.create(schema, "t", "", on_read=on_read)
    for first in range(0, count, STEP):
        target.append(rows(schema, np.arange(first, min(first + STEP, count)), "text"), first)
    key = [each.name for each in schema if not each.nullable]
    draw, seconds, written = random.Random(1), list[float](), list[int]()
    for batch in range(count, count + BATCHES):
        numbers = np.array(sorted(draw.sample(range(count), CHANGES)))
        images = rows(schema, numbers, "new").append_column(GONE, pa.array(numbers % 10 == 0))
        images = images.append_column(
            AT, pa.array([datetime.now(UTC)] * CHANGES, pa.timestamp("us", "UTC"))
        )
        before, begun = size(place), time.perf_counter()
        target.merge(images, of_images(images.column_names, key), batch)
        seconds.append(time.perf_counter() - begun)
        written.append(size(place) - before)
    return (
        float(np.median(seconds[1:])),  # the first one builds the index
        float(np.median(written[1:])),
        lambda: pa.table(DeltaTable(str(place)).scan(columns=[key[0]])).num_rows,
    )


@pytest.mark.parametrize(
    ("form", "count"),
    [("4 columns", 100_000), *((form, 1_000_000) for form in FORMS), ("4 columns", 20_000_000)],
)
def test_a_batch_of_changes_into_a_large_table(
    form: str, count: int, report: Report, tmp_path: Path
) -> None:
    seconds, written, on_read = merged(tmp_path / "read", FORMS[form], count, on_read=True)
    beside, rewritten, on_write = merged(tmp_path / "write", FORMS[form], count, on_read=False)
    assert on_read() == on_write()
    report.add(
        "mirror",
        f"{CHANGES} random changes into {count:,} rows, {form}: merged on read",
        f"{seconds * 1000:.1f} ms, {written / 1024:.0f} KiB written",
        f"{beside / seconds:.0f} times as fast as delta-rs's MERGE ({beside * 1000:.0f} ms,"
        f" {rewritten / (1 << 20):.1f} MiB)",
    )
