"""Contents of large objects are read once, by the capture, and delivered to all its readers."""

from __future__ import annotations

import pytest

from connector.object_contents.test_contents import (
    LOBS,
    content,
    pictures,
    row,
    serving,
    without,
)
from connector.reading.conftest import SharedPlace
from harness.capture.driving import anchor_of, drained
from harness.capture.snapshots import until_snapshots_are_done
from harness.runs.patience import wait_until

SIZES = (0, 1, 32_000, 500_000)


def data_of(size: int) -> bytes:
    return bytes(n % 251 for n in range(size))


@pytest.mark.only_in_all
def test_each_reader_gets_contents_that_were_read_once(at: SharedPlace) -> None:
    """The objects are gone before the second reader comes."""
    with serving() as files, at.capturing(files.port, **LOBS, lobMaxBytes="1000000") as running:
        handles = [files.object(data_of(size)) for size in SIZES]
        page = files.object("page für Zoë".encode())
        with at.reader("two") as made:
            start = anchor_of(made)
        last = files.insert(*((n, each, None) for n, each in enumerate(handles)), (9, None, page))
        with at.reader("one") as made:
            first, _ = drained(made, start, last)
        wait_until(lambda: running.process.state.spool_rows == len(first))
        opens = files.server.sbspace.opens
        for number, each in enumerate(handles):
            files.delete(row(number, each))
        with at.reader("two") as made:
            second, _ = drained(made, start, last)
        assert files.server.sbspace.opens == opens == len(SIZES) + 1
    assert pictures(first) == [*(content(data_of(size)) for size in SIZES), None]
    assert first[-1]["page"] == content("page für Zoë")
    assert second[: len(first)] == first


@pytest.mark.only_in_all
def test_a_content_above_the_limit_has_its_size(at: SharedPlace) -> None:
    with serving() as files, at.capturing(files.port, **LOBS, lobMaxBytes="1000"), at.reader() as made:
        start = anchor_of(made)
        last = files.insert((1, files.object(b"x" * 1001), None), (2, files.object(b"y"), None))
        rows, _ = drained(made, start, last)
    assert pictures(rows) == [without("too_large", 1001), content(b"y")]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_the_snapshot_has_contents_too(at: SharedPlace) -> None:
    with serving() as files:
        for number in range(5):
            files.insert((number, files.object(b"%d" % number), files.object(b"page")))
        options = {**LOBS, "initialSnapshot": "all", "snapshotChunkRows": "2"}
        with at.capturing(files.port, **options), at.reader() as made:
            rows, _ = until_snapshots_are_done(made, anchor_of(made))
    assert sorted(each["content"] for each in pictures(rows)) == [b"%d" % n for n in range(5)]
    assert {each["page"]["content"] for each in rows} == {"page"}


@pytest.mark.only_in_all
def test_a_capture_that_is_stopped_reads_the_contents_of_missed_changes(at: SharedPlace) -> None:
    with serving() as files:
        with at.capturing(files.port, **LOBS), at.reader() as made:
            start = anchor_of(made)
        last = files.insert((1, files.object(b"missed"), None))
        with at.capturing(files.port, **LOBS), at.reader() as made:
            rows, _ = drained(made, start, last)
    assert pictures(rows) == [content(b"missed")]
