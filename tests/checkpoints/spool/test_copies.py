"""Copies of segments under a URL: there before the manifest names them, and gone with them."""

from __future__ import annotations

import logging
import pickle
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import fs

from checkpoints.spool.spools import DELIVERY, SCHEMA, batch, fill, open_spool
from informix_capture_client.errors import AccessRefused
from informix_capture_client.positions import Position
from informix_checkpoints.spool import copies as segment_copies
from informix_checkpoints.spool.copies import SegmentCopies
from informix_checkpoints.spool.segments import Segment, SegmentRange
from informix_checkpoints.spool.spool import Spool


def copies_in(folder: Path) -> SegmentCopies:
    return SegmentCopies(folder.as_uri(), "s1")


def copied_spool(tmp_path: Path, **changes: object) -> Spool:
    return open_spool(tmp_path / "spool", copies=copies_in(tmp_path / "copies"), **changes)


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "copies" / "s1").iterdir())


def numbers(copies: SegmentCopies, ranges: list[SegmentRange]) -> list[int]:
    stored = [batch for wanted in ranges for batch in copies.stored_range(wanted)]
    return [n for found in DELIVERY.rows(stored) for n in found.column("n").to_pylist()]


def test_the_copies_hold_the_rows_that_the_spool_holds(tmp_path: Path) -> None:
    spool = copied_spool(tmp_path)
    fill(spool)
    ranges = spool.between((110, 0), (130, 0))
    for segment in (tmp_path / "spool").glob("*.arrow"):
        segment.unlink()
    travelled = pickle.loads(pickle.dumps(copies_in(tmp_path / "copies")))
    assert numbers(travelled, ranges) == [3, 4]


def test_a_copy_is_there_before_the_manifest_names_its_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(
        "informix_checkpoints.spool.spool.failpoint",
        lambda name: seen.append((name, len(files(tmp_path)), len(spool.manifest.segments))),
    )
    spool = copied_spool(tmp_path)
    fill(spool)
    before = [entry for entry in seen if entry[0] == "spool.before_manifest"]
    assert [counts[1:] for counts in before] == [(1, 0), (2, 1)]


def test_a_copy_is_its_segments_file_under_a_name_with_its_checksum(tmp_path: Path) -> None:
    spool = copied_spool(tmp_path)
    fill(spool)
    for path, segment in zip(files(tmp_path), spool.manifest.segments, strict=True):
        content = path.read_bytes()
        assert content == (tmp_path / "spool" / segment.file).read_bytes()
        assert (len(content), zlib.crc32(content)) == (segment.size_bytes, segment.checksum)
        assert path.name == f"{Path(segment.file).stem}-{segment.checksum:08x}.arrow"


def test_a_segment_that_is_damaged_before_it_is_copied_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = SegmentCopies.put

    def damage_and_put(copies: SegmentCopies, path: Path, segment: Segment) -> None:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
        put(copies, path, segment)

    monkeypatch.setattr(SegmentCopies, "put", damage_and_put)
    spool = copied_spool(tmp_path)
    with pytest.raises(AccessRefused, match="differs from what was written"):
        fill(spool)
    assert len(spool.manifest.segments) == 0


def test_a_copy_of_another_size_than_the_driver_says_is_not_read(tmp_path: Path) -> None:
    spool = copied_spool(tmp_path)
    fill(spool)
    wanted = spool.between((100, 0), (120, 0))[0]
    with pytest.raises(AccessRefused, match="differs from what was written"):
        numbers(copies_in(tmp_path / "copies"), [replace(wanted, size_bytes=wanted.size_bytes + 1)])


def test_trimming_removes_the_copies_too(tmp_path: Path) -> None:
    spool = copied_spool(tmp_path)
    fill(spool)
    spool.trim((120, 0))
    assert len(files(tmp_path)) == 1
    assert numbers(copies_in(tmp_path / "copies"), spool.between((120, 0), (140, 0))) == [4, 5]


