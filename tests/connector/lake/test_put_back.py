"""What was put back, or changed by others, stops the mirror or the table; a new epoch mends it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.lake.ledger import ledger
from harness.lake.put_back import DeltaFolder, PutBack, dying
from harness.runs.tiers import rest_in_all
from informix_capture_client.errors import BadOption, DataLoss
from informix_cdc.lake import MirrorSettings
from informix_cdc.lake.epochs import Beginning

pytestmark = pytest.mark.slow


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[PutBack]:
    with ledger(31, 4) as (made, listening):
        made.change(30)
        yield PutBack(tmp_path, made, listening.port)


@pytest.mark.fault(
    fault="an older checkpoint of a mirror is put back, with its spool or without",
    outcome="IFXCDC-0006 names both states; with onDataLoss=resync all tables are compared, and equal",
)
@pytest.mark.parametrize("spool", rest_in_all(["lost", "kept"]))
def test_a_checkpoint_that_was_put_back_is_told_and_a_new_epoch_mends_it(
    spool: str, mirror: PutBack
) -> None:
    mirror.run()
    mirror.keep_copy("copy", mirror.checkpoint)
    mirror.run()
    mirror.put_back("copy", mirror.checkpoint)
    if spool == "lost":
        shutil.rmtree(mirror.checkpoint / "spool")
    mirror.made.change(10)
    doubt = mirror.doubt()
    assert "checkpoint is older than" in doubt.replace(str(mirror.checkpoint), "checkpoint")
    assert "onDataLoss to resync" in doubt
    run = mirror.run("resync")
    assert not run.stopped
    mirror.require_exact(run)
    mirror.require_exact(mirror.run("fail"))


@pytest.mark.fault(
    fault="the checkpoint of a mirror is deleted",
    outcome="the same; no table is emptied",
)
def test_a_new_checkpoint_goes_on_with_the_tables_of_the_lake(mirror: PutBack) -> None:
    mirror.run()
    shutil.rmtree(mirror.checkpoint)
    mirror.made.change(10)
    assert "is new, but" in mirror.doubt()
    versions = {table.name: mirror.runs["fail"].versions(table.name) for table in mirror.made.tables}
    run = mirror.run("resync")
    mirror.require_exact(run)
    for name, before in versions.items():
        emptied = [rows for rows in run.row_counts(name, since=len(before)) if not rows]
        assert not emptied, "a table was emptied"
    mirror.require_exact(mirror.run("fail"))


@pytest.mark.fault(
    fault="an older lake is put back",
    outcome="the same",
)
def test_a_lake_that_was_put_back_is_told_and_a_new_epoch_mends_it(mirror: PutBack) -> None:
    mirror.run()
    mirror.keep_copy("copy", mirror.lake)
    mirror.run()
    mirror.put_back("copy", mirror.lake)
    assert "is older than the checkpoint" in mirror.doubt()
    run = mirror.run("resync")
    assert not run.stopped
    mirror.require_exact(run)


def test_an_epoch_expects_the_tables_as_it_finds_them(mirror: PutBack) -> None:
    mirror.run()
    mirror.keep_copy("copy", mirror.lake)
    mirror.run()
    mirror.put_back("copy", mirror.lake)
    settings = mirror.runs["resync"].settings
    epoch = Beginning(settings, "informix", "stores").begin(may_begin_epoch=True)
    for table in mirror.made.tables:
        target = epoch.lake.target(table.name)
        assert target.number()
        assert not target.foreign_change()
    mirror.require_exact(mirror.run("fail"))


@pytest.mark.only_in_all
def test_a_lake_that_was_removed_is_made_again(mirror: PutBack) -> None:
    mirror.run()
    shutil.rmtree(mirror.lake)
    assert "has no mirror, but the checkpoint" in mirror.doubt()
    run = mirror.run("resync")
    mirror.require_exact(run)


@pytest.mark.fault(
    fault="the server of a mirror is restored from a backup, and its log has lower numbers",
    outcome="IFXCDC-0006; with onDataLoss=resync tables are compared; those of histories and of changes"
    " stop until their targets are moved away",
)
def test_a_history_stops_when_the_server_was_restored(mirror: PutBack) -> None:
    history, changes = (table for table in mirror.made.tables[2:])
    mirror.run()
    mirror.install_server_again()
    mirror.made.change(10)
    assert "was restored or installed again" in mirror.doubt()
    run = mirror.run("resync")
    assert set(run.stopped) == {f"informix.{table.name}" for table in (history, changes)}
    assert all("was restored from a backup" in why for why in run.stopped.values())
    mirror.require_exact(run)
    mirror.made.truncate(history)
    for table in (history, changes):
        mirror.tables.remove(table.name)
    mirror.require_exact(mirror.heal("resync", *run.stopped))
    mirror.require_exact(mirror.run("fail"))


@pytest.mark.fault(
    fault="one table of a lake is put back",
    outcome="this table stops, and says so",
)
@pytest.mark.parametrize("number", rest_in_all(range(4)))
def test_a_table_that_was_put_back_stops(number: int, mirror: PutBack) -> None:
    table = mirror.made.tables[number]
    mirror.run()
    mirror.keep_copy("copy", mirror.lake / table.name)
    mirror.run(changes=5)
    mirror.put_back("copy", mirror.lake / table.name)
    run = mirror.run(changes=5)
    assert "it is older than the checkpoint says" in run.stopped[f"informix.{table.name}"]
    assert len(run.stopped) == 1
    mirror.require_exact(run)


@pytest.mark.fault(
    fault="others restore, overwrite, delete or insert rows of a target",
    outcome="this table stops, and says so",
)
@pytest.mark.parametrize("number", rest_in_all(range(4)))
@pytest.mark.parametrize("change", rest_in_all(DeltaFolder.foreign))
def test_a_table_that_others_have_changed_stops(change: str, number: int, mirror: PutBack) -> None:
    table = mirror.made.tables[number]
    mirror.run(changes=4)
    getattr(mirror.tables, change)(table.name)
    run = mirror.run(changes=5)
    why = run.stopped
    assert set(why) == {f"informix.{table.name}"}
    assert "has changed its rows" in why[f"informix.{table.name}"]
    mirror.require_exact(run)


@pytest.mark.fault(
    fault="others insert all rows of a target once more, also those of deleted rows",
    outcome="a resync leaves each key once, also if it changes meanwhile",
)
@pytest.mark.parametrize("number", range(4))
@pytest.mark.only_in_all
def test_doubled_rows_are_corrected_while_they_change(number: int, mirror: PutBack) -> None:
    table = mirror.made.tables[number]
    mirror.made.change(60, [table])
    mirror.run()
    mirror.tables.insert(table.name)
    mirror.rewritten.add(table.name)
    mirror.change_options(snapshotChunkRows="3")
    mirror.require_exact(mirror.heal("resync", f"informix.{table.name}", changing=[table]))
    mirror.require_exact(mirror.run(changes=20))


@pytest.mark.parametrize("change", rest_in_all(DeltaFolder.maintenance))
def test_maintenance_by_others_stops_nothing(change: str, mirror: PutBack) -> None:
    mirror.run(changes=4)
    for table in mirror.made.tables:
        getattr(mirror.tables, change)(table.name)
    run = mirror.run(changes=5)
    assert not run.stopped
    mirror.require_exact(run)


@pytest.mark.only_in_all
@pytest.mark.parametrize(
    "place", ["mirror.after_table", "mirror.before_control", "mirror.before_witness"]
)
def test_a_batch_that_died_is_not_a_doubt(place: str, mirror: PutBack) -> None:
    mirror.run()
    for _ in range(3):
        mirror.made.change(10)
        with dying(place, 2):
            mirror.run()
    run = mirror.run()
    assert not run.stopped
    mirror.require_exact(run)


def test_a_load_that_was_put_back_goes_on_in_intervals(mirror: PutBack) -> None:
    mirror.made.change(100)
    mirror.run(changes=0, batches=3)
    mirror.keep_copy("copy", mirror.checkpoint)
    mirror.run()
    mirror.put_back("copy", mirror.checkpoint)
    run = mirror.run("resync")
    assert not run.stopped
    mirror.require_exact(run)


def test_another_mirror_in_the_folder_is_refused(mirror: PutBack, tmp_path: Path) -> None:
    mirror.run()
    settings = mirror.runs["fail"].settings
    other = MirrorSettings.of(into=settings.into, checkpoint=str(tmp_path / "other"))
    with pytest.raises(DataLoss, match="is new, but"):
        Beginning(other, "informix", "stores").begin(may_begin_epoch=False)
    with pytest.raises(BadOption, match=r"server was .informix. and is .another"):
        Beginning(other, "another", "stores").begin(may_begin_epoch=True)
    elsewhere = MirrorSettings.of(into=str(tmp_path / "else"), checkpoint=settings.checkpoint)
    with pytest.raises(BadOption, match=r"into was .*lake. and is .*else"):
        Beginning(elsewhere, "informix", "stores").begin(may_begin_epoch=True)
    assert not (tmp_path / "else").exists()
