"""Copies of segments under a URL: there before the manifest names them, and gone with them."""

from __future__ import annotations

import logging
import pickle
import zlib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from checkpoints.spool.spools import (
    SCHEMA,
    batch,
    fill,
    open_spool,
)
from informix_capture_client.errors import AccessRefused
from informix_capture_client.positions import Position
from informix_checkpoints.spool import copies as segment_copies
from informix_checkpoints.spool.copies import SegmentCopies
from informix_checkpoints.spool.manifest_files import load_manifest, save_manifest
from informix_checkpoints.spool.segments import Segment, SegmentRange
from informix_checkpoints.spool.spool import Spool
from informix_checkpoints.spool.stored_rows import in_row_form


def copies_in(folder: Path) -> SegmentCopies:
    return SegmentCopies(folder.as_uri(), "s1")


def copied_spool(tmp_path: Path, **changes: object) -> Spool:
    return open_spool(tmp_path / "spool", copies=copies_in(tmp_path / "copies"), **changes)


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "copies" / "s1").iterdir())


def numbers(copies: SegmentCopies, ranges: list[SegmentRange]) -> list[int]:
    batches = [in_row_form(stored) for wanted in ranges for stored in copies.stored_range(wanted)]
    return [n for found in batches for n in found.column("n").to_pylist()]


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


def many(count: int) -> list[pa.RecordBatch]:
    """Two batches of rows that compress well, ten to a transaction."""
    rows = [(n % 7, 110 + n // 10) for n in range(count)]
    return [batch(*rows[: count // 2]), batch(*rows[count // 2 :])]


def test_a_copy_is_a_compressed_file_of_the_same_batches_that_any_tool_opens(tmp_path: Path) -> None:
    spool = copied_spool(tmp_path)
    segment = spool.append(SCHEMA, many(4000), Position(600, 600))
    (copy,) = files(tmp_path)
    assert copy.stat().st_size < segment.size_bytes / 2
    ours, theirs = pa.ipc.open_file(tmp_path / "spool" / segment.file), pa.ipc.open_file(copy)
    assert theirs.schema.equals(ours.schema, check_metadata=True)
    assert theirs.num_record_batches == 2
    assert all(theirs.get_batch(n).equals(ours.get_batch(n)) for n in range(2))


@pytest.mark.slow
def test_every_range_of_a_copy_is_that_of_its_segment(tmp_path: Path) -> None:
    spool = copied_spool(tmp_path)
    spool.append(SCHEMA, many(40), Position(600, 600))
    [whole] = spool.between((100, 0), (600, 0))
    wanted = [n % 7 for n in range(40)]
    for first in range(40):
        for end in range(first + 1, 41):
            found = numbers(copies_in(tmp_path / "copies"), [whole.part(first, end)])
            assert found == wanted[first:end]


def test_what_a_copy_holds_is_said_by_the_manifest_and_by_every_range(tmp_path: Path) -> None:
    spool = copied_spool(tmp_path)
    fill(spool)
    facts = [(path.stat().st_size, zlib.crc32(path.read_bytes())) for path in files(tmp_path)]
    kept = load_manifest(tmp_path / "spool")
    assert kept is not None
    assert [(s.copy_bytes, s.copy_checksum) for s in kept.segments] == facts
    assert [(r.copy_bytes, r.copy_checksum) for r in spool.between((100, 0), (140, 0))] == facts


def test_a_segment_that_is_damaged_before_it_is_copied_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = SegmentCopies.put

    def damage_and_put(copies: SegmentCopies, path: Path, segment: Segment) -> Segment:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
        return put(copies, path, segment)

    monkeypatch.setattr(SegmentCopies, "put", damage_and_put)
    spool = copied_spool(tmp_path)
    with pytest.raises(AccessRefused, match="differs from what was written"):
        fill(spool)
    assert len(spool.manifest.segments) == 0


def test_an_empty_file_is_no_copy_of_a_segment_that_was_not_copied(tmp_path: Path) -> None:
    first = copied_spool(tmp_path)
    fill(first)
    bare = tuple(replace(each, copy_bytes=0, copy_checksum=0) for each in first.manifest.segments)
    save_manifest(replace(first.manifest, segments=bare), tmp_path / "spool", durable=False)
    for path in files(tmp_path):
        path.write_bytes(b"")
    first.close()
    second = copied_spool(tmp_path)
    assert numbers(copies_in(tmp_path / "copies"), second.between((100, 0), (140, 0))) == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_the_range_of_a_spool_without_copies_finds_none(tmp_path: Path) -> None:
    with_copies, without = copied_spool(tmp_path), open_spool(tmp_path / "other")
    fill(with_copies)
    fill(without)
    assert [s.checksum for s in without.between((100, 0), (140, 0))] == [
        s.checksum for s in with_copies.between((100, 0), (140, 0))
    ]
    with pytest.raises(AccessRefused, match="differs from what was written"):
        numbers(copies_in(tmp_path / "copies"), without.between((100, 0), (140, 0)))


def test_a_copy_of_another_size_than_the_driver_says_is_not_read(tmp_path: Path) -> None:
    spool = copied_spool(tmp_path)
    fill(spool)
    wanted = spool.between((100, 0), (120, 0))[0]
    with pytest.raises(AccessRefused, match="differs from what was written"):
        numbers(copies_in(tmp_path / "copies"), [replace(wanted, copy_bytes=wanted.copy_bytes + 1)])


def test_trimming_removes_the_copies_too(tmp_path: Path) -> None:
    spool = copied_spool(tmp_path)
    fill(spool)
    spool.trim((120, 0))
    assert len(files(tmp_path)) == 1
    assert numbers(copies_in(tmp_path / "copies"), spool.between((120, 0), (140, 0))) == [4, 5]


def test_a_copy_that_lost_its_content_with_the_power_is_made_again(tmp_path: Path) -> None:
    first = copied_spool(tmp_path)
    fill(first)
    first.close()
    torn, whole = files(tmp_path)
    torn.write_bytes(bytes(torn.stat().st_size))
    before = whole.stat().st_mtime_ns
    again = copied_spool(tmp_path)
    assert numbers(copies_in(tmp_path / "copies"), again.between((100, 0), (140, 0))) == [1, 2, 3, 4, 5]
    assert whole.stat().st_mtime_ns == before  # what is whole stays as it is


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


def test_a_whole_copy_is_never_written_again(tmp_path: Path) -> None:
    first = copied_spool(tmp_path)
    fill(first)
    written = [path.stat() for path in files(tmp_path)]
    first.close()
    copied_spool(tmp_path)
    again = [path.stat() for path in files(tmp_path)]
    assert [(s.st_ino, s.st_mtime_ns) for s in again] == [(s.st_ino, s.st_mtime_ns) for s in written]


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


def test_half_a_copy_of_a_process_that_died_is_written_again(tmp_path: Path) -> None:
    first = copied_spool(tmp_path)
    fill(first)
    first.close()
    files(tmp_path)[0].write_bytes(b"half")
    second = copied_spool(tmp_path)
    assert numbers(copies_in(tmp_path / "copies"), second.between((100, 0), (140, 0))) == [
        1,
        2,
        3,
        4,
        5,
    ]


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
