"""A shared capture, its readers, or both die anywhere: each reader gets each row once, in order."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.capture.capture_process import capture_command
from harness.capture.driving import Served, insert
from harness.capture.shared_batches import changes_in, comparable, read_shared, reading_on
from harness.oracles.long_workload import LongWorkload
from harness.runs.deaths import die_at
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import listening_stores

pytestmark = pytest.mark.slow  # processes of their own

SMALL = {"maxRowsPerTrigger": "20"}


def only_in_all(*places: str) -> list[object]:
    return [pytest.param(place, marks=pytest.mark.only_in_all) for place in places]


CAPTURE_PLACES = [
    "spool.before_manifest@3",
    "daemon.before_trim@2",
    *only_in_all(
        "capture.after_lo_read@3",
        "capture.in_assembly@2",
        "capture.before_flush@2",
        "segment.before_sync@2",
        "journal.before_append@2",
        "journal.after_append@2",
        "replace_file.before_rename@2",
        "replace_file.after_rename@2",
        "replace_file.after_rename@5",
        "daemon.before_publish@2",
        "spool.before_unlink@2",
    ),
]
BEGINNINGS = [  # before there is a stream, or before readers know of it
    "daemon.before_publish",
    *only_in_all("replace_file.before_rename", "replace_file.after_rename", "capture.after_lo_read"),
]
READER_PLACES = [
    "readers.before_update@5",
    *only_in_all(
        "reader.anchored",
        "reader.latest_offset@4",
        "reader.partitions",
        "reader.partitions@4",
        "reader.read@3",
        "reader.commit",
        "reader.commit@3",
        "readers.before_update",
        "replace_file.before_rename",
        "replace_file.after_rename",
        "replace_file.before_rename@4",
        "replace_file.after_rename@4",
    ),
]
WHILE_IDLE = "reader.latest_offset@25"  # it is reached without a capture too
BOTH = [  # the reader dies first, or the capture, for whose trims a reader has to read on
    ("spool.before_manifest@2", "reader.partitions@2"),
    *(
        pytest.param(*each, marks=pytest.mark.only_in_all)
        for each in (
            ("replace_file.after_rename@2", "readers.before_update@4"),
            ("segment.before_sync", "reader.anchored"),
            ("capture.before_flush", "reader.read@2"),
            ("capture.in_assembly", "reader.commit@2"),
            ("daemon.before_trim@2", WHILE_IDLE),
            ("spool.before_unlink", WHILE_IDLE),
        )
    ),
]


@pytest.mark.fault(
    fault="`informix-cdc capture` dies at a failpoint: session, segment, manifest, publication, trim",
    outcome="after a restart each reader gets each row once, in order, without a restart of its own",
)
@pytest.mark.parametrize("place", rest_in_all(CAPTURE_PLACES))
@pytest.mark.only_in_all
def test_a_capture_that_dies_loses_and_repeats_nothing(
    place: str, tmp_path: Path, served: Served
) -> None:
    server, listening = served
    work = LongWorkload(server, 1)
    with capture_command(tmp_path, listening.port) as command:
        capture = command.begin()
        with reading_on(command.spool, tmp_path / "one", **SMALL) as reading:
            reading.until(1)
            with work.going_on():
                command.arm(place)
                command.until_dead(capture)
            command.start()
            reading.until(_finished(work), command.printed)
    assert changes_in(reading.kept) == comparable(work.changes())


@pytest.mark.fault(
    fault="`informix-cdc capture` dies before its readers know of its stream",
    outcome="after a restart a reader gets each row that is committed since it began",
)
@pytest.mark.parametrize("place", BEGINNINGS)
@pytest.mark.only_in_all
def test_a_capture_that_dies_at_its_beginning_begins_again(
    place: str, tmp_path: Path, served: Served
) -> None:
    server, listening = served
    work = LongWorkload(server, 2)
    with capture_command(tmp_path, listening.port) as command:
        command.arm(place)
        command.until_dead(command.start())
        command.begin()
        with reading_on(command.spool, tmp_path / "one", **SMALL) as reading:
            reading.until(1)
            work.steps(60)
            reading.until(_finished(work), command.printed)
    assert changes_in(reading.kept) == comparable(work.changes())


@pytest.mark.fault(
    fault="the query of a shared capture dies at a failpoint of its reader",
    outcome="its planned batch comes again, equal; after it each row once, in order",
)
@pytest.mark.parametrize("place", READER_PLACES)
@pytest.mark.only_in_all
def test_a_reader_that_dies_loses_and_repeats_nothing(
    place: str, tmp_path: Path, served: Served
) -> None:
    server, listening = served
    work = LongWorkload(server, 3)
    with capture_command(tmp_path, listening.port) as command:
        command.begin()
        with work.going_on():
            die_at(place, _read_small, command.spool, tmp_path / "one")
        kept = read_shared(command.spool, tmp_path / "one", _finished(work), options=SMALL)
    assert changes_in(kept) == comparable(work.changes())


@pytest.mark.fault(
    fault="`informix-cdc capture` and a query of it die at failpoints at the same time",
    outcome="each row once, in order, whichever starts first",
)
@pytest.mark.parametrize(("capture_place", "reader_place"), BOTH)
def test_a_capture_and_its_reader_that_die_lose_and_repeat_nothing(
    capture_place: str, reader_place: str, tmp_path: Path, served: Served
) -> None:
    server, listening = served
    work = LongWorkload(server, 4)
    with capture_command(tmp_path, listening.port) as command:
        capture = command.begin()
        with work.going_on(), ThreadPoolExecutor(1) as beside:
            reader = beside.submit(die_at, reader_place, _read_small, command.spool, tmp_path / "one")
            if reader_place != WHILE_IDLE:
                reader.result()
            command.arm(capture_place)
            command.until_dead(capture)
            reader.result()
        command.start()
        kept = read_shared(command.spool, tmp_path / "one", _finished(work), options=SMALL)
    assert changes_in(kept) == comparable(work.changes())


def _read_small(capture: Path, checkpoint: Path) -> None:
    """Read batches of a few rows in a process of its own."""
    read_shared(capture, checkpoint, options=SMALL)


def _finished(work: LongWorkload) -> int:
    """End what is open, and return the last commit."""
    work.finish()
    return work.committed[-1].commit


@pytest.fixture
def served() -> Iterator[Served]:
    with listening_stores() as (server, listening):
        yield server, listening


@pytest.mark.fault(
    fault="`informix-cdc capture` dies before its readers know of the stream that follows a data loss",
    outcome="after a restart readers get the previous stream's rows, then the new one's",
)
@pytest.mark.parametrize(
    "place",
    ["daemon.before_publish", *only_in_all("replace_file.after_rename@2")],
)
@pytest.mark.only_in_all
def test_a_capture_that_dies_after_a_data_loss_leaves_the_stream_again(
    place: str, tmp_path: Path
) -> None:
    small = listening_stores(log_pages=4, log_count=3)
    with (
        small as (server, listening),
        capture_command(tmp_path, listening.port, onDataLoss="continue") as command,
    ):
        first = command.begin()
        read_shared(command.spool, tmp_path / "one", 1)
        stored = insert(server, 1)
        read_shared(command.spool, tmp_path / "two", stored, options={"reader": "two"})
        first.terminate()
        first.wait()
        for _ in range(6):
            server.switch_log()
        command.arm(place)
        command.until_dead(command.start())
        command.start()
        with reading_on(command.spool, tmp_path / "one") as reading:
            wait_until(lambda: len({each["stream"] for each in reading.kept.offsets}) == 2)
            reading.until(insert(server, 2), command.printed)
    assert [change[1] for change in changes_in(reading.kept)] == [1, 2]
