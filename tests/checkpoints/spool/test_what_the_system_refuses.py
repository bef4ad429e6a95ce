"""What the system says no to, each with its own remedy; and a private folder that is cleaned away."""

from __future__ import annotations

import errno
import logging
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from checkpoints.spool.spools import SCHEMA, batch, fill, numbers, open_spool
from informix_capture_client.errors import AccessRefused
from informix_capture_client.positions import Position
from informix_checkpoints.spool.durable_files import disk_errors
from informix_checkpoints.spool.spool import Spool

REMEDIES = [
    (errno.ENOSPC, "Free space on its disk"),
    (errno.EDQUOT, "raise the quota"),
    (errno.EROFS, "mounted read-only"),
    (errno.EACCES, "Let the user of this process write there"),
    (errno.EPERM, "Let the user of this process write there"),
    (errno.EMFILE, "raise the limit (ulimit -n"),
    (errno.ENFILE, "fs.file-max"),
    (errno.ENOENT, "Start the query again"),
    (errno.EIO, "Check its disk"),
]


@pytest.mark.parametrize(
    ("number", "remedy"), REMEDIES, ids=[errno.errorcode[number] for number, _ in REMEDIES]
)
def test_each_refusal_of_the_system_has_its_own_remedy(number: int, remedy: str) -> None:
    with pytest.raises(AccessRefused) as refused, disk_errors(Path("/a/spool")):
        raise OSError(number, os.strerror(number))
    assert f"the spool /a/spool cannot be written: {os.strerror(number)}." in refused.value.message
    assert remedy in refused.value.remedy
    assert ("Free space" in refused.value.remedy) == (number in (errno.ENOSPC, errno.EDQUOT))


@pytest.mark.parametrize(
    ("inodes", "free_inodes", "free_blocks", "is_named"),
    [(100, 0, 9, True), (100, 5, 9, False), (0, 0, 9, False), (100, 0, 0, False)],
    ids=["no inodes", "inodes", "none counted", "no blocks either"],
)
def test_a_disk_without_inodes_is_not_called_full(
    inodes: int,
    free_inodes: int,
    free_blocks: int,
    is_named: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system says "no space left" of both, and df shows space."""
    facts = SimpleNamespace(f_files=inodes, f_favail=free_inodes, f_bavail=free_blocks)
    monkeypatch.setattr(os, "statvfs", {tmp_path: facts}.__getitem__)
    with pytest.raises(AccessRefused) as refused, disk_errors(tmp_path / "not" / "there"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.undo()
    assert ("no free inodes" in refused.value.message) == is_named
    assert ("df -i" in refused.value.remedy) == is_named


@pytest.fixture
def no_file_more() -> Iterator[Callable[[], None]]:
    """Give a function that uses up the files that this process may open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    last = os.dup(0)
    os.close(last)
    yield lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (last, before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.fault(
    fault="the process has as many files open as it may",
    outcome="IFXCDC-0002 that names the limit of open files, not the disk",
)
def test_too_many_open_files_are_no_full_disk(tmp_path: Path, no_file_more: Callable[[], None]) -> None:
    spool, rows = open_spool(tmp_path), batch((1, 110))
    no_file_more()
    with pytest.raises(AccessRefused, match="Too many open files") as refused:
        spool.append(SCHEMA, [rows], Position(110, 105))
    assert "ulimit -n" in refused.value.remedy


def private(folder: Path) -> Spool:
    return open_spool(folder, durable=False)


def more(spool: Spool) -> None:
    spool.append(SCHEMA, [batch((6, 150), (7, 150))], Position(150, 145))


def test_a_quiet_private_folder_that_was_cleaned_away_is_made_again_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = private(tmp_path / "spool")
    fill(spool)
    spool.trim((140, 0))
    shutil.rmtree(tmp_path / "spool")
    with caplog.at_level(logging.WARNING):
        more(spool)
    assert numbers(spool.between((140, 0), (150, 0))) == [6, 7]
    assert "event=spool_folder_made_again stream=s1" in caplog.text
    with pytest.raises(AccessRefused, match="another query is writing to"):
        private(tmp_path / "spool")  # it is locked as before


def test_a_cleaned_folder_is_no_matter_if_spark_lets_go_of_all_that_was_in_it(tmp_path: Path) -> None:
    spool = private(tmp_path / "spool")
    fill(spool)
    shutil.rmtree(tmp_path / "spool")
    spool.trim((140, 0))
    more(spool)
    assert numbers(spool.between((140, 0), (150, 0))) == [6, 7]
    assert [path.name[:6] for path in (tmp_path / "spool").glob("*.arrow")] == ["000002"]


def test_a_lock_alone_that_was_cleaned_away_is_made_again(tmp_path: Path) -> None:
    spool = private(tmp_path / "spool")
    fill(spool)
    (tmp_path / "spool" / "writer.lock").unlink()
    more(spool)
    assert numbers(spool.between((100, 0), (150, 0))) == [1, 2, 3, 4, 5, 6, 7]


WRITTEN, PLANNED = more, lambda spool: spool.between((100, 0), (140, 0))
TRIMMED = lambda spool: spool.trim((120, 0))  # noqa: E731 - one of three uses
USES: list[tuple[str, str, Callable[[Spool], object]]] = [
    *((f"{what}, {word}", what, use)
      for what in ("the folder", "all files")
      for word, use in (("written", WRITTEN), ("planned", PLANNED), ("trimmed", TRIMMED))),
    ("segments, planned", "segments", PLANNED),
]  # fmt: skip


@pytest.mark.parametrize(("cleaned", "use"), [u[1:] for u in USES], ids=[u[0] for u in USES])
def test_rows_that_were_cleaned_away_are_missed_and_a_restart_is_advised(
    cleaned: str, use: Callable[[Spool], object], tmp_path: Path
) -> None:
    spool = private(tmp_path / "spool")
    fill(spool)
    if cleaned == "the folder":
        shutil.rmtree(tmp_path / "spool")
    for path in (tmp_path / "spool").glob("*.arrow" if cleaned == "segments" else "*"):
        path.unlink()
    with pytest.raises(AccessRefused, match="with rows that Spark has not read") as refused:
        use(spool)
    assert refused.value.is_temporary
    assert "captured again" in refused.value.remedy
    assert spool.has_lost_rows


def test_a_folder_below_spool_path_is_never_made_again(tmp_path: Path) -> None:
    spool = open_spool(tmp_path / "spool")
    shutil.rmtree(tmp_path / "spool")
    with pytest.raises(AccessRefused, match="cannot be written: No such file"):
        fill(spool)
    assert not (tmp_path / "spool").exists()
