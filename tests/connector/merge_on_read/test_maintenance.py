"""Compaction while others merge, and the removal of what no version needs."""

from __future__ import annotations

import json
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake

from connector.merge_on_read.test_merges import APPLICATION, SCHEMA, Key, created, opened, read, rows_of
from harness.lake.delta_logs import rows_in
from harness.runs.tiers import rest_in_all
from informix_cdc.merge_on_read import (
    CommitOf,
    IndexedFile,
    TableLog,
    TablePlace,
    clean_log,
    compact,
    compaction,
    files_to_rewrite,
    remove_unused_files,
    rewritten,
    set_properties,
)

OURS = CommitOf("test", APPLICATION, None, "")


def schema_of(log: TableLog) -> pa.Schema:
    return pa.schema(Schema.from_json(log.state.metadata["schemaString"]).to_arrow())


@pytest.fixture
def low_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compact three files of a size; a chunk has some rows."""
    monkeypatch.setattr(compaction, "_MOST_OF_A_TIER", 3)
    monkeypatch.setattr(compaction, "_CHUNK_BYTES", 100)


@pytest.mark.usefixtures("low_tiers")
@pytest.mark.parametrize("seed", rest_in_all(range(30)))
def test_rows_are_exact_while_files_are_rewritten(seed: int, tmp_path: Path) -> None:
    """A file is written, then merges come, then its commit; sometimes others compact as well."""
    draw = random.Random(seed)
    place, held, done = created(tmp_path / "t"), dict[Key, int](), 0
    one, other = opened(place, tmp_path / "a"), opened(place, tmp_path / "b")
    pending = list[IndexedFile]()
    for number in range(1, 46):
        keys = [(draw.randint(0, 30), draw.choice("xy")) for _ in range(draw.randint(1, 6))]
        values = {key: None if draw.random() < 0.4 else draw.randint(0, 9) for key in keys}
        gone = np.array([each is None for each in values.values()], bool)
        draw.choice([one, one, one, other]).merge(rows_of(dict(values)), gone, APPLICATION, number)
        held = {k: v for k, v in {**held, **values}.items() if v is not None}
        one.log.refresh()
        if draw.random() < 0.05:
            DeltaTable(place.name).optimize.compact()
        if pending and draw.random() < 0.4:
            one.log.refresh()
            done += one.table.compact(pending.pop(), OURS)
        elif not pending and draw.random() < 0.4 and (chosen := files_to_rewrite(one.log.state)):
            pending.append(one.table.rewritten(chosen, SCHEMA))
        if number % 3 == 0:
            assert read(place) == held
    assert done > 2


@pytest.mark.usefixtures("low_tiers")
def test_rows_that_went_meanwhile_are_carried_over(tmp_path: Path) -> None:
    place, one = created(tmp_path / "t"), opened(created(tmp_path / "t"), tmp_path / "a")
    none = np.zeros(2, bool)
    for number in range(3):
        one.merge(rows_of({(number, "x"): 1, (number, "y"): 1}), none, APPLICATION, number)
    chosen = files_to_rewrite(one.log.state)
    assert chosen is not None
    new = one.table.rewritten(chosen, SCHEMA)
    one.merge(rows_of({(0, "x"): 2}), np.zeros(1, bool), APPLICATION, 3)  # one row of a file
    one.merge(rows_of({(1, "x"): 2, (1, "y"): 2}), np.ones(2, bool), APPLICATION, 4)  # all rows of one
    assert one.table.compact(new, OURS)
    assert len(new.file.rows_gone) == 3
    assert read(place) == {(0, "x"): 2, (0, "y"): 1, (2, "x"): 1, (2, "y"): 1}
    assert len(one.log.state.files) == 2
    one.merge(rows_of({(0, "y"): 7, (2, "x"): 7}), np.zeros(2, bool), APPLICATION, 5)
    assert read(place) == {(0, "x"): 2, (0, "y"): 7, (2, "x"): 7, (2, "y"): 1}


@pytest.mark.usefixtures("low_tiers")
def test_it_is_given_up_if_rows_have_moved(tmp_path: Path) -> None:
    place, one = created(tmp_path / "t"), opened(created(tmp_path / "t"), tmp_path / "a")
    for number in range(3):
        one.merge(rows_of({(number, "x"): 1}), np.zeros(1, bool), APPLICATION, number)
    chosen = files_to_rewrite(one.log.state)
    assert chosen is not None
    new = one.table.rewritten(chosen, SCHEMA)
    DeltaTable(place.name).optimize.compact()
    one.log.refresh()
    before = one.log.state.version
    assert not one.table.compact(new, OURS)
    assert one.log.state.version == before
    assert read(place) == {(0, "x"): 1, (1, "x"): 1, (2, "x"): 1}


@pytest.mark.usefixtures("low_tiers")
def test_a_file_that_was_indexed_for_another_key_is_given_up(tmp_path: Path) -> None:
    place, one = created(tmp_path / "t"), opened(created(tmp_path / "t"), tmp_path / "a")
    for number in range(3):
        one.merge(rows_of({(number, "x"): 1}), np.zeros(1, bool), APPLICATION, number)
    chosen = files_to_rewrite(one.log.state)
    assert chosen is not None
    other = opened(place, tmp_path / "b")
    other.log.refresh()
    assert not other.table.compact(one.table.rewritten(chosen, SCHEMA), OURS)
    assert other.log.state.version == one.log.state.version


@pytest.mark.usefixtures("low_tiers")
def test_tables_merged_on_write_are_compacted(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    for number in range(4):
        rows = pa.table({"k": [number], "t": [f"{number}" * 40]})
        write_deltalake(place, rows, mode="append", schema_mode="merge")
    write_deltalake(place, pa.table({"k": [9], "n": [1.5]}), mode="append", schema_mode="merge")
    log = TableLog(TablePlace(place))
    log.refresh()
    chosen = files_to_rewrite(log.state)
    assert chosen is not None
    new = rewritten(log.place, chosen, schema_of(log))
    assert compact(log, new, OURS)
    assert len(log.state.files) == 1
    rows = sorted(rows_in(tmp_path / "t"), key=lambda row: row["k"])
    assert [(row["k"], row["n"]) for row in rows] == [(n, None) for n in range(4)] + [(9, 1.5)]
    stats = json.loads(next(iter(log.state.files.values()))["stats"])
    assert (stats["numRecords"], stats["minValues"]["k"], stats["maxValues"]["k"]) == (5, 0, 9)
    assert stats["nullCount"] == {"k": 0, "t": 1, "n": 4}
    assert "n" in stats["minValues"]


def aged(folder: Path, days: float) -> None:
    """Let all files look as if they were written some days ago."""
    then = datetime.now(UTC).timestamp() - days * 86400
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def in_the_past(place: Path, days: float) -> None:
    """Let all removals of the log look as if they happened some days ago."""
    for path in (place / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] -= int(days * 86400_000)
        path.write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.usefixtures("low_tiers")
def test_files_that_no_version_since_a_time_names_are_removed(tmp_path: Path) -> None:
    """Live vectors stay, however old; so do files that went a while ago, and files of others."""
    folder = tmp_path / "t"
    place, one = created(folder), opened(created(folder), tmp_path / "a")
    for number in range(1, 7):  # each takes one row of the file before, and leaves one
        values: dict[Any, Any] = {(0, "x"): number, (number, "x"): number}
        one.merge(rows_of(values), np.zeros(2, bool), APPLICATION, number)
    lost = rows_of({(1, "x"): None, (2, "x"): None})  # two files, and their vectors
    one.merge(lost, np.ones(2, bool), APPLICATION, 7)
    in_the_past(folder, 30)
    compacted(place, one)
    one.merge(rows_of({(0, "x"): 50}), np.zeros(1, bool), APPLICATION, 8)  # a vector of the new file
    held, live = read(place), TableLog(place).at().files
    orphans = [folder / f"part-{uuid4()}.parquet", folder / f"deletion_vector_{uuid4()}.bin"]
    others = [folder / "_index" / "a.parquet", folder / "notes.txt"]
    others[0].parent.mkdir()
    for path in [*orphans, *others]:
        path.write_bytes(b"-")
    aged(folder, 30)
    others.append(folder / f"part-{uuid4()}.parquet")  # just written, and not in the log yet
    others[-1].write_bytes(b"-")
    kept_since = datetime.now(UTC) - timedelta(days=7)
    assert remove_unused_files(place, kept_since, lambda: checkpointed(place)).files == 6
    left = files_below(folder)
    assert not left.intersection(orphans)
    assert left.issuperset([*others, *(folder / path for path in live)])
    assert read(place) == held
    assert remove_unused_files(place, kept_since, lambda: checkpointed(place)).files == 0
    # What the compaction has replaced was there until just now: an earlier version can be read.
    before = TableLog(place).at(one.log.state.version - 2).files
    assert {folder / path for path in before} <= left


def compacted(place: TablePlace, one: Any) -> None:
    one.log.refresh()
    chosen = files_to_rewrite(TableLog(place).at())
    assert chosen is not None
    assert one.table.compact(one.table.rewritten(chosen, SCHEMA), OURS)


def checkpointed(place: TablePlace) -> int:
    table = DeltaTable(place.name)
    table.create_checkpoint()
    return table.version()


def test_a_log_keeps_what_a_version_needs(tmp_path: Path) -> None:
    """Entries before the last checkpoint of the time go, and most checkpoints after it."""
    folder = tmp_path / "t"
    place, one = created(folder), opened(created(folder), tmp_path / "a")
    log, now = folder / "_delta_log", datetime.now(UTC)
    rows = dict[int, dict[Key, int]]()
    for number in range(1, 101):
        one.merge(rows_of({(number % 7, "x"): number}), np.zeros(1, bool), APPLICATION, number)
        rows[one.log.state.version] = read(place)
        if number % 2 == 0:
            DeltaTable(place.name).create_checkpoint()
        then = now.timestamp() - (100 - number) * 3600
        for path in log.iterdir():
            if path.name[:20] == f"{one.log.state.version:020}":
                os.utime(path, (then, then))
    assert clean_log(place, now - timedelta(days=30), now, 101).files == 0
    before = now - timedelta(hours=40)
    some = clean_log(place, before, now, 20).files
    assert TableLog(place).at(20).version == 20
    assert some + clean_log(place, before, now, 101).files in range(94, 100)
    assert clean_log(place, before, now, 101).files == 0
    entries = sorted(int(path.stem) for path in log.glob("*.json"))
    assert entries[0] in (57, 58, 59)
    assert entries[-1] == one.log.state.version
    assert 10 <= len([*log.glob("*.checkpoint.parquet")]) <= 14
    for version in range(61, one.log.state.version + 1):
        state = TableLog(place).at(version)
        assert state.numbers[APPLICATION] == version
        found = pa.table(DeltaTable(place.name, version).scan().read_all()).to_pylist()
        assert {(row["k"], row["t"]): row["v"] for row in found} == rows[version]


def test_tombstones_are_counted_from_entries_and_checkpoints(tmp_path: Path) -> None:
    place, one = created(tmp_path / "t"), opened(created(tmp_path / "t"), tmp_path / "a")
    for number in range(1, 20):
        one.merge(rows_of({(1, "x"): number}), np.zeros(1, bool), APPLICATION, number)
        if number == 10:
            DeltaTable(place.name).create_checkpoint()
    now = datetime.now(UTC).timestamp()
    assert one.log.state.tombstones(now - 3600) == 18
    assert TableLog(place).at().tombstones(now - 3600) == 18
    assert one.log.state.tombstones(now + 3600) == 0


def test_files_are_removed_also_if_some_are_not_there(tmp_path: Path) -> None:
    names = [f"{number}.parquet" for number in range(2500)]
    for name in names[::2]:
        (tmp_path / name).write_bytes(b"-")
    TablePlace(str(tmp_path)).remove_all(names)
    assert [*tmp_path.iterdir()] == []
    TablePlace(str(tmp_path)).remove_all([])


def test_properties_are_set_also_in_a_table_that_was_read_from_a_checkpoint(tmp_path: Path) -> None:
    """What is empty in a checkpoint is empty in the same way in the entry."""
    place = created(tmp_path / "t")
    opened(place, tmp_path / "a").merge(rows_of({(1, "x"): 1}), np.zeros(1, bool), APPLICATION, 1)
    before = DeltaTable(place.name).metadata()
    checkpointed(place)
    for entry in (tmp_path / "t" / "_delta_log").glob("*.json"):
        entry.unlink()
    log = TableLog(place)
    log.refresh()
    set_properties(log, {"a.b": "c"}, OURS)
    after = DeltaTable(place.name).metadata()
    assert after.configuration == {**before.configuration, "a.b": "c"}
    assert (after.partition_columns, after.id, after.name) == ([], before.id, before.name)
    assert read(place) == {(1, "x"): 1}
