"""Two drivers of one mirror: a batch that a paused one commits late changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from informix_capture_client.errors import DataLoss, TargetUnavailable
from informix_cdc.lake import delta_tables
from informix_cdc.lake.commit_text import CommitText
from informix_cdc.lake.identity import BatchEnd, number_of
from informix_cdc.lake.merges import of_images
from informix_cdc.lake.mirrored_table import TableStopped
from informix_cdc.lake.on_read_tables import OnReadTarget
from informix_cdc.lake.table_changes import AT, GONE, INSTANT
from informix_cdc.merge_on_read import TableLog

ROWS = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.int64())])


def images(value: int) -> pa.Table:
    rows = pa.table({"k": [1], "v": [value]}, schema=ROWS)
    at = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], INSTANT)
    return rows.append_column(GONE, pa.array([False])).append_column(AT, at)


def driver(place: Path) -> OnReadTarget:
    return OnReadTarget(str(place), "informix-cdc/1", index_folder=place.parent)


@pytest.fixture(params=[False, True], ids=["on-write", "on-read"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made = driver(tmp_path / "t")
    made.create(ROWS, "t", "", on_read=request.param)
    made.append(pa.table({"k": [1], "v": [0]}, schema=ROWS), 0)
    return tmp_path / "t"


def test_a_late_merge_of_an_earlier_batch_is_refused(place: Path) -> None:
    late, newer = driver(place), driver(place)
    assert not late.has(1)  # and is paused here
    for number in (1, 2):
        newer.merge(images(100 * number), of_images(ROWS.names, ["k"]), number)
    with pytest.raises(DataLoss, match="has batch 2 of epoch 0, but this mirror runs batch 1"):
        late.merge(images(100), of_images(ROWS.names, ["k"]), 1)
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


def between(patch: pytest.MonkeyPatch, others: Callable[[], object]) -> None:
    """Let others write just before an entry is put for the first time."""
    put, late = TableLog.put, [others]

    def putting(self: TableLog, actions: Any) -> bool:
        if late:
            late.pop()()
        return put(self, actions)

    patch.setattr(TableLog, "put", putting)


WRITES: dict[str, Callable[[OnReadTarget, int], None]] = {
    "append": lambda target, n: target.append(pa.table({"k": [n], "v": [n]}, schema=ROWS), n),
    "merge": lambda target, n: target.merge(images(n), of_images(ROWS.names, ["k"]), n),
}


@pytest.mark.parametrize("how", WRITES)
def test_a_commit_beside_compaction_is_made(
    how: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = driver(place)
    made.append(pa.table({"k": [2], "v": [2]}, schema=ROWS), 2)
    between(monkeypatch, lambda: DeltaTable(str(place)).optimize.compact())
    WRITES[how](made, 7)
    found = {row["k"]: row["v"] for row in driver(place).rows().to_pylist()}
    assert found == ({1: 0, 2: 2, 7: 7} if how == "append" else {1: 7, 2: 2})


@pytest.mark.parametrize("how", WRITES)
def test_rows_that_others_change_just_before_stop_the_table(
    how: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = driver(place)
    assert not made.has(7)
    made.accept()
    between(monkeypatch, lambda: None)
    DeltaTable(str(place)).delete("k = 1")
    with pytest.raises(TableStopped, match="t is not as the mirror left it: DELETE in version"):
        WRITES[how](made, 7)
    assert driver(place).rows().to_pylist() == []


@pytest.mark.parametrize("how", WRITES)
def test_a_log_that_was_put_back_gets_no_gap(how: str, place: Path) -> None:
    made = driver(place)
    made.append(pa.table({"k": [2], "v": [2]}, schema=ROWS), 2)
    newest = max((place / "_delta_log").glob("*.json"))
    newest.unlink()
    with pytest.raises(TableStopped, match="it is older than the checkpoint says"):
        WRITES[how](made, 7)
    assert not newest.exists()
    assert driver(place).rows().to_pylist() == [{"k": 1, "v": 0}]


def test_a_driver_that_is_never_first_gives_up(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = driver(place)
    assert not made.has(7)
    monkeypatch.setattr(delta_tables, "_MOST_ATTEMPTS", 2)
    monkeypatch.setattr(TableLog, "put", lambda *_: False)
    with pytest.raises(TargetUnavailable):
        WRITES["append"](made, 7)
