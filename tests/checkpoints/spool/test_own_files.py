"""What somebody else prepared under the names that a spool uses is not taken, followed or harmed."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from checkpoints.spool.spools import START, fill, numbers, open_spool
from informix_capture_client.errors import AccessRefused, DataLoss, Gap
from informix_checkpoints.spool import durable_files
from informix_checkpoints.spool.manifest import Manifest
from informix_checkpoints.spool.manifest_files import load_manifest, save_manifest
from informix_checkpoints.spool.reported_losses import ReportedLosses
from informix_checkpoints.spool.segments import SegmentRange, stored_range
from informix_checkpoints.spool.spool import Spool
from informix_checkpoints.spool.writer_lock import WriterLock

LOSS = DataLoss("row logging was off.", gap=Gap.ROW_LOGGING_OFF)


@pytest.fixture(params=[0o000, 0o002, 0o022, 0o077], ids=lambda mask: f"umask {mask:03o}")
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    former = os.umask(request.param)
    yield
    os.umask(former)


@pytest.fixture
def of_another_user(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Give a function after which this process runs as another user than the one that made files."""
    return lambda: monkeypatch.setattr(durable_files.os, "geteuid", lambda: os.getuid() + 1)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of this user's that a link of somebody else's leads to."""
    path = tmp_path / "victim"
    path.write_bytes(b"precious")
    return path


def modes_below(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*"))}


def test_whatever_the_umask_only_this_user_can_enter_what_is_made(tmp_path: Path, umask: None) -> None:
    fill(open_spool(tmp_path / "two" / "parents" / "spool"))
    ReportedLosses.beside(str(tmp_path / "two" / "marks")).record("s1", "d", LOSS)
    assert modes_below(tmp_path / "two") == {0o700, 0o600}


def linked(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


def dangling(folder: Path) -> None:
    folder.symlink_to(folder.parent / "nowhere")


def shared(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def of_a_group(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o770)


PREPARED = [
    (linked, "is a link, which queries do not create"),
    (dangling, "is a link, which queries do not create"),
    (shared, r"can be written by other users \(mode 777\)"),
    (of_a_group, r"can be written by other users \(mode 770\)"),
]


@pytest.mark.parametrize(("prepare", "says"), PREPARED, ids=[p[0].__name__ for p in PREPARED])
def test_a_folder_that_somebody_prepared_is_refused_and_left_as_it_is(
    prepare: Callable[[Path], None], says: str, tmp_path: Path
) -> None:
    prepare(tmp_path / "spool")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(AccessRefused, match=f"the spool {tmp_path}/spool {says}") as refused:
        open_spool(tmp_path / "spool")
    remedy = "remove it" if prepare in (linked, dangling) else "chmod 700"
    assert remedy in refused.value.remedy
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, of_another_user: Callable[[], None]
) -> None:
    open_spool(tmp_path / "spool").close()
    of_another_user()
    with pytest.raises(AccessRefused, match=f"belongs to user {os.getuid()}, but this query runs as"):
        open_spool(tmp_path / "spool")


def test_the_remedy_for_a_folder_of_another_user_is_for_all_that_lies_in_it(
    tmp_path: Path, of_another_user: Callable[[], None]
) -> None:
    open_spool(tmp_path / "spool").close()
    of_another_user()
    with pytest.raises(AccessRefused) as refused:
        open_spool(tmp_path / "spool")
    assert "chown -R" in refused.value.remedy
    assert "chmod" not in refused.value.remedy
    assert "remove" not in refused.value.remedy


def mounted_by_kubelet(volume: Path) -> None:
    """Do what a mount with `fsGroup` does under the default fsGroupChangePolicy, Always."""
    for path in (volume, *volume.rglob("*")):
        below = 0o2070 if path.is_dir() else 0o060
        path.chmod(stat.S_IMODE(path.lstat().st_mode) | below)


def test_a_volume_that_kubernetes_opens_at_each_mount_is_refused_with_the_policy_that_ends_it(
    tmp_path: Path,
) -> None:
    open_spool(tmp_path / "volume" / "spool").close()
    mounted_by_kubelet(tmp_path / "volume")
    with pytest.raises(AccessRefused, match=r"\(mode 2770\)") as refused:
        open_spool(tmp_path / "volume" / "spool")
    for step in ("fsGroupChangePolicy: OnRootMismatch", "chmod 700", "below the volume's root"):
        assert step in refused.value.remedy


def test_a_spool_below_a_volume_that_is_opened_once_is_taken_at_each_start(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    mounted_by_kubelet(tmp_path / "volume")  # OnRootMismatch: at the first mount only
    for _ in range(2):
        open_spool(tmp_path / "volume" / "informix-cdc" / "spool").close()


def test_a_folder_below_a_link_of_the_administrator_is_taken(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "mounted").symlink_to(tmp_path / "disk")
    spool = open_spool(tmp_path / "mounted" / "spool")
    fill(spool)
    assert numbers(spool.between((100, 0), (140, 0))) == [1, 2, 3, 4, 5]


def test_a_private_folder_made_again_by_somebody_else_is_not_taken(tmp_path: Path) -> None:
    spool = open_spool(tmp_path / "spool", durable=False)
    (tmp_path / "spool" / "writer.lock").unlink()
    (tmp_path / "spool").rmdir()
    shared(tmp_path / "spool")
    with pytest.raises(AccessRefused, match="can be written by other users"):
        fill(spool)
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_lock_that_is_a_link_is_refused_and_its_target_stays(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "spool").mkdir(mode=0o700)
    (tmp_path / "spool" / "writer.lock").symlink_to(victim)
    with pytest.raises(AccessRefused, match=r"writer\.lock is a link, which queries do not create"):
        WriterLock(tmp_path / "spool", 0)
    assert victim.read_bytes() == b"precious"


def test_segments_and_drafts_never_go_through_a_link(tmp_path: Path, victim: Path) -> None:
    spool = open_spool(tmp_path / "spool")
    for name in ("000001-000000000000.arrow", "manifest.draft"):
        (tmp_path / "spool" / name).symlink_to(victim)
    fill(spool)
    assert victim.read_bytes() == b"precious"
    assert numbers(spool.between((100, 0), (140, 0))) == [1, 2, 3, 4, 5]


def test_a_manifest_that_is_a_link_is_refused(tmp_path: Path) -> None:
    held = Manifest("s1", "d1", START, high_watermark=START)
    save_manifest(held, tmp_path, durable=False)
    (tmp_path / "manifest.json").rename(tmp_path / "other.json")
    (tmp_path / "manifest.json").symlink_to(tmp_path / "other.json")
    with pytest.raises(AccessRefused, match=r"manifest\.json is a link"):
        load_manifest(tmp_path)


def moved_behind_a_link(spool: Spool) -> SegmentRange:
    [wanted, *_] = spool.between((100, 0), (120, 0))
    path = Path(wanted.path)
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))
    return wanted


def test_a_segment_behind_a_link_is_not_delivered(tmp_path: Path) -> None:
    spool = open_spool(tmp_path / "spool")
    fill(spool)
    with pytest.raises(AccessRefused, match="is a link, or not a file"):
        stored_range(moved_behind_a_link(spool))


def test_a_segment_behind_a_link_is_captured_again_by_the_next_writer(tmp_path: Path) -> None:
    spool = open_spool(tmp_path / "spool")
    fill(spool)
    moved_behind_a_link(spool)
    spool.close()
    assert len(open_spool(tmp_path / "spool").manifest.segments) == 0


def test_a_mark_that_is_a_link_is_refused_by_name(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "s1.lost.json").symlink_to(victim)
    with pytest.raises(AccessRefused, match=r"s1\.lost\.json is a link") as refused:
        ReportedLosses.beside(str(tmp_path)).find("s1")
    assert "remove it" in refused.value.remedy


@pytest.mark.parametrize("mode", [0o664, 0o660, 0o666])
@pytest.mark.parametrize("words", ["as it was noted", "nothing was lost", ""])
def test_a_mark_of_this_user_that_others_may_write_stays_a_loss_in_words_of_our_own(
    mode: int, words: str, tmp_path: Path
) -> None:
    ReportedLosses.beside(str(tmp_path)).record("s1", "d", LOSS)
    file = tmp_path / "s1.lost.json"
    file.write_text(json.dumps({"gap": "ROW_LOGGING_OFF", "message": words}) if words else "")
    file.chmod(mode)
    found = ReportedLosses.beside(str(tmp_path)).find("s1")
    assert found is not None
    assert found.gap is Gap.ROW_LOGGING_OFF
    assert (
        found.message == f"{file} records a loss, but it can be written by other users (mode {mode:o})."
    )
    assert "remove" not in found.error().remedy


def test_a_mark_of_another_user_is_refused_by_name(
    tmp_path: Path, of_another_user: Callable[[], None]
) -> None:
    ReportedLosses.beside(str(tmp_path)).record("s1", "d", LOSS)
    of_another_user()
    with pytest.raises(AccessRefused, match=r"s1\.lost\.json belongs to user") as refused:
        ReportedLosses.beside(str(tmp_path)).find("s1")
    assert "records a data loss: change its owner to the user" in refused.value.remedy


def test_a_mark_is_kept_in_place_of_a_link_and_not_through_it(tmp_path: Path, victim: Path) -> None:
    for name in ("s1.lost.json", "s1.lost.draft"):
        (tmp_path / name).symlink_to(victim)
    ReportedLosses.beside(str(tmp_path)).record("s1", "d", LOSS)
    assert victim.read_bytes() == b"precious"
    assert ReportedLosses.beside(str(tmp_path)).find("s1") is not None
