"""Tables of each form hold the same rows, merged on read or by the MERGE of delta-rs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from harness.lake.batches_by_hand import ORDERS, Mirrored
from harness.lake.delta_logs import rows_in
from harness.lake.rows_of_batches import Change, batch_row
from harness.runs.tiers import rest_in_all
from informix_cdc.lake import MirrorSettings, large_batches, mirrored_table
from informix_cdc.merge_on_read import compaction, table

COLUMNS = {"id": pa.int32(), "part": pa.string(), "note": pa.string(), "n": pa.int64()}
KEY = ("id", "part")
FORMS: list[dict[str, str]] = [{"keep": "history"}, {"deletes": "soft"}, {"keep": "current"}]
Held = dict[tuple[int, str], dict[str, Any]]


def changes_of(draw: random.Random, held: Held, commit: int, *, may_empty: bool) -> Iterator[Change]:
    """Yield the changes of a commit; a key may change several times in it, and change itself."""
    if may_empty and draw.random() < 0.1:
        held.clear()
        yield ("truncate", commit, None)
    for _ in range(draw.randint(1, 5)):
        key = (draw.randint(0, 12), draw.choice("ab "))
        row = {"id": key[0], "part": key[1], "note": draw.choice(["x", None, "y" * 9]), "n": commit}
        before = held.get(key)
        if before is None:
            held[key] = row
            yield ("insert", commit, row)
        elif draw.random() < 0.4:
            yield ("delete", commit, held.pop(key))
        else:
            held[key] = row
            yield ("update_preimage", commit, before)
            yield ("update_postimage", commit, row)


def batches(seed: int, count: int, *, may_empty: bool) -> Iterator[list[Change]]:
    draw, held, commit = random.Random(seed), Held(), 100
    for _ in range(count):
        found = list[Change]()
        for _ in range(draw.randint(1, 3)):
            commit += 10
            found += changes_of(draw, held, commit, may_empty=may_empty)
        yield found


def rows_of(made: Mirrored) -> list[str]:
    found = pa.table(DeltaTable(f"{made.settings.into}/orders").scan().read_all())
    return sorted(map(str, found.select(sorted(found.column_names)).to_pylist()))


def merges(place: Path) -> list[dict[str, Any]]:
    return [each for each in DeltaTable(str(place)).history() if each["operation"] == "MERGE"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: next(iter(form.values())))
@pytest.mark.parametrize("seed", rest_in_all(range(12)))
@pytest.mark.parametrize("way", ["whole", pytest.param("parts", marks=pytest.mark.only_in_all)])
def test_a_table_merged_on_read_has_the_rows_of_one_merged_on_write(
    way: str, seed: int, form: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_MOST_OF_A_TIER", 3)
    monkeypatch.setattr(table, "GROUP_ROWS", 2)
    if way == "parts":
        monkeypatch.setattr(mirrored_table, "LARGE_BYTES", 0)
        monkeypatch.setattr(large_batches, "_PART_BYTES", 200)
    made = {merge: Mirrored(tmp_path / merge, merge=merge, **form) for merge in ("on-read", "on-write")}
    for number, changes in enumerate(batches(seed, 18, may_empty=way == "whole"), 1):
        row = batch_row(ORDERS, COLUMNS, changes, key=KEY)
        for mirrored in made.values():
            mirrored.batch(row)
        if number % 3 == 0:
            maintenance = made["on-read"].mirror.maintenance
            assert maintenance is not None
            maintenance.work()
            assert rows_of(made["on-read"]) == rows_of(made["on-write"])
        if number % 10 == 0:
            made["on-read"].mirror.close()
            made["on-read"].restart()
    place, other = (Path(each.settings.into) / "orders" for each in made.values())
    assert sorted(map(str, rows_in(place))) == sorted(
        map(str, pa.table(DeltaTable(str(place)).scan().read_all()).to_pylist())
    )
    writers = {each.get("engineInfo", "").partition(" ")[0] for each in merges(place)}
    assert "informix-cdc" in writers
    assert "informix-cdc" not in {each["engineInfo"] for each in merges(other)}
    for mirrored in made.values():
        mirrored.mirror.close()


def test_open_states_that_others_have_doubled_all_end(tmp_path: Path) -> None:
    """As a MERGE would: each row that matches is updated."""
    made = Mirrored(tmp_path, merge="on-read", keep="history")
    made.orders(("insert", 1, {"id": 1, "note": "a"}), ("insert", 1, {"id": 2, "note": "b"}))
    made.orders(("delete", 200, {"id": 1, "note": "a"}))
    found = [(row["id"], row["_valid_from"], row["_valid_to"]) for row in made.rows()]
    assert found == [(1, 1, 200), (2, 1, None)]
    made.orders(("insert", 300, {"id": 1, "note": "c"}))
    made.orders(("delete", 400, {"id": 1, "note": "c"}), ("insert", 400, {"id": 1, "note": "d"}))
    found = sorted((row["id"], row["_valid_from"], row["_valid_to"] or 0) for row in made.rows())
    assert found == [(1, 1, 200), (1, 300, 400), (1, 400, 0), (2, 1, 0)]
    made.mirror.close()


def test_which_tables_can_be_merged_on_read() -> None:
    def found(**given: str) -> bool:
        known = MirrorSettings.of(into="/lake", checkpoint="/c", merge="on-read", **given)
        return known.merges_on_read(ORDERS, 0)

    assert found()
    assert found(keep="history")
    assert found(deletes="soft")
    assert not found(keep="changes")
    assert not found(engine="spark")


def test_a_row_that_came_and_went_in_one_batch_is_not_there(tmp_path: Path) -> None:
    made = Mirrored(tmp_path, merge="on-read", deletes="soft")
    made.orders(("insert", 1, {"id": 1, "note": "a"}))
    made.orders(
        ("insert", 210, {"id": 2, "note": "b"}),
        ("delete", 220, {"id": 2, "note": "b"}),
        ("delete", 220, {"id": 1, "note": "a"}),
    )
    assert [(row["id"], row["_deleted_at"] is None) for row in made.rows()] == [(1, False)]
    made.orders(("insert", 310, {"id": 1, "note": "c"}))
    assert [(row["id"], row["_deleted_at"] is None) for row in made.rows()] == [(1, True)]
    made.mirror.close()
