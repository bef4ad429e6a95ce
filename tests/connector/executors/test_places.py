"""Where executors find rows: the nearest place that has them, and an error that names them all."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints.spool.spools import DELIVERY, fill, open_spool
from connector.executors.served_folder import ServedFolder
from informix_capture_client.errors import AccessRefused
from informix_cdc.executors import flight_client
from informix_cdc.executors.flight_protocol import Credentials, FlightAddress
from informix_cdc.executors.places import SegmentPlaces
from informix_checkpoints.spool import segments
from informix_checkpoints.spool.copies import SegmentCopies
from informix_checkpoints.spool.segments import SegmentRange
from informix_checkpoints.spool.spool import Spool

NOBODY = FlightAddress("127.0.0.1", 1, "t0ken", Credentials(b"", b"", b""))


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """A spool of five rows, with copies beside it."""
    made = open_spool(tmp_path / "spool", copies=copies_in(tmp_path))
    fill(made)
    yield made
    made.close()


@pytest.fixture
def server(spool: Spool) -> Iterator[ServedFolder]:
    made = ServedFolder(spool.folder)
    yield made
    made.shutdown()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_client, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(flight_client, "_UNREACHABLE_SECONDS", 0.5)


def copies_in(folder: Path) -> SegmentCopies:
    return SegmentCopies((folder / "copies").as_uri(), "s1")


def numbers(places: SegmentPlaces, spool: Spool) -> list[int]:
    return numbers_in(places, spool.between((100, 0), (140, 0)))


def numbers_in(places: SegmentPlaces, planned: list[SegmentRange]) -> list[int]:
    rows = DELIVERY.rows(places.stored(planned))
    return [n for batch in rows for n in batch.column("n").to_pylist()]


def lose_files(spool: Spool) -> None:
    for path in spool.folder.glob("*.arrow"):
        path.unlink()


def lose_copies(folder: Path) -> None:
    for path in (folder / "copies").rglob("*.arrow"):
        path.unlink()


def damage_files(spool: Spool) -> None:
    for path in spool.folder.glob("*.arrow"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)


def test_the_file_is_read_where_it_is_there(spool: Spool) -> None:
    places = SegmentPlaces("files")
    assert numbers(places, spool) == [1, 2, 3, 4, 5]


def test_a_copy_is_read_where_the_file_is_gone(spool: Spool, tmp_path: Path) -> None:
    planned = spool.between((100, 0), (140, 0))
    lose_files(spool)
    places = SegmentPlaces("files", copies_in(tmp_path))
    assert numbers_in(places, planned) == [1, 2, 3, 4, 5]


@pytest.mark.fault(
    fault="a segment's file holds differs from what was written, on the driver's host or another",
    outcome="passed over by its checksum; the copy instead",
)
def test_a_file_with_other_bytes_is_passed_over(
    spool: Spool, server: ServedFolder, tmp_path: Path
) -> None:
    damage_files(spool)
    by_copy = SegmentPlaces("files", copies_in(tmp_path))
    assert numbers(by_copy, spool) == [1, 2, 3, 4, 5]
    with pytest.raises(AccessRefused, match="differs from what was written"):
        numbers(SegmentPlaces("files"), spool)


def test_a_file_is_compared_once_in_a_process_and_again_when_it_changes(spool: Spool) -> None:
    segments._file_checksum.cache_clear()
    places = SegmentPlaces("files")
    assert numbers(places, spool) == numbers(places, spool)
    assert segments._file_checksum.cache_info().misses == 2
    for path in spool.folder.glob("*.arrow"):
        os.utime(path, ns=(0, 0))  # as after a change; a file's time has a coarse grain
    damage_files(spool)
    with pytest.raises(AccessRefused, match="differs from what"):
        numbers(places, spool)


def test_a_damaged_file_is_refused_whichever_byte_it_is(spool: Spool) -> None:
    """Arrow alone would read beyond its buffers, or give another value."""
    planned = spool.between((100, 0), (140, 0))[0]
    path, sound = Path(planned.path), Path(planned.path).read_bytes()
    places = SegmentPlaces("files")
    for at in range(0, len(sound), 7):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x81]) + sound[at + 1 :])
        segments._file_checksum.cache_clear()  # a file's time has a coarse grain
        with pytest.raises(AccessRefused, match="differs from what was written") as refused:
            numbers_in(places, [planned])
        assert "captured again" in refused.value.remedy
    path.write_bytes(sound)
    segments._file_checksum.cache_clear()
    assert numbers_in(places, [planned]) == [1, 2, 3]


def test_a_file_that_changes_after_it_was_compared_is_no_error_of_arrow_and_is_passed_over(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = spool.between((100, 0), (140, 0))[0]
    path = Path(planned.path)
    path.write_bytes(path.read_bytes()[:-6] + b"ARROW?")
    monkeypatch.setattr(segments, "_file_checksum", lambda *_: planned.checksum)
    with pytest.raises(AccessRefused, match="is not a valid segment"):
        numbers_in(SegmentPlaces("files"), [planned])
    assert numbers_in(SegmentPlaces("files", copies_in(tmp_path)), [planned]) == [1, 2, 3]


def test_a_change_that_hides_its_time_is_seen(spool: Spool) -> None:
    """As by a tool that restores files with their times."""
    places = SegmentPlaces("files")
    assert numbers(places, spool) == [1, 2, 3, 4, 5]
    for path in spool.folder.glob("*.arrow"):
        os.utime(path, ns=(0, 0))
    assert numbers(places, spool) == [1, 2, 3, 4, 5]
    before = {path: path.stat().st_ctime_ns for path in spool.folder.glob("*.arrow")}
    damage_files(spool)
    for path, changed_ns in before.items():
        os.utime(path, ns=(0, 0))
        while path.stat().st_ctime_ns == changed_ns:  # the file system's clock has a coarse grain
            os.utime(path, ns=(0, 0))
    with pytest.raises(AccessRefused, match="differs from what"):
        numbers(places, spool)


def test_what_the_server_would_send_of_a_damaged_file_is_refused_as_well(
    spool: Spool, server: ServedFolder
) -> None:
    planned = spool.between((100, 0), (140, 0))[0]
    damage_files(spool)
    with pytest.raises(AccessRefused, match=r"Flight server .* differs from"):
        numbers_in(SegmentPlaces("flight", None, server.address), [planned])


def test_flight_alone_looks_at_no_file(spool: Spool, server: ServedFolder) -> None:
    assert numbers(SegmentPlaces("flight", None, server.address), spool) == [1, 2, 3, 4, 5]
    with pytest.raises(AccessRefused, match=r"127\.0\.0\.1:1 cannot be reached"):
        numbers(SegmentPlaces("flight", None, NOBODY), spool)


@pytest.mark.fault(
    fault="an executor reaches neither folder nor copy",
    outcome="IFXCDC-0002 that names every place and the remedy",
)
def test_an_executor_that_reaches_nothing_is_told_every_place_and_the_remedy(
    spool: Spool, tmp_path: Path
) -> None:
    planned = spool.between((100, 0), (140, 0))[0]
    lose_files(spool)
    lose_copies(tmp_path)
    with pytest.raises(AccessRefused) as caught:
        numbers_in(SegmentPlaces("files", copies_in(tmp_path)), [planned])
    said = str(caught.value)
    assert f"spool segment {planned.file} cannot be read on this host" in said
    for place in (planned.path, (tmp_path / "copies").as_uri()):
        assert place in said
    for remedy in ("spoolPath", "segmentCopies", "delivery"):
        assert remedy in said


def test_files_only_means_that_no_server_is_told_of(spool: Spool) -> None:
    planned = spool.between((100, 0), (140, 0))[0]
    lose_files(spool)
    with pytest.raises(AccessRefused, match=r"segmentCopies .*, or delivery") as caught:
        numbers_in(SegmentPlaces("files"), [planned])
    assert "Flight server" not in str(caught.value)


def test_the_token_travels_with_the_places_and_shows_in_none_of_their_texts() -> None:
    places = SegmentPlaces("flight", None, NOBODY)
    assert b"t0ken" in pickle.dumps(places)
    assert "t0ken" not in f"{places} {places!r} {NOBODY} {NOBODY!r}"
