"""Changes of large Delta tables: merged on read, beside delta-rs's MERGE."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from harness.lake.batches_by_hand import Mirrored
from harness.lake.object_stores import object_store
from harness.lake.rows_of_batches import Change, batch_row
from informix_cdc.lake.merges import Merge, of_images, of_images_kept, of_states
from informix_cdc.lake.on_read_tables import OnReadTarget
from informix_cdc.lake.table_changes import (
    ADDED,
    AT,
    DELETED_AT,
    FROM,
    FROM_TIME,
    GONE,
    IS_STATE,
    TO,
    TO_TIME,
)
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
Changed = tuple[pa.Table, Merge]


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


def of_key(new: pa.Table, _: int, at: datetime) -> Changed:
    """Return rows, a tenth of them deleted."""
    key = [each.name for each in new.schema if not each.nullable]
    found = new.append_column(GONE, pa.array(np.arange(CHANGES) % 10 == 0))
    found = found.append_column(AT, pa.array([at] * CHANGES, pa.timestamp("us", "UTC")))
    return found, of_images(found.column_names, key)


def of_soft(new: pa.Table, commit: int, at: datetime) -> Changed:
    """Return rows, a tenth of them deleted, which stay."""
    found, _ = of_key(new, commit, at)
    times = found.column(AT)
    deleted = pc.if_else(found.column(GONE), times, pa.scalar(None, times.type))
    found = found.append_column(DELETED_AT, deleted)
    return found, of_images_kept(found.column_names, ["id"], None)


def of_history(new: pa.Table, commit: int, at: datetime) -> Changed:
    """Return the ends of the states of some rows, and the new states."""
    none, now = pa.array([None] * CHANGES, pa.int64()), pa.array([commit] * CHANGES)
    ends = new.append_column(FROM, none).append_column(TO, now)
    begins = new.append_column(FROM, now).append_column(TO, none)
    found = pa.concat_tables([ends, begins])
    for name in (FROM_TIME, TO_TIME):
        found = found.append_column(name, pa.array([at] * len(found), pa.timestamp("us", "UTC")))
    found = found.append_column(IS_STATE, pa.array(np.arange(2 * CHANGES) >= CHANGES))
    return found, of_states(found.column_names, ["id"], None)


FORMS = {
    "4 columns": (NARROW, of_key),
    "32 columns with statistics": (WIDE, of_key),
    "a text key of two columns": (TEXTS, of_key),
    "history": (NARROW, of_history),
    "soft": (NARROW, of_soft),
}


def merged(place: Path, form: str, count: int, *, on_read: bool) -> tuple[float, float, int]:
    """Return the median of seconds and of bytes written of a batch, and the number of rows."""
    (schema, changed), target = FORMS[form], OnReadTarget(str(place), "informix-cdc/bench")
    stored = pa.schema([*schema, *ADDED.get(form, ())])
    target.create(stored, "t", "", on_read=on_read)
    for first in range(0, count, STEP):
        found = rows(schema, np.arange(first, min(first + STEP, count)), "text")
        if form == "history":
            found = found.append_column(FROM, pa.array(np.zeros(len(found), np.int64)))
        target.append(found, first)
    draw, seconds, written = random.Random(1), list[float](), list[int]()
    for batch in range(count, count + BATCHES):
        new = rows(schema, np.array(sorted(draw.sample(range(count), CHANGES))), "new")
        images, merge = changed(new, batch, datetime.now(UTC))
        before, begun = size(place), time.perf_counter()
        target.merge(images, merge, batch)
        seconds.append(time.perf_counter() - begun)
        written.append(size(place) - before)
    usual, bytes_written = (
        float(np.median(each[1:])) for each in (seconds, written)
    )  # the first one builds the index
    there = pa.table(DeltaTable(str(place)).scan(columns=[schema.names[0]])).num_rows
    return usual, bytes_written, there


@pytest.mark.parametrize(
    ("form", "count"),
    [
        *((form, 1_000_000) for form in FORMS),
        *((form, 100_000) for form in ("4 columns", "history", "soft")),
        *((form, 5_000_000) for form in ("history", "soft")),
        ("4 columns", 20_000_000),
    ],
)
def test_a_batch_of_changes_into_a_large_table(
    form: str, count: int, report: Report, tmp_path: Path
) -> None:
    seconds, written, on_read = merged(tmp_path / "read", form, count, on_read=True)
    beside, rewritten, on_write = merged(tmp_path / "write", form, count, on_read=False)
    assert on_read == on_write
    report.add(
        "mirror",
        f"{CHANGES} random changes into {count:,} rows, {form}: merged on read",
        f"{seconds * 1000:.1f} ms, {written / 1024:.0f} KiB written",
        f"{beside / seconds:.0f} times as fast as delta-rs's MERGE ({beside * 1000:.0f} ms,"
        f" {rewritten / (1 << 20):.1f} MiB)",
    )


@pytest.mark.parametrize("merge", ["on-write", "on-read"])
def test_a_batch_of_three_tables_into_an_object_store(
    merge: str, report: Report, tmp_path: Path
) -> None:
    columns = {"id": pa.int32(), "note": pa.string()}
    tables = ("informix.a", "informix.b", "informix.c")
    with object_store() as store:
        store.set(delay_seconds=0.03)
        settings = {"into": store.url("bench"), "storage_options": store.options, "merge": merge}
        made = Mirrored(tmp_path, **settings)
        there: list[Change] = [("insert", 1, {"id": n, "note": "a"}) for n in range(10_000)]
        loaded = [("truncate", 1, None), *there]
        made.batch(*(batch_row(t, columns, loaded, is_snapshot=True) for t in tables), tables=tables)
        seconds = []
        for number in range(1, BATCHES):
            commit = 100 * number + 50
            changes = [("update_postimage", commit, {"id": n * number, "note": "b"}) for n in range(50)]
            store.requests()
            begun = time.perf_counter()
            made.batch(*(batch_row(t, columns, changes) for t in tables), tables=tables)
            seconds.append(time.perf_counter() - begun)
        made.mirror.close()
        report.add(
            "mirror",
            f"50 changes of each of 3 tables into an object store, 30 ms a request, merged {merge}",
            f"{np.median(seconds) * 1000:.0f} ms a batch",
            f"{store.counts().total()} requests",
        )
