"""Two drivers of one mirror: a batch that a paused one commits late changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from informix_capture_client.errors import DataLoss
from informix_cdc.lake.commit_text import CommitText
from informix_cdc.lake.delta_tables import DeltaTarget
from informix_cdc.lake.identity import BatchEnd, number_of
from informix_cdc.lake.merges import of_images
from informix_cdc.lake.table_changes import AT, GONE, INSTANT

ROWS = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.int64())])


def images(value: int) -> pa.Table:
    rows = pa.table({"k": [1], "v": [value]}, schema=ROWS)
    at = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], INSTANT)
    return rows.append_column(GONE, pa.array([False])).append_column(AT, at)


def driver(place: Path) -> DeltaTarget:
    return DeltaTarget(str(place), "informix-cdc/1")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = driver(tmp_path / "t")
    made.create(ROWS, "t", "")
    made.append(pa.table({"k": [1], "v": [0]}, schema=ROWS), 0)
    return tmp_path / "t"


def test_a_late_merge_of_an_earlier_batch_is_refused(place: Path) -> None:
    late, newer = driver(place), driver(place)
    assert not late.has(1)  # and is paused here
    for number in (1, 2):
        newer.merge(images(100 * number), of_images(images(0), ["k"]), number)
    with pytest.raises(DataLoss, match="has batch 2 of epoch 0, but this mirror runs batch 1"):
        late.merge(images(100), of_images(images(0), ["k"]), 1)
    assert driver(place).rows().to_pylist() == [{"k": 1, "v": 200}]


def test_a_late_append_of_the_same_batch_is_left_out(place: Path) -> None:
    late, newer = driver(place), driver(place)
    assert not late.has(1)
    rows = pa.table({"k": [7], "v": [1]}, schema=ROWS)
    newer.append(rows, 1)
    late.append(rows, 1)
    assert len(driver(place).rows()) == 2


@pytest.mark.parametrize(
    ("end", "batch", "has"),
    [
        (BatchEnd("a1", 100), number_of(2, 7), True),
        (BatchEnd("a1", 100), number_of(2, 8), False),
        (BatchEnd("a1", 101), number_of(2, 7), None),
        (BatchEnd("b2", 100), number_of(2, 7), None),
        (BatchEnd("a1", 100), number_of(2, 6), None),
        (BatchEnd("a1", 100), number_of(1, 9), None),
    ],
)
def test_a_batch_is_known_by_its_number_and_its_end(
    end: BatchEnd, batch: int, has: bool | None, place: Path
) -> None:
    made = driver(place)
    made.end_of_batch = CommitText(BatchEnd("a1", 100))
    made.append(pa.table({"k": [8], "v": [8]}, schema=ROWS), number_of(2, 7))
    asked = driver(place)
    asked.end_of_batch = CommitText(end)
    if has is None:
        with pytest.raises(DataLoss, match="has batch 7 of epoch 2"):
            asked.has(batch)
    else:
        assert asked.has(batch) == has
    assert asked.end() == BatchEnd("a1", 100)