@pytest.mark.parametrize("left", [b"half", b"", None], ids=["half", "nothing", "zeros"])
def test_a_copy_that_a_crash_has_left_torn_is_made_again(left: bytes | None, tmp_path: Path) -> None:
    first = copied_spool(tmp_path)
    fill(first)
    first.close()
    torn, whole = files(tmp_path)
    torn.write_bytes(bytes(torn.stat().st_size) if left is None else left)
    before = whole.stat()
    again = copied_spool(tmp_path)
    assert numbers(copies_in(tmp_path / "copies"), again.between((100, 0), (140, 0))) == [1, 2, 3, 4, 5]
    after = whole.stat()  # what is whole stays as it is
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_opening_a_spool_adds_the_copies_that_are_missing_and_removes_those_too_many(
    tmp_path: Path,
) -> None:
    first = open_spool(tmp_path / "spool")
    fill(first)
    first.close()
    stranger = tmp_path / "copies" / "s1" / "000009-000000000000-00000000.arrow"
    stranger.parent.mkdir(parents=True)
    stranger.write_bytes(b"of a process that died")
    second = copied_spool(tmp_path)
    assert len(files(tmp_path)) == 2
    assert numbers(copies_in(tmp_path / "copies"), second.between((100, 0), (140, 0))) == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_a_stream_captured_again_does_not_meet_the_copies_of_its_former_life(tmp_path: Path) -> None:
    first = copied_spool(tmp_path)
    first.append(SCHEMA, [batch((1, 110), (2, 110), (3, 120))], Position(120, 115))
    former = files(tmp_path)
    [planned] = first.between((100, 0), (120, 0))
    first.close()
    second = open_spool(tmp_path / "other", copies=copies_in(tmp_path / "copies"))
    second.append(SCHEMA, [batch((1, 110), (2, 110))], Position(110, 115))
    [wanted] = second.between((100, 0), (110, 0))
    assert wanted.file == planned.file
    assert not set(former) & set(files(tmp_path))
    assert numbers(copies_in(tmp_path / "copies"), [wanted]) == [1, 2]
    with pytest.raises(AccessRefused, match="No such file"):
        numbers(copies_in(tmp_path / "copies"), [planned])


@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_a_copy_that_is_not_what_was_written_is_not_read(damage: str, tmp_path: Path) -> None:
    spool = copied_spool(tmp_path)
    fill(spool)
    path = files(tmp_path)[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    {
        "cut": lambda: path.write_bytes(content[:-10]),
        "flip": lambda: path.write_bytes(content),
        "remove": path.unlink,
    }[damage]()
    with pytest.raises(AccessRefused, match=r"differs from what was written|No such file"):
        numbers(copies_in(tmp_path / "copies"), spool.between((100, 0), (120, 0)))


def test_a_place_that_cannot_be_written_is_named_when_the_spool_is_opened(tmp_path: Path) -> None:
    (tmp_path / "copies").write_text("a file where a folder should be")
    with pytest.raises(AccessRefused, match="segmentCopies") as caught:
        copied_spool(tmp_path)
    assert (tmp_path / "copies").as_uri() in str(caught.value)
    assert not caught.value.is_temporary  # it will not mend itself


def test_a_copy_that_cannot_be_made_leaves_the_spool_as_it_was(tmp_path: Path) -> None:
    spool = copied_spool(tmp_path)
    fill(spool)
    for path in files(tmp_path):
        path.unlink()
    (tmp_path / "copies" / "s1").rmdir()
    with pytest.raises(AccessRefused, match="the copies of segments under"):
        spool.append(SCHEMA, [batch((6, 150))], Position(150, 150))
    assert (spool.manifest.end, len(spool.manifest.segments)) == (Position(140, 135), 2)


def test_where_nothing_can_be_moved_a_copy_is_written_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "copies").mkdir()
    bucket = fs.SubTreeFileSystem(str(tmp_path / "copies"), fs.LocalFileSystem())
    monkeypatch.setattr(segment_copies, "_opened", lambda url: (bucket, url.removeprefix("s3://")))
    copies = SegmentCopies("s3://bucket/", "s1")
    spool = open_spool(tmp_path / "spool", copies=copies)
    fill(spool)
    assert numbers(copies, spool.between((100, 0), (140, 0))) == [1, 2, 3, 4, 5]
    left = (tmp_path / "copies" / "bucket" / "s1").iterdir()
    assert all(path.suffix == ".arrow" for path in left)


def test_a_copy_that_cannot_be_removed_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = copied_spool(tmp_path)
    fill(spool)
    path = files(tmp_path)[0]
    path.unlink()
    path.mkdir()
    with caplog.at_level(logging.WARNING):
        spool.trim((120, 0))
    (record,) = caplog.records
    assert f"event=copy_not_removed file={path.name} place=" in record.getMessage()
    assert len(spool.manifest.segments) == 1
