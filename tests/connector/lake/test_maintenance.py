"""A mirror looks after its tables while batches come, and keeps what `retain` promises."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from harness.lake.batches_by_hand import COLUMNS, ORDERS, Mirrored
from harness.lake.rows_of_batches import Change, batch_row
from harness.runs.moved_clock import ReadClock
from harness.runs.tiers import rest_in_all
from informix_capture_client.errors import BadOption
from informix_cdc.lake import MirrorSettings, maintenance, settings
from informix_cdc.lake.control_tables import BATCHES, ControlTables, states_of
from informix_cdc.lake.epochs import Beginning
from informix_cdc.lake.identity import number_of
from informix_cdc.lake.maintenance import WRITTEN_BY_OTHERS, Maintenance
from informix_cdc.lake.mirrored_batch import Maintained
from informix_cdc.lake.mirroring import Mirror
from informix_cdc.lake.places import Lake
from informix_cdc.lake.settings import MOST_TOMBSTONES
from informix_cdc.lake.tables_as_of import _version, _versions
from informix_cdc.merge_on_read import TableLog, TablePlace, compaction

CUSTOMERS, ITEMS, STOCK = "informix.customers", "informix.items", "informix.stock"
KEEPS = {CUSTOMERS: {"merge": "on-write"}, ITEMS: {"keep": "history"}, STOCK: {"keep": "changes"}}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a second to be kept, and compact four files of a size."""
    monkeypatch.setattr(settings, "_LEAST_RETAINED", settings.duration("1 second"))
    monkeypatch.setattr(compaction, "_MOST_OF_A_TIER", 4)
    monkeypatch.setattr(maintenance, "_CHECKPOINT_COMMITS", 10)


def looked_after(made: Mirrored) -> Maintenance:
    found = made.mirror.maintenance
    assert found is not None
    return found


def work(made: Mirrored) -> None:
    """Do everything that is due."""
    while looked_after(made).work():
        pass


def random_changes(draw: random.Random, held: dict[int, str], commit: int) -> Iterator[Change]:
    for key in draw.sample(range(40), draw.randint(1, 4)):
        note = f"{commit} {draw.random()}"
        before = {"id": key, "note": held.get(key)}
        if key not in held:
            yield ("insert", commit, {"id": key, "note": note})
            held[key] = note
        elif draw.random() < 0.3:
            yield ("delete", commit, before)
            del held[key]
        else:
            yield ("update_preimage", commit, before)
            yield ("update_postimage", commit, {"id": key, "note": note})
            held[key] = note


def lake_of(made: Mirrored) -> tuple[Lake, ControlTables]:
    known = Beginning(made.settings, "ol_stores", "stores").folder.identity
    assert known is not None
    lake = Lake(made.settings, known.application)
    return lake, ControlTables(known.id, lake.target)


def rows_as_of(made: Mirrored, number: int) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all targets at the end of a batch, without Spark."""
    lake, control = lake_of(made)
    ends = states_of(control.batches())
    place = next(at for at, row in enumerate(ends) if row["batch"] == number)
    found = {}
    for name, (since, before) in _versions(ends, place).items():
        version, why = _version(lake.target(name), number_of(1, number), since, before)
        log = Path(made.settings.into) / name / "_delta_log"
        assert not why, (name, number, since, before, sorted(path.name for path in log.iterdir()))
        rows = pa.table(DeltaTable(f"{made.settings.into}/{name}", version).scan().read_all())
        found[name] = rows.to_pylist()
    return found


class Run:
    """Batches at random, with maintenance between them; the mirror starts again at times."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.made = Mirrored(folder, merge="on-read", retain="1 second", tables=KEEPS)
        self.held: dict[str, dict[int, str]] = {name: {} for name in (ORDERS, *KEEPS)}
        self.ends: list[tuple[float, int, dict[int, str]]] = []  # time, batch, orders
        self.total = Maintained()

    def batches(self, count: int, seconds: float) -> None:
        begun = time.time()
        while len(self.ends) < count or time.time() - begun < seconds:
            self.batch()
            if self.draw.random() < 0.3:
                work(self.made)
            if self.draw.random() < 0.05:
                self.total += looked_after(self.made).done
                self.made.mirror.close()
                self.made.restart()

    def batch(self) -> None:
        commit = 100 * (self.made.number + 1)
        rows = [
            batch_row(name, COLUMNS, [*random_changes(self.draw, self.held[name], commit)])
            for name in self.draw.sample(sorted(self.held), self.draw.randint(1, 3))
        ]
        self.made.batch(*rows, tables=tuple(self.held))
        self.ends.append((time.time(), self.made.number, dict(self.held[ORDERS])))

    def clean(self) -> None:
        for known in looked_after(self.made)._known.values():
            known.clean_at = 0.0
        work(self.made)
        self.total += looked_after(self.made).done

    def rows(self, name: str) -> dict[int, str]:
        rows = self.made.rows(name)
        return {row["id"]: row["note"] for row in rows if row.get("_valid_to") is None}


