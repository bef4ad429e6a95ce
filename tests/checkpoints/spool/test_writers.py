"""One writer at a time, each with a higher number, and a manifest of another version is refused."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from checkpoints.spool.spools import (
    SCHEMA,
    batch,
    fill,
    numbers,
    open_spool,
)
from harness.runs.patience import patiently
from informix_capture_client.errors import AccessRefused, DataLoss
from informix_capture_client.positions import Position
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.spool import manifest_files as manifests
from informix_checkpoints.spool import writer_lock
from informix_checkpoints.spool.writer_lock import WriterLock

HERE = os.getpid() if Path("/proc/locks").exists() else None


@contextlib.contextmanager
def ending(caplog: pytest.LogCaptureFixture, event: str, act: Callable[[], None]) -> Iterator[None]:
    """Act when an event is logged."""

    def filtered(record: logging.LogRecord) -> bool:
        if getattr(record, "event", "") == event:
            act()
        return True

    caplog.handler.addFilter(filtered)
    yield
    caplog.handler.removeFilter(filtered)


def test_each_writer_has_a_higher_number_than_the_one_before(tmp_path: Path) -> None:
    fences = []
    for _ in range(3):
        lock = WriterLock(tmp_path, 0)
        lock.take_number()
        fences.append(lock.fence)
        lock.release()
    assert fences == [1, 2, 3]


def test_a_newcomer_waits_for_the_former_writer_and_then_gets_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so once, with the number of the process, and again when it goes on."""
    former = WriterLock(tmp_path, 0)
    former.take_number()
    waits = threading.Event()
    threading.Thread(target=lambda: waits.wait() and former.release(), daemon=True).start()
    caplog.set_level(logging.INFO)
    with ending(caplog, "spool_awaited", waits.set):
        newcomer = WriterLock(tmp_path, patiently(5))
    newcomer.take_number()
    assert newcomer.fence == former.fence + 1
    newcomer.release()
    awaited, taken = [cast("Any", record) for record in caplog.records]
    assert (awaited.event, taken.event) == ("spool_awaited", "spool_taken_over")
    assert awaited.facts == {"spool": tmp_path, "process": HERE, "most_seconds": patiently(5)}


def test_a_newcomer_is_refused_when_the_former_writer_stays(tmp_path: Path) -> None:
    former = WriterLock(tmp_path, 0)
    with pytest.raises(AccessRefused, match="another query is writing to the spool") as refused:
        WriterLock(tmp_path, 0.2)
    assert (f"(process {HERE})" in refused.value.message) == (HERE is not None)
    former.release()
    WriterLock(tmp_path, 0).release()


def test_a_folder_that_nobody_writes_is_not_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    WriterLock(tmp_path, 5).release()
    assert not caplog.records


