"""A mirror into an object store: what it asks for, what others write meanwhile, what it refuses."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.lake.batches_by_hand import COLUMNS, ORDERS, Mirrored
from harness.lake.object_stores import ObjectStore, object_store
from harness.lake.rows_of_batches import Change, batch_row
from harness.runs.tiers import rest_in_all
from informix_capture_client.errors import TargetUnavailable
from informix_cdc.lake import maintenance
from informix_cdc.lake import settings as lake_settings
from informix_cdc.lake.delta_tables import DeltaTarget
from informix_cdc.lake.places import puts_if_absent
from informix_cdc.lake.settings import MirrorSettings
from informix_cdc.merge_on_read import TableLog, TablePlace, compaction

pytestmark = pytest.mark.slow

TABLES = ("informix.orders", "informix.items", "informix.log_2")
OTHER = pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("note", pa.string())])
Held = dict[int, str]


@pytest.fixture(scope="module")
def running() -> Iterator[ObjectStore]:
    with object_store() as store:
        yield store


@pytest.fixture
def store(running: ObjectStore) -> ObjectStore:
    running.set(ignores_conditions=False)
    return running


def mirrored(store: ObjectStore, folder: Path, **settings: Any) -> Mirrored:
    options = {"storage_options": store.options, "merge": "on-read"}
    return Mirrored(folder, **{"into": store.url(folder.name), **options, **settings})


def loaded(made: Mirrored, *tables: str, rows: int = 200) -> None:
    existing = [("insert", 1, {"id": n, "note": "a"}) for n in range(rows)]
    changes: list[Change] = [("truncate", 1, None), *existing]
    parts = [batch_row(table, COLUMNS, changes, is_snapshot=True) for table in tables]
    made.batch(*parts, tables=tables)


def changed(made: Mirrored, *tables: str) -> None:
    commit = 100 * made.number + 50
    changes: list[Change] = [
        ("update_preimage", commit, {"id": made.number, "note": "a"}),
        ("update_postimage", commit, {"id": made.number, "note": "b"}),
        ("delete", commit, {"id": 100 + made.number, "note": "a"}),
    ]
    made.batch(*(batch_row(table, COLUMNS, changes) for table in tables), tables=tables)


@pytest.mark.parametrize(
    ("settings", "puts", "looks"),
    [
        ({}, 3, 1),  # vectors, rows and the entry
        ({"keep": "changes"}, 2, 1),
    ],
    ids=["on-read", "changes"],
)
def test_a_batch_makes_the_requests_that_its_commits_need(
    settings: dict[str, str], puts: int, looks: int, store: ObjectStore, tmp_path: Path
) -> None:
    made = mirrored(store, tmp_path, **settings)
    loaded(made, *TABLES)
    for _ in range(2):
        changed(made, *TABLES)
    store.requests()
    for _ in range(3):
        changed(made, *TABLES)
        found = store.counts()
        # The table of batches gets rows and an entry; each commit looks once whether its log is there.
        assert found == {"PUT": puts * len(TABLES) + 2, "HEAD": looks * len(TABLES) + 1}
    made.mirror.close()


def test_tables_are_read_once_at_a_start(store: ObjectStore, tmp_path: Path) -> None:
    made = mirrored(store, tmp_path)
    loaded(made, *TABLES)
    for _ in range(4):
        changed(made, *TABLES)
    made.mirror.close()
    store.requests()
    made.restart()
    changed(made, *TABLES)
    entries = [
        key for method, key in store.requests() if method == "GET" and "orders/_delta_log/0" in key
    ]
    made.mirror.close()
    # The last one is asked for in vain, and the one before once more: where did its batch end?
    *older, _, _ = sorted({*entries})
    assert [entries.count(key) for key in older] == [1] * 5


@pytest.mark.parametrize("seed", rest_in_all(range(3)))
def test_rows_are_exact_beside_compaction_and_restarts(
    seed: int, store: ObjectStore, tmp_path: Path
) -> None:
    draw, made = random.Random(seed), mirrored(store, tmp_path)
    loaded(made, ORDERS, rows=20)
    held: Held = dict.fromkeys(range(20), "a")
    for number in range(1, 12):
        commit, changes = 100 * number + 50, list[Change]()
        for key in sorted(draw.sample(range(30), 6)):
            is_there, note = key in held, f"{number}"
            if is_there and draw.random() < 0.4:
                changes.append(("delete", commit, {"id": key, "note": held.pop(key)}))
                continue
            if is_there:
                changes.append(("update_preimage", commit, {"id": key, "note": held[key]}))
            kind = "update_postimage" if is_there else "insert"
            changes.append((kind, commit, {"id": key, "note": note}))
            held[key] = note
        made.orders(*changes)
        if draw.random() < 0.3:
            made.table().optimize.compact()
        if draw.random() < 0.3:
            made.mirror.close()
            made.restart()
        assert {row["id"]: row["note"] for row in made.rows()} == held
        assert len(made.rows()) == len(held)
    made.mirror.close()
    assert made.mirror.stopped == {}


def appending(target: DeltaTarget, count: int) -> None:
    for number in range(count):
        target.append(pa.table({"id": [number], "note": ["x"]}, schema=OTHER), number)


def test_no_append_is_lost_beside_compaction(store: ObjectStore, tmp_path: Path) -> None:
    place, count = store.url(f"{tmp_path.name}/t"), 15
    target = DeltaTarget(place, "informix-cdc/1", store.options)
    target.create(OTHER, "t", "")
    appends = threading.Thread(target=appending, args=(target, count))
    appends.start()
    while appends.is_alive():
        DeltaTable(place, storage_options=store.options).optimize.compact()
    appends.join()
    rows = pa.table(DeltaTable(place, storage_options=store.options).scan().read_all())
    assert sorted(rows.column("id").to_pylist()) == [*range(count)]


def test_a_store_without_conditional_writes_is_found(store: ObjectStore, tmp_path: Path) -> None:
    settings = MirrorSettings.of(
        into=store.url("probed"), checkpoint=str(tmp_path), storage_options=store.options
    )
    assert puts_if_absent(settings)
    store.set(ignores_conditions=True)
    assert not puts_if_absent(settings)


@pytest.mark.parametrize("name", ["it is", "größe", "a$b.c-d"])
def test_folders_of_tables_are_those_of_delta_rs(name: str, store: ObjectStore, tmp_path: Path) -> None:
    place = store.url(f"{tmp_path.name}/{name}")
    write_deltalake(place, pa.table({"id": [1]}), storage_options=store.options)
    assert TableLog(TablePlace(place, store.options)).at().version == 0


def test_a_store_that_is_gone_ends_the_query(tmp_path: Path) -> None:
    with object_store() as store:
        options = {**store.options, "max_retries": "0"}
        made = mirrored(store, tmp_path, storage_options=options)
        loaded(made, ORDERS)
        changed(made, ORDERS)
    with pytest.raises(TargetUnavailable, match="onnection refused"):
        changed(made, ORDERS)
    made.mirror.close()


@pytest.mark.only_in_all
def test_tables_in_a_store_are_maintained(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are compacted, and those that no version of the time that is kept needs are removed."""
    monkeypatch.setattr(lake_settings, "_LEAST_RETAINED", lake_settings.duration("1 second"))
    monkeypatch.setattr(compaction, "_MOST_OF_A_TIER", 3)
    monkeypatch.setattr(maintenance, "_CHECKPOINT_COMMITS", 5)
    made = mirrored(store, tmp_path, retain="1 second")
    found = made.mirror.maintenance
    assert found is not None
    count = 0
    while not (count >= 10 and found.done.removed > 5):
        count += 1
        made.orders(("update_postimage", 100 * count + 110, {"id": count % 7, "note": f"{count}"}))
        found.work()
    for known in found._known.values():
        known.clean_at = 0.0
    found.work()
    notes = {row["id"]: row["note"] for row in made.rows()}
    assert notes == {n % 7: str(n) for n in range(count - 6, count + 1)}
    assert found.done.replaced > found.done.files > 1
    made.mirror.close()
    made.restart()
    made.orders(("delete", 100 * made.number + 210, {"id": 0, "note": notes[0]}))
    assert len(made.rows()) == 6
    made.mirror.close()
