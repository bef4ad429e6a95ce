"""Private spool folders: left-overs of dead processes go, everything else stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.capture.driving import (
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    next_offset,
    numbers,
    reader,
    rows_of,
    state_of,
)
from informix_capture_client.errors import AccessRefused
from informix_capture_client.positions import Position
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.private_folders import (
    make_private_folder,
    remove_empty_streams,
    remove_left_overs,
)
from informix_checkpoints.spool.spool import Spool
from informix_checkpoints.spool.writer_lock import WriterLock

Make = Callable[..., Path]


@pytest.fixture
def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def folder(name: str, age_seconds: float = 3600) -> Path:
        made = tmp_path / name
        made.mkdir(mode=0o700)
        (made / "0.arrow").write_bytes(b"rows")
        then = made.stat().st_mtime - age_seconds
        os.utime(made, (then, then))
        return made

    return folder


def test_what_a_dead_process_left_is_removed(make: Make, dead_process: int, tmp_path: Path) -> None:
    left_over = make(f"informix-cdc-spool-{dead_process}-x")
    remove_left_overs(tmp_path)
    assert not left_over.exists()


def test_folders_of_the_living_of_others_and_new_ones_stay(
    make: Make, dead_process: int, tmp_path: Path
) -> None:
    kept = [
        make(f"informix-cdc-spool-{os.getpid()}-x"),
        make("somebody-elses"),
        make(f"informix-cdc-spool-{dead_process}-new", age_seconds=0),
    ]
    remove_left_overs(tmp_path)
    assert all(folder.exists() for folder in kept)


def test_a_locked_folder_stays_although_its_process_has_no_number_here(
    make: Make, dead_process: int, tmp_path: Path
) -> None:
    folder = make(f"informix-cdc-spool-{dead_process}-other-container")
    spool = Spool(folder, "s", "d", Position(1, 1), durable=False)
    os.utime(folder, (1, 1))
    remove_left_overs(tmp_path)
    assert folder.exists()
    spool.close()
    os.utime(folder, (1, 1))
    remove_left_overs(tmp_path)
    assert not folder.exists()


@pytest.mark.parametrize("target", ["itself", "a folder of this user's", "nowhere"])
def test_a_link_of_a_strangers_stops_nobody_and_leads_nowhere(
    target: str, make: Make, dead_process: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may make entries in the system's temporary folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own, name = make("own"), f"informix-cdc-spool-{dead_process}-x"
    targets = {"itself": tmp_path / name, "a folder of this user's": own, "nowhere": tmp_path / "none"}
    for planted in (tmp_path / name, tmp_path / "0123456789abcdef"):
        planted.symlink_to(targets[target])
    remove_empty_streams(tmp_path)
    assert make_private_folder().exists()
    assert [path.name for path in own.iterdir()] == ["0.arrow"]


def test_an_entry_that_nobody_may_look_at_stops_nobody(
    make: Make, dead_process: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (make(f"informix-cdc-spool-{dead_process}-{name}") for name in "xy")
    look = Path.lstat

    def refused(path: Path) -> os.stat_result:
        if path == first:
            raise PermissionError(13, "Permission denied")
        return look(path)

    monkeypatch.setattr(Path, "lstat", refused)
    remove_left_overs(tmp_path)
    assert first.is_dir()
    assert not second.exists()


def test_a_new_folder_is_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = make_private_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert f"-{os.getpid()}-" in folder.name


def test_empty_folders_of_streams_are_removed_unless_new_locked_or_of_others(
    make: Make, tmp_path: Path
) -> None:
    empty, held, young, other = (
        make("0123456789abcdef"),
        make("1123456789abcdef"),
        make("2123456789abcdef", age_seconds=0),
        make("somebody's"),
    )
    filled = make("3123456789abcdef")
    lock = WriterLock(held, 0)
    for folder in (empty, held, young, other):
        then = folder.stat().st_mtime
        (folder / "0.arrow").unlink()
        os.utime(folder, (then, then))
    remove_empty_streams(tmp_path)
    lock.release()
    assert not empty.exists()
    assert all(folder.exists() for folder in (held, young, other, filled))


def spool_of(made: InformixStreamReader) -> Spool:
    spool = state_of(made).spool
    assert spool is not None
    return spool


@pytest.mark.fault(
    fault="a cleaner of temporary files removes the private spool folder of a quiet stream",
    outcome="the folder is made again; a line in the log says so",
)
def test_a_quiet_stream_goes_on_when_its_folder_was_cleaned_away(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        _, start = drained(made, anchor, insert(server, 1))
        made.commit(start)
        shutil.rmtree(spool_of(made).folder)
        assert numbers(drained(made, start, insert(server, 2))[0]) == [2]
    assert "event=spool_folder_made_again" in caplog.text


@pytest.mark.fault(
    fault="a cleaner of temporary files removes a private spool folder with rows in it",
    outcome="IFXCDC-0002 that says so, at once; a restart captures the rows again",
)
@pytest.mark.parametrize("is_planned", [True, False], ids=["planned", "not yet planned"])
def test_rows_that_were_cleaned_away_end_the_query_and_come_with_its_next_start(
    served: Served, is_planned: bool
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        insert(server, 1)
        end = next_offset(made, anchor)
        shutil.rmtree(spool_of(made).folder)
        last = insert(server, 2)
        error = failure_of(
            lambda: made.partitions(anchor, end) if is_planned else drained(made, end, last)
        )
    assert isinstance(error, AccessRefused)
    assert "or segments of it were removed, with rows that Spark has not read" in str(error)
    with reader(listening.port) as again:
        assert numbers(rows_of(again, anchor, end)) == [1]
        assert numbers(drained(again, end, last)[0]) == [2]


def test_a_temporary_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(AccessRefused, match=r"gone cannot be written: No such file"):
        make_private_folder()