def test_where_the_kernel_names_no_holder_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system without /proc, or a lock of another container, whose processes have no number here."""
    locks = tmp_path / "locks"
    monkeypatch.setattr(writer_lock, "_LOCKS", locks)
    former = WriterLock(tmp_path / "spool", 0)
    inode = (tmp_path / "spool" / writer_lock.FILE_NAME).stat()
    device = f"{os.major(inode.st_dev):02x}:{os.minor(inode.st_dev):02x}:{inode.st_ino}"
    for text, told in (
        (None, "spool."),
        (f"1: FLOCK  ADVISORY  WRITE 0 {device} 0 EOF\n", "spool."),
        (f"1: POSIX  ADVISORY  WRITE 7 {device} 0 EOF\n", "spool."),
        (f"1: -> FLOCK  ADVISORY  WRITE 7 {device} 0 EOF\n", "spool."),
        (f"1: FLOCK  ADVISORY  WRITE 7 {device} 0 EOF\n", "spool (process 7)."),
    ):
        if text is not None:
            locks.write_text(text)
        with pytest.raises(AccessRefused) as refused:
            WriterLock(tmp_path / "spool", 0)
        assert refused.value.message.endswith(told)
    former.release()


@pytest.mark.fault(
    fault="a writer whose lock was lost comes back",
    outcome="it finds a higher number and writes nothing: IFXCDC-0002",
)
def test_a_writer_that_was_thought_dead_writes_nothing_more(tmp_path: Path) -> None:
    """On a file system that has lost the lock, the number still tells the two apart."""
    sleeper = open_spool(tmp_path)
    fill(sleeper)
    (tmp_path / "writer.lock").unlink()  # as a server of network locks that forgot
    newcomer = open_spool(tmp_path)
    (tmp_path / "writer.lock").write_bytes(b"2")
    with pytest.raises(AccessRefused, match="now has writer number 2, but this query has number 1"):
        sleeper.append(SCHEMA, [batch((6, 150))], Position(150, 145))
    with pytest.raises(AccessRefused, match="now has writer number 2, but this query has number 1"):
        sleeper.trim((120, 0))
    assert newcomer.manifest.end == Position(140, 135)
    assert numbers(open_spool(tmp_path / "other").between((100, 0), (100, 0))) == []


def test_a_writer_whose_folder_is_gone_says_so(tmp_path: Path) -> None:
    spool = open_spool(tmp_path / "spool")
    (tmp_path / "spool" / "writer.lock").unlink()
    with pytest.raises(AccessRefused, match="now has writer number 0"):
        fill(spool)


def test_two_writers_never_use_the_same_file_name(tmp_path: Path) -> None:
    first = open_spool(tmp_path)
    fill(first)
    first.close()
    second = open_spool(tmp_path)
    second.append(SCHEMA, [batch((6, 150))], Position(150, 145))
    assert sorted(path.name[:6] for path in tmp_path.glob("*.arrow")) == ["000001", "000001", "000002"]


def test_a_lost_lock_file_does_not_let_the_number_fall(tmp_path: Path) -> None:
    for _ in range(3):
        last = open_spool(tmp_path)
        fill(last) if not last.manifest.segments else last.trim((120, 0))
        last.close()
    (tmp_path / "writer.lock").unlink()
    spool = open_spool(tmp_path, Position(120, 115))
    spool.append(SCHEMA, [batch((6, 150))], Position(150, 145))
    found = manifests.load_manifest(tmp_path)
    assert found is not None
    assert found.fence > 2


def test_a_folder_removed_while_its_next_writer_waits_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    former = WriterLock(folder, 0)
    threading.Timer(0.3, former.remove_folder).start()
    newcomer = WriterLock(folder, 5)
    newcomer.take_number()
    newcomer.require_ours()
    newcomer.release()


def test_a_spool_that_was_discarded_lets_nothing_go_and_says_nothing(tmp_path: Path) -> None:
    """Spark's commit of the last batch may come while the stream is being left."""
    spool = open_spool(tmp_path / "spool")
    fill(spool)
    spool.discard()
    spool.trim((140, 0))
    assert not (tmp_path / "spool").exists()


def test_a_segment_that_somebody_removed_is_named_with_the_remedy(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    for path in tmp_path.glob("*.arrow"):
        path.unlink()
    with pytest.raises(AccessRefused, match=r"cannot be read: .*Start the query again"):
        spool.end_of_batch(Position(100, 90), BatchLimits(rows=1))
    with pytest.raises(AccessRefused, match=r"cannot be read: .*Start the query again"):
        spool.between((100, 0), (110, 0))


@pytest.mark.slow
@pytest.mark.fault(
    fault="a bit flips in the manifest",
    outcome="IFXCDC-0006 that names the file: move the folder away, the log is captured again",
    seeds="every bit of it",
)
def test_a_manifest_with_a_flipped_bit_is_refused_or_says_the_same(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    fill(spool)
    spool.close()
    path = tmp_path / manifests.FILE_NAME
    sound, meant = path.read_bytes(), manifests.load_manifest(tmp_path)
    for place in range(8 * len(sound)):
        flipped = bytearray(sound)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with contextlib.suppress(DataLoss):
            assert manifests.load_manifest(tmp_path) == meant  # a blank became another blank


@pytest.mark.parametrize("version", [0, 2, "1", None], ids=repr)
def test_a_manifest_of_an_unknown_version_is_refused_by_name(version: object, tmp_path: Path) -> None:
    (tmp_path / manifests.FILE_NAME).write_text(json.dumps({"version": version}))
    with pytest.raises(DataLoss, match=r"manifest.json is not a spool manifest of version 1"):
        manifests.load_manifest(tmp_path)
