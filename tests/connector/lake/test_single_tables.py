"""One table and its target: columns that change, tables that stop alone, batches that do nothing."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.lake.batches_by_hand import COLUMNS, ORDERS, Columns, Mirrored
from harness.lake.mirroring import overwrite
from harness.lake.rows_of_batches import Change, batch_row, end_at
from informix_capture_client.errors import DataLoss
from informix_cdc.lake.identity import stopped_tables
from informix_checkpoints.table_states import SnapshotState, TableState


@pytest.fixture
def mirrored(tmp_path: Path) -> Iterator[Mirrored]:
    made = Mirrored(tmp_path)
    made.orders(
        ("truncate", 1, None),
        ("insert", 1, {"id": 1, "note": "a"}),
        ("insert", 1, {"id": 2, "note": None}),
        is_snapshot=True,
    )
    yield made
    made.mirror.close()


def test_key_columns_are_not_null_and_types_are_exact(mirrored: Mirrored) -> None:
    found = pa.schema(mirrored.table().schema().to_arrow())
    assert found == pa.schema([pa.field("id", pa.int32(), nullable=False), ("note", pa.string())])
    assert mirrored.table().metadata().description == "informix.orders of Informix"


def test_a_column_that_was_added_is_null_in_rows_of_before(mirrored: Mirrored) -> None:
    columns = {**COLUMNS, "priority": pa.int16(), "at": pa.timestamp("us")}
    mirrored.orders(("insert", 150, {"id": 3, "note": "c", "priority": 7, "at": None}), columns=columns)
    assert mirrored.rows() == [
        {"id": 1, "note": "a", "priority": None, "at": None},
        {"id": 2, "note": None, "priority": None, "at": None},
        {"id": 3, "note": "c", "priority": 7, "at": None},
    ]
    assert mirrored.control() == [(ORDERS, "mirrored"), (ORDERS, "mirrored")]
    # Delta Lake refuses a table with NOT NULL and version 7 that does not list the feature
    assert "invariants" in (mirrored.table().protocol().writer_features or [])


WIDER = [
    (pa.int16(), pa.int32(), 7, 100_000),
    (pa.int16(), pa.int64(), 7, 1 << 40),
    (pa.int32(), pa.int64(), -7, 1 << 40),
    (pa.float32(), pa.float64(), 1.5, 1e300),
    (pa.decimal128(5, 2), pa.decimal128(9, 4), Decimal("1.25"), Decimal("12345.6789")),
]


@pytest.mark.parametrize("keep", ["current", "history", "changes"])
@pytest.mark.parametrize(("old", "new", "small", "large"), WIDER, ids=lambda value: str(value))
def test_a_wider_column_keeps_the_rows_of_before(
    keep: str, old: pa.DataType, new: pa.DataType, small: object, large: object, tmp_path: Path
) -> None:
    made = Mirrored(tmp_path, keep=keep)
    made.orders(("insert", 10, {"id": 1, "v": small}), columns={"id": pa.int32(), "v": old})
    made.orders(("insert", 150, {"id": 2, "v": large}), columns={"id": pa.int32(), "v": new})
    assert [(row["id"], row["v"]) for row in made.rows()] == [(1, small), (2, large)]
    assert pa.schema(made.table().schema().to_arrow()).field("v").type == new
    made.mirror.close()


STOPPING: list[tuple[str, Columns, dict[str, Any]]] = [
    ("column note was dropped or renamed", {"id": pa.int32(), "remark": pa.string()}, {"remark": "x"}),
    ("column note was string and is int32", {"id": pa.int32(), "note": pa.int32()}, {"note": 1}),
    ("column id was int32 and is int16", {"id": pa.int16(), "note": pa.string()}, {"note": "x"}),
]


@pytest.mark.parametrize(("says", "columns", "values"), STOPPING, ids=lambda value: str(value)[:20])
def test_a_table_that_cannot_go_on_stops_alone_and_says_why(
    says: str, columns: Columns, values: dict[str, Any], mirrored: Mirrored
) -> None:
    before = mirrored.rows()
    tables = (ORDERS, "informix.items")
    other = batch_row("informix.items", COLUMNS, [("insert", 150, {"id": 9, "note": "i"})])
    altered = batch_row(ORDERS, columns, [("insert", 150, {"id": 3, **values})])
    mirrored.batch(altered, other, tables=tables)
    assert mirrored.rows() == before
    assert [row["id"] for row in mirrored.rows("items")] == [9]
    assert says in mirrored.batches[-1].stopped[ORDERS]
    assert "informix-cdc resync informix.orders" in mirrored.batches[-1].stopped[ORDERS]
    assert (ORDERS, "stopped") in mirrored.control()
    mirrored.restart()  # it stays so
    fits = batch_row(ORDERS, COLUMNS, [("delete", 250, {"id": 1, "note": "a"})])
    mirrored.batch(fits, tables=tables)
    assert mirrored.rows() == before
    assert ORDERS in mirrored.batches[-1].stopped


def test_a_stopped_table_goes_on_where_its_rows_are_read_again(mirrored: Mirrored) -> None:
    columns = {"id": pa.int64(), "remark": pa.string()}
    mirrored.orders(("insert", 150, {"id": 3, "remark": "x"}), columns=columns)
    assert ORDERS in mirrored.batches[-1].stopped
    mirrored.batch(tables=())  # it was taken out
    mirrored.orders(
        ("truncate", 350, None),
        ("insert", 350, {"id": 3, "remark": "x"}),
        columns=columns,
        is_snapshot=True,
    )
    assert mirrored.rows() == [{"id": 3, "remark": "x"}]
    assert not mirrored.batches[-1].stopped
    assert [status for _, status in mirrored.control()] == ["mirrored", "stopped", "left", "mirrored"]


def test_schema_change_fail_stops_a_table_that_gets_a_column(tmp_path: Path) -> None:
    made = Mirrored(tmp_path, schema_change="fail")
    made.orders(("insert", 10, {"id": 1, "note": "a"}))
    made.orders(
        ("insert", 150, {"id": 2, "note": "b", "more": 1}), columns={**COLUMNS, "more": pa.int32()}
    )
    assert "column more was added" in made.batches[-1].stopped[ORDERS]
    assert made.rows() == [{"id": 1, "note": "a"}]
    made.mirror.close()


def test_a_table_without_a_key_stops_unless_changes_are_kept(tmp_path: Path) -> None:
    made = Mirrored(tmp_path, tables={"informix.log": {"keep": "changes"}})
    row = {"id": 1, "note": "a"}
    made.batch(
        batch_row(ORDERS, COLUMNS, [("insert", 10, row)], key=()),
        batch_row("informix.log", COLUMNS, [("insert", 10, row), ("insert", 10, row)], key=()),
        tables=(ORDERS, "informix.log"),
    )
    assert "its rows cannot be identified" in made.batches[-1].stopped[ORDERS]
    assert [each["id"] for each in made.rows("log")] == [1, 1]
    made.mirror.close()


def test_two_tables_that_would_have_one_target_do_not_mix(mirrored: Mirrored) -> None:
    changes: list[Change] = [("insert", 150, {"id": 9, "note": "of joe"})]
    mirrored.batch(batch_row("joe.orders", COLUMNS, changes), tables=(ORDERS, "joe.orders"))
    assert "its target orders belongs to informix.orders" in mirrored.batches[-1].stopped["joe.orders"]
    assert [row["id"] for row in mirrored.rows()] == [1, 2]


@pytest.mark.only_in_all
def test_what_changes_nothing_makes_no_version(mirrored: Mirrored) -> None:
    version = mirrored.table().version()
    mirrored.orders(("insert", 150, {"id": 3, "note": "c"}), ("delete", 150, {"id": 3, "note": "c"}))
    assert mirrored.table().version() == version
    mirrored.batch()
    assert mirrored.table().version() == version
    assert mirrored.batches[-1].changes == {}
    mirrored.orders(("truncate", 250, None))
    emptied = mirrored.table().version()
    mirrored.orders(("truncate", 350, None))
    assert (emptied, mirrored.table().version()) == (version + 1, emptied)


def test_a_history_has_no_versions_without_a_difference(tmp_path: Path) -> None:
    made = Mirrored(tmp_path, keep="history")
    made.orders(("truncate", 1, None), ("insert", 1, {"id": 1, "note": "a"}), is_snapshot=True)
    for number in (2, 3):  # before their chunk is read
        row = {"id": number, "note": "a"}
        made.orders(("update_preimage", 150, row), ("update_postimage", 150, {**row, "note": "b"}))
    chunk: list[Change] = [
        ("insert", 250, {"id": number, "note": note})
        for number, note in ((2, "b"), (3, "c"), (4, None))
    ]
    made.orders(*chunk, is_snapshot=True)
    version = made.table().version()
    same = {"id": 4, "note": None}
    made.orders(("update_preimage", 350, same), ("update_postimage", 350, same))
    made.orders(("insert", 360, {"id": 4, "note": None}), is_snapshot=True)
    assert made.table().version() == version
    found = [(row["id"], row["note"], row["_valid_from"], row["_valid_to"]) for row in made.rows()]
    assert sorted(found, key=lambda row: (row[0], row[2])) == [
        (1, "a", 1, None),
        (2, "b", 150, None),
        (3, "b", 150, 250),
        (3, "c", 250, None),
        (4, None, 250, None),
    ]
    made.mirror.close()


KEEPS = [("current", "history"), ("history", "current"), ("changes", "history")]


@pytest.mark.parametrize(("before", "after"), KEEPS)
def test_a_target_that_keeps_something_else_is_left_as_it_is(
    before: str, after: str, tmp_path: Path
) -> None:
    made = Mirrored(tmp_path, tables={ORDERS: {"keep": before}})
    made.orders(("insert", 10, {"id": 1, "note": "a"}))
    rows = made.rows()
    changed = Mirrored(tmp_path, tables={ORDERS: {"keep": after}})
    changed.number = made.number
    changed.orders(("truncate", 150, None), ("insert", 150, {"id": 2, "note": "b"}))
    assert "was created with another setting" in changed.batches[-1].stopped[ORDERS]
    assert changed.rows() == rows
    for each in (made, changed):
        each.mirror.close()


def test_a_changed_key_is_a_row_that_goes_and_one_that_comes(mirrored: Mirrored) -> None:
    one, two = {"id": 1, "note": "a"}, {"id": 2, "note": None}
    swapped: list[Change] = [
        ("update_preimage", 150, one),
        ("update_postimage", 150, {**one, "id": 9}),
        ("update_preimage", 150, two),
        ("update_postimage", 150, {**two, "id": 1}),
        ("update_preimage", 150, {**one, "id": 9}),
        ("update_postimage", 150, {**one, "id": 2}),
    ]
    mirrored.orders(*swapped)
    assert mirrored.rows() == [{"id": 1, "note": None}, {"id": 2, "note": "a"}]


def test_rows_of_a_snapshot_are_appended_and_none_comes_twice(mirrored: Mirrored) -> None:
    def operations() -> list[str]:
        return [each["operation"] for each in reversed(mirrored.table().history())]

    mirrored.orders(("insert", 2, {"id": 5, "note": "e"}), is_snapshot=True)
    assert operations()[-1] == "WRITE"
    mirrored.orders(("insert", 250, {"id": 6, "note": "f"}))
    mirrored.orders(("insert", 251, {"id": 7, "note": "g"}), is_snapshot=True)
    assert operations()[-2:] == ["MERGE", "MERGE"]
    mirrored.restart()  # which does not know where the rows are from
    mirrored.orders(("insert", 252, {"id": 8, "note": "h"}), is_snapshot=True)
    assert operations()[-1] == "MERGE"
    assert [row["id"] for row in mirrored.rows()] == [1, 2, 5, 6, 7, 8]


def test_a_table_that_leaves_is_recorded_once(mirrored: Mirrored) -> None:
    mirrored.batch(tables=())
    mirrored.batch(tables=())
    assert mirrored.control() == [(ORDERS, "mirrored"), (ORDERS, "left")]


def again(made: Mirrored, **settings: Any) -> Mirrored:
    """Return a mirror of another process, on the same checkpoint."""
    made.mirror.close()
    found = Mirrored(made.folder, **settings)
    found.number = made.number
    return found


NEXT: Change = ("insert", 150, {"id": 9, "note": "i"})


def test_a_target_with_another_name_would_lack_rows(mirrored: Mirrored) -> None:
    changed = again(mirrored, tables={ORDERS: {"name": "bestellungen"}})
    changed.orders(NEXT)
    assert "was mirrored into orders" in changed.batches[-1].stopped[ORDERS]
    assert not (changed.folder / "lake" / "bestellungen").exists()
    changed.mirror.close()


def test_a_target_that_was_removed_would_lack_rows(mirrored: Mirrored) -> None:
    shutil.rmtree(mirrored.folder / "lake" / "orders")
    changed = again(mirrored)
    changed.orders(NEXT)
    assert "no longer exists" in changed.batches[-1].stopped[ORDERS]
    changed.mirror.close()


def test_a_lake_that_was_removed_is_not_begun_again(mirrored: Mirrored) -> None:
    shutil.rmtree(mirrored.folder / "lake")
    with pytest.raises(DataLoss, match=r"/lake has no mirror, but the checkpoint .* has written one"):
        again(mirrored)


def test_a_table_whose_rows_were_read_before_it_was_mirrored_stops(mirrored: Mirrored) -> None:
    mirrored.number += 1
    end = end_at(200, ORDERS, "informix.items")
    done = {"informix.items": TableState("d", snapshot=SnapshotState(rows=2, is_done=True))}
    rows = [batch_row("informix.items", COLUMNS, [NEXT])]
    mirrored.mirror.apply(rows, mirrored.number, replace(end, tables={**(end.tables or {}), **done}))
    assert "its rows were read before" in mirrored.batches[-1].stopped["informix.items"]


def test_a_table_that_comes_back_without_its_rows_stops(mirrored: Mirrored) -> None:
    mirrored.batch(tables=())
    mirrored.orders(NEXT)
    assert "had left the stream" in mirrored.batches[-1].stopped[ORDERS]
    assert [row["id"] for row in mirrored.rows()] == [1, 2]


@pytest.mark.only_in_all
def test_what_comes_before_a_table_is_read_again_is_not_applied(mirrored: Mirrored) -> None:
    mirrored.batch(tables=())
    mirrored.number += 1
    rows = [batch_row(ORDERS, COLUMNS, [NEXT])]
    mirrored.mirror.apply(rows, mirrored.number, end_at(300, ORDERS, loading=[ORDERS]))
    assert [row["id"] for row in mirrored.rows()] == [1, 2]
    assert not mirrored.batches[-1].stopped
    mirrored.orders(("truncate", 350, None), ("insert", 350, {"id": 9, "note": "i"}), is_snapshot=True)
    assert [row["id"] for row in mirrored.rows()] == [9]
    assert [status for _, status in mirrored.control()] == ["mirrored", "left", "mirrored"]


def test_a_table_that_no_mirror_has_made_is_left_as_it_is(mirrored: Mirrored) -> None:
    place = f"{mirrored.folder}/lake/items"
    write_deltalake(place, pa.table({"other": ["precious"]}))
    rows = batch_row("informix.items", COLUMNS, [("truncate", 150, None)], is_snapshot=True)
    mirrored.batch(rows, tables=(ORDERS, "informix.items"))
    assert "was not created by a mirror" in mirrored.batches[-1].stopped["informix.items"]
    assert pa.table(DeltaTable(place).scan().read_all()).to_pylist() == [{"other": "precious"}]


ODD = [
    *("informix._informix_cdc_tables", 'informix."_Informix_CDC_batches"', "informix.checkpoints"),
    *("informix._delta_log", 'informix."_SPARK_METADATA"', 'informix."../x"', 'informix." "'),
]


@pytest.mark.parametrize("table", ODD)
def test_a_table_whose_name_can_be_no_target_stops(table: str, mirrored: Mirrored) -> None:
    mirrored.batch(batch_row(table, COLUMNS, [NEXT]), tables=(ORDERS, table))
    assert "its target would be named" in mirrored.batches[-1].stopped[table]
    assert sorted(path.name for path in mirrored.folder.iterdir()) == ["checkpoint", "lake"]


def test_columns_that_differ_by_case_or_have_names_of_ours_stop_their_table(mirrored: Mirrored) -> None:
    for number, name in enumerate(["Note", "__informix_cdc_gone"]):
        table = f"informix.t{number}"
        columns = {**COLUMNS, name: pa.int32()}
        row = {"id": 1, "note": "a", name: 1}
        mirrored.batch(batch_row(table, columns, [("insert", 150, row)]), tables=(ORDERS, table))
        assert table in mirrored.batches[-1].stopped


@pytest.mark.parametrize("settings", [{"keep": "history"}, {"deletes": "soft"}])
def test_a_reload_brings_a_stopped_history_back_and_keeps_what_it_had(
    settings: dict[str, str], tmp_path: Path
) -> None:
    made = Mirrored(tmp_path, **settings)
    made.orders(("insert", 10, {"id": 1, "note": "a"}))
    columns = {"id": pa.int32(), "remark": pa.string()}
    made.orders(("insert", 150, {"id": 2, "remark": "b"}), columns=columns)
    assert ORDERS in made.batches[-1].stopped
    made.batch(tables=())
    made.orders(
        ("truncate", 350, None),
        ("insert", 350, {"id": 2, "remark": "b"}),
        columns=columns,
        is_snapshot=True,
    )
    assert not made.batches[-1].stopped
    assert [(row["id"], row["note"], row["remark"]) for row in made.rows()] == [
        (1, "a", None),
        (2, None, "b"),
    ]
    made.mirror.close()


def test_a_reload_in_the_same_batch_as_a_truncate_is_seen(mirrored: Mirrored) -> None:
    columns = {"id": pa.int64(), "remark": pa.string()}
    mirrored.orders(("insert", 150, {"id": 3, "remark": "x"}), columns=columns)
    snapshot = batch_row(ORDERS, columns, [("truncate", 250, None)], is_snapshot=True)
    later = batch_row(
        ORDERS, columns, [("truncate", 251, None), ("insert", 252, {"id": 4, "remark": "y"})]
    )
    mirrored.batch(snapshot, later)
    assert not mirrored.batches[-1].stopped
    assert mirrored.rows() == [{"id": 4, "remark": "y"}]


def test_a_batch_that_is_still_written_when_the_next_query_begins_comes_once(tmp_path: Path) -> None:
    made = Mirrored(tmp_path, keep="changes")
    made.orders(("insert", 10, {"id": 1, "note": "a"}))
    other = again(made, keep="changes")
    rows, end = [batch_row(ORDERS, COLUMNS, [NEXT])], end_at(200, ORDERS)
    both = [
        threading.Thread(target=each.apply, args=(rows, 2, end)) for each in (made.mirror, other.mirror)
    ]
    made.mirror._pool = ThreadPoolExecutor(1)
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert [row["id"] for row in made.rows()] == [1, 9]
    other.mirror.close()
    made.mirror.close()


def with_feature(made: Mirrored) -> None:
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": []}
    entry = {"protocol": {**protocol, "writerFeatures": ["rowTracking", "invariants"]}}
    version = made.table().version() + 1
    (made.folder / f"lake/orders/_delta_log/{version:020}.json").write_text(json.dumps(entry))


def without_files(made: Mirrored) -> None:
    for path in (made.folder / "lake/orders").glob("*.parquet"):
        path.unlink()


REFUSALS: dict[str, Callable[[Mirrored], object]] = {
    "a CHECK constraint": lambda made: made.table().alter.add_constraint(
        {"short": "note IS NULL OR note <> 'a secret'"}
    ),
    "is append-only": lambda made: made.table().alter.set_table_properties(
        {"delta.appendOnly": "true"}
    ),
    "features that delta-rs cannot write: RowTracking": with_feature,
    "files of its target are missing": without_files,
}


@pytest.mark.parametrize(("why", "change"), REFUSALS.items())
def test_a_target_that_refuses_writes_stops_alone(
    why: str, change: Callable[[Mirrored], object], mirrored: Mirrored
) -> None:
    others = "informix.others"
    change(mirrored)
    made = again(mirrored)
    for number in (3, 4):
        rows = [
            ("update_preimage", 150, {"id": 1, "note": "a"}),
            ("update_postimage", 150, {"id": 1, "note": "a secret"}),
        ]
        other: list[Change] = [("insert", 150, {"id": number, "note": None})]
        made.batch(
            batch_row(ORDERS, COLUMNS, rows), batch_row(others, COLUMNS, other), tables=(ORDERS, others)
        )
    stopped = made.batches[-1].stopped
    assert stopped.keys() == {ORDERS}
    assert why in stopped[ORDERS]
    assert "informix-cdc resync informix.orders" in stopped[ORDERS]
    assert stopped_tables(made.settings.checkpoint) == stopped
    assert "secret" not in stopped[ORDERS]
    assert [row["id"] for row in made.rows("others")] == [3, 4]
    made.mirror.close()


@pytest.mark.parametrize(
    ("special", "open_column"),
    [({}, ""), ({"deletes": "soft"}, "_deleted_at"), ({"keep": "history"}, "_valid_to")],
)
def test_keys_that_others_have_doubled_are_there_once_after_a_resync(
    special: dict[str, str], open_column: str, tmp_path: Path
) -> None:
    """Rows that are equal, change before the chunk or while it is read, or are gone; deleted rows."""
    made = Mirrored(tmp_path, tables={ORDERS: special})
    rows = [{"id": number, "note": "a"} for number in range(1, 7)]
    inserts: list[Change] = [("insert", 1, row) for row in rows]
    made.orders(("truncate", 1, None), *inserts, is_snapshot=True)
    made.orders(("delete", 150, rows[5]))
    stored = pa.table(made.table().scan().read_all())
    overwrite(tmp_path / "lake" / "orders", pa.concat_tables([stored, stored]))
    made.orders(
        ("resync_begin", 250, None),
        ("update_preimage", 251, rows[2]),
        ("update_postimage", 251, {"id": 3, "note": "changed"}),
        ("range_start", 252, None),
        ("insert", 252, rows[0]),
        ("insert", 252, {"id": 4, "note": "other"}),
        ("range_skip", 252, rows[1]),
        ("range_end", 252, None),
    )
    made.orders(("insert", 350, rows[5]))
    found = [row for row in made.rows() if not open_column or row[open_column] is None]
    notes = {1: "a", 2: "a", 3: "changed", 4: "other", 6: "a"}
    assert [(row["id"], row["note"]) for row in found] == [*notes.items()]
    made.mirror.close()