@pytest.mark.parametrize("seed", rest_in_all(range(8)))
def test_what_is_promised_can_be_read_and_the_rest_goes(seed: int, tmp_path: Path) -> None:
    run = Run(tmp_path, seed)
    run.batches(40, seconds=1.2)
    lately = sum(at >= time.time() - 1.2 for at, _, _ in run.ends)
    run.clean()
    kept_since = time.time() - 1
    for name in ("orders", "customers", "items"):
        assert run.rows(name) == run.held[f"informix.{name}"]
    promised = [each for each in run.ends if each[0] >= kept_since and each[2]]
    for _, number, orders in run.draw.sample(promised, min(len(promised), 5)):
        there = {row["id"]: row["note"] for row in rows_as_of(run.made, number)["orders"]}
        assert there == orders
    for name in ("orders", "customers", "items", "stock"):
        folder = tmp_path / "lake" / name
        live = len(TableLog(TablePlace(str(folder))).at().files)
        assert live < 30
        assert len([*folder.glob("*.*")]) <= 2 * live + 4 * lately + 4
        assert len([*(folder / "_delta_log").glob("*.json")]) <= 2 * lately + 40
    assert run.total.files < run.total.replaced
    assert run.total.removed > 10
    run.made.mirror.close()


def test_maintenance_does_what_is_due_and_no_more(tmp_path: Path) -> None:
    made = Mirrored(tmp_path, merge="on-read")
    for number in range(4):
        made.orders(("insert", number + 1, {"id": number, "note": "a"}))
    first = looked_after(made)
    assert first.work()
    assert (first.done.files, first.done.replaced) == (2, 8)  # orders and the batches
    work(made)
    version = made.table().version()
    assert not first.work()
    assert made.table().version() == version
    assert made.table().history(1)[0]["operation"] == "OPTIMIZE"
    made.orders(("insert", 9, {"id": 9, "note": "a"}))
    assert not first.work()
    made.mirror.close()


def test_off_only_writes_checkpoints_of_logs(tmp_path: Path) -> None:
    made = Mirrored(tmp_path, merge="on-read", maintain="off")
    for number in range(12):
        made.orders(("insert", number + 1, {"id": number, "note": "a"}))
    assert looked_after(made).work()
    assert not looked_after(made).work()
    assert len(TableLog(TablePlace(f"{tmp_path}/lake/orders")).at().files) == 12
    assert len([*Path(f"{tmp_path}/lake/orders/_delta_log").glob("*.checkpoint.parquet")]) == 1
    assert "delta.logRetentionDuration" not in made.table().metadata().configuration


def test_the_log_gets_checkpoints(tmp_path: Path) -> None:
    made = Mirrored(tmp_path, merge="on-read", maintain="off")
    made.orders(("insert", 1, {"id": 1, "note": "a"}))
    made.table().alter.set_table_properties({"delta.checkpointInterval": "5"})
    for number in range(2, 13):
        made.orders(("insert", number, {"id": number, "note": "a"}))
        looked_after(made).work()
    log = tmp_path / "lake" / "orders" / "_delta_log"
    found = sorted(int(path.name[:20]) for path in log.glob("*.checkpoint.parquet"))
    assert found == [5, 10]
    for entry in log.glob("*.json"):
        if int(entry.stem) < found[-1]:
            entry.unlink()  # as clean-up does
    made.mirror.close()
    made.restart()
    made.orders(("insert", 13, {"id": 13, "note": "a"}))
    assert [row["id"] for row in made.rows()] == [*range(1, 14)]
    made.mirror.close()


