"""One transaction far larger than the memory it may take, through the real capture loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from harness.capture.shaped import delivery_of
from informix_checkpoints.spool import stored_range
from lab.benchmarks.one_transaction import PREPARED_ROWS, turns_of
from lab.benchmarks.pipeline import START, open_spool
from lab.benchmarks.processes import reported_by
from lab.benchmarks.workload import catalog_tables, rows_without_end

pytestmark = pytest.mark.slow

MEBIBYTES = 128
LIMIT_MEBIBYTES = 16
# The limit, blocks on their way to the disk and back, and what the allocator keeps: 50 were measured,
# and 250 with nothing put aside.
MOST_GROWTH_MEBIBYTES = 96


def run(folder: Path, mebibytes: int, *more: str) -> dict[str, Any]:
    (told,) = reported_by("one_transaction", folder, mebibytes, LIMIT_MEBIBYTES, *more)
    return told


def delivered(folder: Path) -> Iterator[pa.RecordBatch]:
    spool, delivery = open_spool(folder / "spool"), delivery_of(catalog_tables(1))
    for wanted in spool.between(START.place, spool.manifest.end.place):
        yield from delivery.rows(stored_range(wanted))
    spool.close()


@pytest.mark.only_in_all
def test_a_transaction_of_128_mib_is_delivered_whole_in_bounded_memory(tmp_path: Path) -> None:
    small = run(tmp_path / "small", 1)
    large = run(tmp_path / "large", MEBIBYTES)
    assert small["spilled_bytes"] == 0
    assert large["spilled_bytes"] > (MEBIBYTES - LIMIT_MEBIBYTES) << 20
    assert large["peak"] - small["peak"] < MOST_GROWTH_MEBIBYTES
    turns, last_number, ordinal, total = turns_of(MEBIBYTES), -1, 0, 0
    for batch in delivered(tmp_path / "large"):
        numbers = batch.column("_change_seq").to_numpy()
        assert (np.diff(numbers, prepend=last_number) > 0).all()
        ordinals = batch.column("_change_ordinal").to_numpy()
        assert ordinals.tolist() == list(range(ordinal, ordinal + len(batch)))
        last_number, ordinal = int(numbers[-1]), ordinal + len(batch)
        total += pc.sum(batch.column("line_num")).as_py()
    assert ordinal == turns * PREPARED_ROWS == large["rows"]
    rows = rows_without_end()
    assert total == turns * sum(next(rows)["line_num"] for _ in range(PREPARED_ROWS))  # type: ignore[misc]


def test_a_transaction_of_three_tables_is_stored_whole_in_bounded_memory(tmp_path: Path) -> None:
    small, large = run(tmp_path / "small", 1), run(tmp_path / "large", MEBIBYTES, "--three-tables")
    assert large["spilled_bytes"] > (MEBIBYTES - LIMIT_MEBIBYTES) << 20
    assert large["peak"] - small["peak"] < MOST_GROWTH_MEBIBYTES
    spool, delivery = open_spool(tmp_path / "large" / "spool"), delivery_of(catalog_tables(3))
    [wanted] = spool.between(START.place, spool.manifest.end.place)
    spool.close()
    ordinal = 0
    for batch in delivery.rows(stored_range(wanted)):
        ordinals = batch.column("_change_ordinal").to_numpy()
        assert ordinals.tolist() == list(range(ordinal, ordinal + len(batch)))
        own = [np.asarray(batch.column(f"t{n}").is_valid()) for n in range(3)]
        assert (np.sum(own, axis=0) == 1).all()
        ordinal += len(batch)
    assert ordinal == turns_of(MEBIBYTES) * PREPARED_ROWS == large["rows"]


def test_a_transaction_that_never_ends_is_bounded_and_seen(tmp_path: Path) -> None:
    small, endless = run(tmp_path / "small", 1), run(tmp_path / "endless", MEBIBYTES, "--never-ends")
    assert (endless["open_transactions"], endless["transactions"]) == (1, 0)
    assert endless["open_bytes_in_memory"] <= LIMIT_MEBIBYTES << 20
    assert endless["open_bytes_spilled"] > (MEBIBYTES - LIMIT_MEBIBYTES) << 20
    assert endless["spilled_bytes"] == endless["open_bytes_spilled"]
    assert endless["peak"] - small["peak"] < MOST_GROWTH_MEBIBYTES
