"""Which rows a shared capture removes, judged on values."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from informix_capture_client.positions import Position
from informix_cdc.daemon.retention import Retention
from informix_checkpoints.readers import ReaderState
from informix_checkpoints.spool import Manifest
from informix_checkpoints.spool.segments import Segment

NOW = 1_700_000_000.0


class Clock:
    def __init__(self) -> None:
        self.monotonic, self.wall = 1000.0, NOW

    def pass_seconds(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds


def manifest_of(*commits: int) -> Manifest:
    segments = tuple(
        Segment(f"{commit}.arrow", 1, 100, 0, 1, commit, Position(commit, commit)) for commit in commits
    )
    end = segments[-1].position if segments else Position(1, 1)
    return Manifest("s", "source", Position(1, 1), end, segments=segments)


def retention(clock: Clock, seconds: float = 0, size_bytes: int = 0) -> Retention:
    return Retention(seconds, size_bytes, lambda: clock.monotonic, lambda: clock.wall)


def at(commit: int, name: str = "one", stream: str = "s") -> ReaderState:
    return ReaderState(name=name, stream=stream, done=(commit, 0))


def test_what_all_readers_have_read_is_removed(tmp_path: Path) -> None:
    kept = retention(Clock())
    manifest = manifest_of(10, 20, 30)
    assert kept.removable(tmp_path, manifest, []) == (1, 0)
    assert kept.removable(tmp_path, manifest, [at(30), at(20, "two")]) == (20, 0)


def test_a_reader_of_another_stream_or_of_none_holds_everything(tmp_path: Path) -> None:
    kept, manifest = retention(Clock()), manifest_of(10, 20)
    for stream in ("", "before"):
        assert kept.removable(tmp_path, manifest, [at(20), at(99, "two", stream)]) == (1, 0)


def test_rows_that_are_too_old_are_removed_whoever_needs_them(tmp_path: Path) -> None:
    clock = Clock()
    kept = retention(clock, seconds=100)
    for commit in (10, 20):
        assert kept.removable(tmp_path, manifest_of(*range(10, commit + 1, 10)), [at(0)]) == (1, 0)
        clock.pass_seconds(60)
    assert kept.removable(tmp_path, manifest_of(10, 20), [at(0)]) == (10, 0)
    clock.pass_seconds(60)
    assert kept.removable(tmp_path, manifest_of(10, 20), []) == (20, 0)


def test_the_oldest_rows_are_removed_above_the_limit_of_bytes(tmp_path: Path) -> None:
    kept = retention(Clock(), size_bytes=250)
    assert kept.removable(tmp_path, manifest_of(10, 20, 30, 40), [at(0)]) == (20, 0)
    assert kept.removable(tmp_path, manifest_of(10, 20), [at(0)]) == (1, 0)


def test_a_wall_clock_that_jumps_removes_nothing(tmp_path: Path) -> None:
    clock = Clock()
    kept = retention(clock, seconds=100)
    manifest = manifest_of(10)
    assert kept.removable(tmp_path, manifest, [at(0)]) == (1, 0)
    for jump in (1e9, -2e9):
        clock.wall += jump
        assert kept.removable(tmp_path, manifest, [at(0)]) == (1, 0)
    clock.pass_seconds(101)
    assert kept.removable(tmp_path, manifest, [at(0)]) == (10, 0)


def test_the_age_of_rows_from_before_the_start_counts(tmp_path: Path) -> None:
    for commit, age in ((10, 150), (20, 50), (30, -5000)):  # the last: the clock was set back
        path = tmp_path / f"{commit}.arrow"
        path.touch()
        os.utime(path, (NOW - age, NOW - age))
    clock = Clock()
    kept = retention(clock, seconds=100)
    manifest = manifest_of(10, 20, 30)
    assert kept.removable(tmp_path, manifest, [at(0)]) == (10, 0)
    clock.pass_seconds(51)
    assert kept.removable(tmp_path, manifest, [at(0)]) == (20, 0)
    clock.pass_seconds(50)
    assert kept.removable(tmp_path, manifest, [at(0)]) == (30, 0)


def test_the_start_of_the_manifest_is_never_passed_backwards(tmp_path: Path) -> None:
    manifest = replace(manifest_of(20, 30), start=Position(10, 10))
    assert retention(Clock()).removable(tmp_path, manifest, [at(5)]) == (10, 0)


def test_only_streams_that_were_left_long_ago_are_too_old(tmp_path: Path) -> None:
    clock, folders = Clock(), [tmp_path / name for name in ("old", "new", "later", "last")]
    for folder, age in zip(folders, (150, 50, -5000, 9e9), strict=True):
        folder.mkdir()
        os.utime(folder, (NOW - min(age, 1e9), NOW - min(age, 1e9)))
    old, new, later, last = folders
    kept = retention(clock, seconds=100)
    assert kept.too_old_streams([old, new]) == {old}
    clock.wall += 1e9  # a clock that jumps says nothing
    assert kept.too_old_streams(folders) == {old}
    clock.pass_seconds(51)
    assert kept.too_old_streams(folders) == {old, new}
    clock.pass_seconds(50)
    assert kept.too_old_streams([later, last]) == {later, last}
    assert retention(clock).too_old_streams(folders) == set()


def test_the_first_rows_of_a_running_capture_are_new_whatever_the_wall_clock_says(
    tmp_path: Path,
) -> None:
    clock = Clock()
    kept = retention(clock, seconds=100)
    assert kept.removable(tmp_path, manifest_of(), []) == (1, 0)
    (tmp_path / "10.arrow").touch()
    os.utime(tmp_path / "10.arrow", (NOW, NOW))
    clock.wall += 1e9
    assert kept.removable(tmp_path, manifest_of(10), []) == (1, 0)


def test_files_of_the_stream_after_a_loss_have_the_names_of_the_former_ones(tmp_path: Path) -> None:
    """Each writer of a new folder begins its names anew."""
    clock = Clock()
    kept = retention(clock, seconds=100)
    assert kept.removable(tmp_path, manifest_of(70, 80), [at(0)]) == (1, 0)
    clock.pass_seconds(99)
    for last in (30, 90):
        after = replace(manifest_of(*range(10, last + 1, 10)), stream="after")
        assert kept.removable(tmp_path, after, [at(0, stream="after")]) == (1, 0)
    clock.pass_seconds(101)
    assert kept.removable(tmp_path, after, [at(0, stream="after")]) == (90, 0)