@pytest.mark.parametrize(
    ("maintain", "is_removed"), [("auto", False), ("all", True)], ids=["auto", "all"]
)
def test_files_of_tables_that_others_write_are_left_to_them(
    maintain: str, is_removed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Mirrored(tmp_path, merge="on-read", maintain=maintain, retain="1 second")
    made.orders(("insert", 1, {"id": 1, "note": "a"}))
    made.orders(("insert", 2, {"id": 2, "note": "a"}))
    made.table().optimize.compact()
    made.orders(("insert", 3, {"id": 3, "note": "a"}))
    work(made)
    properties = made.table().metadata().configuration
    assert properties[WRITTEN_BY_OTHERS].startswith("OPTIMIZE in version")
    made.mirror.close()
    made.restart()  # the table remembers it
    made.orders(("insert", 4, {"id": 4, "note": "a"}))
    there = {path.name for path in Path(f"{tmp_path}/lake/orders").glob("*.parquet")}
    future = datetime.now(UTC).timestamp() + 100

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.fromtimestamp(future, tz)

    monkeypatch.setattr(maintenance, "datetime", Later)
    made.mirror._began_at = datetime.fromtimestamp(future, UTC)
    work(made)
    left = {path.name for path in Path(f"{tmp_path}/lake/orders").glob("*.parquet")}
    assert bool(there - left) is is_removed
    assert [row["id"] for row in made.rows()] == [1, 2, 3, 4]
    made.mirror.close()


def test_retention_follows_the_setting_but_not_below_the_tables_own(tmp_path: Path) -> None:
    made = Mirrored(tmp_path, retain="2 days")
    made.orders(("insert", 1, {"id": 1, "note": "a"}))
    names = ("delta.deletedFileRetentionDuration", "delta.logRetentionDuration")

    def kept() -> list[str]:
        work(made)
        return [made.table().metadata().configuration[name] for name in names]

    def start_with(retain: str) -> None:
        made.mirror.close()
        made.settings = MirrorSettings.of(
            into=f"{tmp_path}/lake", checkpoint=f"{tmp_path}/checkpoint", retain=retain
        )
        made.restart()

    assert kept() == ["interval 172800 seconds"] * 2
    start_with("1 day")
    assert kept() == ["interval 86400 seconds"] * 2
    made.table().alter.set_table_properties({names[0]: "interval 30 days"})
    start_with("12 hours")
    assert kept() == ["interval 30 days", "interval 43200 seconds"]
    start_with("60 days")
    assert kept() == ["interval 5184000 seconds"] * 2
    made.mirror.close()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("interval 1 week", 604800),
        ("interval 7 days", 604800),
        ("INTERVAL 1 day 12 hours", 129600),
        ("90 seconds", 90),
    ],
)
def test_durations(text: str, seconds: int) -> None:
    assert settings.duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "interval", "interval 1 month", "7", "interval 1 day and more"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        settings.duration(text)


