"""A spool dies at each of its steps, and the disk forgets what was not yet synced."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from checkpoints.spool.spools import (
    OPENED,
    SCHEMA,
    START,
    batch,
    fill,
    numbers,
    open_spool,
)
from informix_capture_client import failpoints
from informix_capture_client.positions import Position
from informix_checkpoints.spool.manifest_files import FILE_NAME
from informix_checkpoints.spool.spool import Spool

APPEND_STEPS = [
    "segment.before_sync",
    "spool.before_manifest",
    "journal.before_append",
    "journal.after_append",
]
TRIM_STEPS = ["replace_file.before_rename", "replace_file.after_rename", "spool.before_unlink"]


class Died(BaseException):
    """The process is gone: nothing may catch this."""


@contextmanager
def dying_at(step: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def reach(name: str) -> None:
        if name == step:
            raise Died

    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "reached", reach)
        with pytest.raises(Died):
            yield
    OPENED[-1].close()  # the kernel frees the lock


def newest(folder: Path) -> Path:
    return max(folder.glob("*.arrow"))


def nothing(_folder: Path, _before: bytes) -> None:
    """The disk kept everything."""


def cut_segment(folder: Path, _before: bytes) -> None:
    """Half of a segment that was not synced is gone."""
    path = newest(folder)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty_segment(folder: Path, _before: bytes) -> None:
    """Its name is there, and nothing in it."""
    newest(folder).write_bytes(b"")


def no_segment(folder: Path, _before: bytes) -> None:
    """Not even its name is there."""
    newest(folder).unlink()


def rename_undone(folder: Path, before: bytes) -> None:
    """The folder was not synced: the old manifest is back."""
    (folder / FILE_NAME).write_bytes(before)


def cut_draft(folder: Path, _before: bytes) -> None:
    """A draft that nobody will read is torn."""
    for draft in folder.glob("*.draft"):
        draft.write_bytes(b'{"version"')


def journal_of(folder: Path) -> Path:
    (journal,) = folder.glob("*.journal")
    return journal


def line_lost(folder: Path, _before: bytes) -> None:
    """The journal was not synced: its last line is gone."""
    journal = journal_of(folder)
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))


def line_cut(folder: Path, _before: bytes) -> None:
    """Half of its last line is gone."""
    journal = journal_of(folder)
    journal.write_bytes(journal.read_bytes()[:-100])


def no_journal(folder: Path, _before: bytes) -> None:
    """Its folder was not synced, and neither name nor content is there."""
    journal_of(folder).unlink()


LOSSES: dict[str, list[Callable[[Path, bytes], None]]] = {
    "segment.before_sync": [nothing, cut_segment, empty_segment, no_segment],
    "spool.before_manifest": [nothing],
    "journal.before_append": [nothing],
    "journal.after_append": [nothing, line_lost, line_cut, no_journal],
    "replace_file.before_rename": [nothing, cut_draft],
    "replace_file.after_rename": [nothing, rename_undone],
    "spool.before_unlink": [nothing],
}


def go_on(folder: Path, start: Position = START) -> tuple[list[int], Spool]:
    """Open it where Spark stands and append what the spool does not have, as the capture does."""
    again = open_spool(folder, start)
    if again.manifest.end.commit < 140:
        again.append(SCHEMA, [batch((4, 130), (5, 140))], Position(140, 135))
    if again.manifest.end.commit < 150:
        again.append(SCHEMA, [batch((6, 150), (7, 150))], Position(150, 145))
    return numbers(again.between(start.place, (150, 0))), again


@pytest.mark.fault(
    fault="death at every step of writing a segment, and power loss there",
    outcome="the old content or the new one; what is missing is captured again, once",
    seeds="4 steps, 9 ways to lose what was not synced",
)
@pytest.mark.parametrize(
    ("step", "lose"), [(step, lose) for step in APPEND_STEPS for lose in LOSSES[step]]
)
def test_an_append_that_dies_leaves_the_old_content_or_the_new_one(
    step: str, lose: Callable[[Path, bytes], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    before = (tmp_path / FILE_NAME).read_bytes()
    with dying_at(step, monkeypatch):
        spool.append(SCHEMA, [batch((6, 150), (7, 150))], Position(150, 145))
    lose(tmp_path, before)
    found, again = go_on(tmp_path)
    assert found == [1, 2, 3, 4, 5, 6, 7]
    assert again.manifest.end == Position(150, 145)
    assert len(list(tmp_path.glob("*.arrow"))) == len(again.manifest.segments)  # nothing else is left


@pytest.mark.parametrize(
    ("step", "lose"), [(step, lose) for step in TRIM_STEPS for lose in LOSSES[step]]
)
def test_a_trim_that_dies_keeps_what_was_not_yet_let_go_of(
    step: str, lose: Callable[[Path, bytes], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    before = (tmp_path / FILE_NAME).read_bytes()
    with dying_at(step, monkeypatch):
        spool.trim((120, 0))
    lose(tmp_path, before)
    found, again = go_on(tmp_path, Position(120, 115))
    assert found == [4, 5, 6, 7]
    assert len(list(tmp_path.glob("*.arrow"))) == len(again.manifest.segments)


@pytest.mark.parametrize("damage", [cut_segment, empty_segment, no_segment])
def test_a_segment_that_the_disk_has_lost_after_all_is_captured_again(
    damage: Callable[[Path, bytes], None], tmp_path: Path
) -> None:
    """A disk that lies about fsync: the manifest names what is not there. What lies before it stays."""
    spool = open_spool(tmp_path)
    fill(spool)
    spool.close()
    damage(tmp_path, b"")
    again = open_spool(tmp_path)
    assert (again.manifest.end, again.manifest.high_watermark) == (
        Position(120, 115),
        Position(120, 115),
    )
    assert numbers(again.between((100, 0), (120, 0))) == [1, 2, 3]
    shutil.rmtree(tmp_path)
