"""Batches that do not fit in memory: the same rows come out in parts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from harness.lake.batches_by_hand import ORDERS, Mirrored
from harness.lake.rows_of_batches import Change, batch_row
from harness.runs.tiers import rest_in_all
from informix_cdc.lake import large_batches, mirrored_table
from informix_cdc.lake.large_batches import mapped, parts_by_key
from informix_cdc.lake.table_changes import COMMIT, ORDINAL, TableChanges

COLUMNS = {"id": pa.int32(), "note": pa.string(), "big": pa.decimal128(32, 4), "bytes": pa.binary()}
Held = dict[int, dict[str, Any]]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything be large."""
    monkeypatch.setattr(mirrored_table, "LARGE_BYTES", 0)
    monkeypatch.setattr(large_batches, "_PART_BYTES", 600)


def row_of(key: int, draw: random.Random) -> dict[str, Any]:
    note = draw.choice([None, "", "x" * draw.randint(1, 30)])
    return {"id": key, "note": note, "big": draw.choice([None, draw.randint(0, 99)]), "bytes": b"b"}


def drawn(held: Held, commit: int, draw: random.Random) -> list[Change]:
    """Return changes of some commits, and apply them to what is held."""
    changes: list[Change] = []
    for _ in range(draw.randint(1, 15)):
        key, commit = draw.randint(0, 30), commit + draw.choice([0, 1])
        if key not in held:
            held[key] = row_of(key, draw)
            changes.append(("insert", commit, held[key]))
        elif draw.random() < 0.3:
            changes.append(("delete", commit, held.pop(key)))
        elif draw.random() < 0.3:  # UPDATE ... SET id = id + 1, of the last row first or last
            commit += 1
            moved = {old + 1: {**row, "id": old + 1} for old, row in held.items()}
            for old in sorted(held, reverse=draw.random() < 0.5):
                changes.append(("update_preimage", commit, held[old]))
                changes.append(("update_postimage", commit, moved[old + 1]))
            held.clear()
            held.update(moved)
            commit += 1
        else:
            changes.append(("update_preimage", commit, held[key]))
            held[key] = row_of(key, draw)
            changes.append(("update_postimage", commit, held[key]))
    return changes


@pytest.mark.parametrize("seed", rest_in_all(range(12)))
def test_a_table_has_the_rows_that_a_dict_has(seed: int, tmp_path: Path) -> None:
    draw, held = random.Random(seed), Held()
    made = Mirrored(tmp_path, merge="on-read")
    made.orders(
        ("truncate", 1, None), ("insert", 1, row_of(99, draw)), columns=COLUMNS, is_snapshot=True
    )
    made.orders(("delete", 110, {**row_of(99, draw)}), columns=COLUMNS)
    for number in range(2, 9):
        changes = drawn(held, 100 * number + 10, draw)
        pieces = [changes[: len(changes) // 2], changes[len(changes) // 2 :]]
        rows = [batch_row(ORDERS, COLUMNS, piece) for piece in pieces if piece]
        made.batch(*mapped(rows, tmp_path / "files"))
        found = made.rows()
        assert {row["id"]: row for row in found} == held
        assert len(found) == len(held)
    assert made.mirror.stopped == {}
    made.mirror.close()
    assert [*(tmp_path / "files").iterdir()] == []


def test_parts_have_all_changes_of_their_keys_in_order(tmp_path: Path) -> None:
    draw, held = random.Random(1), Held()
    row = batch_row(ORDERS, COLUMNS, [change for n in range(9) for change in drawn(held, 9 * n, draw)])
    changes = TableChanges.of([row["arrow"]])
    parts = [*parts_by_key(changes, ["id"], tmp_path)]
    assert len(parts) > 3
    keys = [set(part.rows.column("id").to_pylist()) for part in parts]
    assert sum(map(len, keys)) == len(set().union(*keys)), "a key is in two parts"
    for part in parts:
        ordinals = np.asarray(part.about.column(ORDINAL).to_numpy())
        assert (np.diff(ordinals) > 0).all()
        at = pa.array(ordinals)
        assert part.rows.equals(changes.rows.take(at).combine_chunks())
        assert part.about.column(COMMIT).equals(changes.about.column(COMMIT).take(at))
    assert sum(map(len, parts)) == len(changes)
