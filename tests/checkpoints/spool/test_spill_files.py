"""Bytes put aside: what comes back, what is left over, and what the disk may say."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from informix_capture_client.errors import AccessRefused
from informix_checkpoints.spool import spill_files
from informix_checkpoints.spool.spill_files import SpilledBytes, SpillFiles


def keep(store: SpillFiles, *parts: bytes) -> SpilledBytes:
    return store.keep([memoryview(part) for part in parts])


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_what_was_put_aside_comes_back_in_any_order(tmp_path: Path) -> None:
    store = SpillFiles(tmp_path)
    first, second = keep(store, b"one", b"", b"two"), keep(store, bytes(3 << 20))
    assert second.load() == bytes(3 << 20)
    assert first.load() == b"onetwo"
    assert (first.size_bytes, store.size_bytes) == (6, 6 + (3 << 20))


def test_nothing_of_it_has_a_name(tmp_path: Path) -> None:
    kept = keep(SpillFiles(tmp_path / "made when needed"), b"secret")
    assert list((tmp_path / "made when needed").iterdir()) == []
    assert kept.load() == b"secret"


def test_a_folder_is_made_only_when_something_is_put_aside(tmp_path: Path) -> None:
    SpillFiles(tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_many_share_a_file_that_is_closed_with_the_last_of_them(tmp_path: Path) -> None:
    before = open_files()
    store = SpillFiles(tmp_path)
    kept = [keep(store, b"x" * 100) for _ in range(1000)]
    assert open_files() == before + 1
    kept = kept[500:501]
    assert open_files() == before + 1
    assert kept[0].load() == b"x" * 100
    kept.clear()
    assert (open_files(), store.size_bytes) == (before, 0)


def test_a_new_file_begins_where_one_is_full_and_there_are_never_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill_files, "FILE_BYTES", 1000)
    before = open_files()
    store = SpillFiles(tmp_path)
    kept = [keep(store, b"x" * 100) for _ in range(20)]
    assert open_files() == before + 2
    kept += [keep(store, b"x" * 100) for _ in range(5000)]
    assert open_files() < before + 150  # of 502 if each were full at 1000 bytes
    assert all(one.load() == b"x" * 100 for one in kept)
    del kept[10:]
    assert store.size_bytes == 1000
    kept.clear()
    assert open_files() == before


def test_a_file_that_was_cut_is_an_error_that_names_what_is_left(tmp_path: Path) -> None:
    kept = keep(SpillFiles(tmp_path), bytes(100))
    os.ftruncate(kept.file._descriptor, 60)
    with pytest.raises(
        AccessRefused, match=f"{tmp_path} cannot be read back: only 60 of 100 bytes at 0"
    ):
        kept.load()


def test_a_full_disk_is_an_error_with_folder_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SpillFiles(tmp_path)
    kept = keep(store, b"before")

    def no_room(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", no_room)
        with pytest.raises(AccessRefused) as refused:
            keep(store, b"too much")
    assert "No space left on device" in str(refused.value)
    assert str(tmp_path) in str(refused.value)
    assert "set option spoolPath" in str(refused.value)
    assert keep(store, b"after").load() == b"after"
    assert kept.load() == b"before"


def test_a_write_that_takes_only_a_part_goes_on_with_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: whole(file, data[:7], at))
    assert keep(SpillFiles(tmp_path), b"0123456789" * 5).load() == b"0123456789" * 5


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AccessRefused, match=r"file.* cannot be written"):
        keep(SpillFiles(tmp_path / "file" / "below"), b"x")