@pytest.mark.parametrize("retain", ["", "7", "59 seconds", "forever", 7])
def test_what_cannot_be_retained(retain: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_LEAST_RETAINED", settings.duration("1 minute"))
    with pytest.raises(BadOption, match="retain must be at least a minute"):
        MirrorSettings.of(into="/lake", checkpoint="/c", retain=retain)


def test_the_files_of_a_batch_that_is_being_written_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large batch writes files long before the entry of the log that names them."""
    made = Mirrored(tmp_path, retain="1 second")
    made.orders(("insert", 1, {"id": 1, "note": "a"}))
    work(made)
    written = tmp_path / "lake" / "orders" / "part-0.parquet"
    made.mirror._began_at = datetime.now(UTC)
    written.write_bytes(b"-")
    future = datetime.now(UTC).timestamp() + 100

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.fromtimestamp(future, tz)

    monkeypatch.setattr(maintenance, "datetime", Later)
    for known in looked_after(made)._known.values():
        known.clean_at = 0.0
    looked_after(made).work()
    assert written.exists()
    made.mirror._began_at = datetime.fromtimestamp(future, UTC)
    for known in looked_after(made)._known.values():
        known.clean_at = 0.0
    looked_after(made).work()
    assert not written.exists()
    made.mirror.close()


def test_an_error_leaves_the_table_alone_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [1000.0]
    made = Mirrored(tmp_path, merge="on-read")
    made.mirror.close()
    epoch = Beginning(made.settings, "ol_stores", "stores").begin(may_begin_epoch=False)
    made.mirror = Mirror(made.settings, epoch, made.batches.append, clock=ReadClock(lambda: now[0]))
    for number in range(4):
        made.orders(("insert", number + 1, {"id": number, "note": "a"}))

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/lake/orders")

    with monkeypatch.context() as patched:
        patched.setattr(maintenance.DeltaTarget, "to_rewrite", refused)
        work(made)
    assert "mirror_maintenance_failed" in caplog.text
    assert "Permission denied" in caplog.text
    assert not looked_after(made).work()
    now[0] += 601
    assert looked_after(made).work()
    assert looked_after(made).done.files == 2
    made.mirror.close()


def test_commits_are_spaced_as_removed_files_add_up(tmp_path: Path) -> None:
    now = [1000.0]
    made = Mirrored(tmp_path, merge="on-read", retain="7 days")
    made.mirror.close()
    epoch = Beginning(made.settings, "ol_stores", "stores").begin(may_begin_epoch=False)
    made.mirror = Mirror(made.settings, epoch, made.batches.append, clock=ReadClock(lambda: now[0]))
    found = looked_after(made)
    known = found._of("orders")
    known.tombstones, known.removals_a_commit = MOST_TOMBSTONES // 2, 20.0
    assert found.pause_before(["orders"]) == 0
    assert found.pause_before(["orders"]) == 0
    known.tombstones = MOST_TOMBSTONES * 3 // 4
    assert found.pause_before(["orders", "items"]) == pytest.approx(0.5 * 20 * 604800 / MOST_TOMBSTONES)
    known.tombstones = 2 * MOST_TOMBSTONES
    now[0] += 6 + 6
    assert found.pause_before(["orders"]) == pytest.approx(20 * 604800 / MOST_TOMBSTONES - 12 + 6.048)
    known.removals_a_commit = 1000.0
    now[0] += 1000
    assert found.pause_before(["orders"]) == 0
    assert found.pause_before(["orders"]) == 60
    assert found.pause_before(["items"]) == 0
    made.mirror.close()


def test_records_of_batches_become_one(tmp_path: Path) -> None:
    """The last version of a table that has not changed for long is kept."""
    made = Mirrored(tmp_path, tables={ITEMS: {}})
    made.batch(
        batch_row(ORDERS, COLUMNS, [("insert", 100, {"id": 1, "note": "a"})]),
        batch_row(ITEMS, COLUMNS, [("insert", 100, {"id": 1, "note": "b"})]),
        tables=(ORDERS, ITEMS),
    )
    for number in range(2, 9):
        row = {"id": number, "note": "a"}
        made.batch(batch_row(ORDERS, COLUMNS, [("insert", number * 100, row)]), tables=(ORDERS, ITEMS))
    _, control = lake_of(made)
    before = control.batches()
    control.collapse(before[0]["written_at"])
    assert control.batches() == before
    control.collapse(before[4]["written_at"])
    after = control.batches()
    assert [row["batch"] for row in after] == [5, 6, 7, 8]
    assert after[1:] == before[5:]
    assert [each["target"] for each in after[0]["versions"]] == ["items", "orders"]
    assert after[0]["versions"][0] == before[0]["versions"][0]
    assert after[0]["versions"][1] == before[4]["versions"][0]
    assert sorted(row["id"] for row in rows_as_of(made, 6)["orders"]) == [1, 2, 3, 4, 5, 6]
    assert [row["id"] for row in rows_as_of(made, 6)["items"]] == [1]
    control.collapse(before[4]["written_at"])
    assert control.batches() == after
    made.batch(batch_row(ORDERS, COLUMNS, [("insert", 900, {"id": 9, "note": "a"})]))
    assert len(made.rows()) == 9
    made.mirror.close()


def test_a_control_table_of_an_earlier_version_gets_its_column(tmp_path: Path) -> None:
    made = Mirrored(tmp_path)
    made.orders(("insert", 1, {"id": 1, "note": "a"}))
    place = f"{tmp_path}/lake/{BATCHES}"
    table = DeltaTable(place)
    rows = pa.table(table.scan().read_all()).drop_columns(["written_at"])
    marked = CommitProperties({"userMetadata": '{"informix-cdc": "' + applications(table)[0] + '"}'})
    write_deltalake(place, rows, mode="overwrite", schema_mode="overwrite", commit_properties=marked)
    made.mirror.close()
    made.restart()
    made.orders(("insert", 2, {"id": 2, "note": "a"}))
    found = [row["written_at"] is None for row in lake_of(made)[1].batches()]
    assert found == [True, False]
    made.mirror.close()


def applications(table: DeltaTable) -> list[str]:
    return [*TableLog(TablePlace(table.table_uri)).at().numbers]
