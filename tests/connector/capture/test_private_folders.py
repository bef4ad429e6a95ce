"""Private spool folders: left-overs of dead processes go, everything else stays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from informix_capture_client.positions import Position
from informix_cdc.capture.private_folders import (
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
        made.mkdir()
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
