"""Rows are removed that a reader has not read: it is told, or goes on at the first stored row."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.capture.driving import (
    Offset,
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    next_offset,
    numbers,
    rows_of,
)
from harness.capture.shared import RunningCapture, capturing, shared_reader
from harness.capture.told import told
from harness.runs.patience import wait_until
from informix_capture_client.errors import DataLoss
from informix_checkpoints.readers import Readers
from informix_checkpoints.requests import RequestFolder

FEW: dict[str, object] = {"retentionBytes": "12000"}  # bytes of a few segments of one row
MOST = 12_000
GOES_ON = {"onDataLoss": "continue"}


def fill(served: Served, running: RunningCapture, first: int, count: int = 12) -> int:
    """Insert one row after the other, each stored in a segment of its own."""
    spool = running.process.state.spool
    assert spool is not None
    commit = 0
    for number in range(first, first + count):
        commit = insert(served[0], number)
        wait_until(lambda at=commit: spool.manifest.end.commit >= at)  # type: ignore[misc]
    wait_until(lambda: spool.manifest.size_bytes <= MOST)
    return commit


def stored(running: RunningCapture) -> int:
    """Return the number of stored rows; each has its own commit."""
    return running.process.state.spool_rows


@pytest.mark.fault(
    fault="a reader is further behind than retentionBytes of its capture",
    outcome="IFXCDC-0006 with reader and remedy; with onDataLoss=continue from the first stored row",
)
def test_a_reader_that_is_too_far_behind_is_told_and_may_go_on(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with capturing(served[1].port, tmp_path, FEW) as running:
        with shared_reader(tmp_path, "slow") as made:
            start = anchor_of(made)
        wait_until(lambda: [each.done for each in running.process.readers] != [(0, 0)])
        last = fill(served, running, 1)
        kept = list(range(13 - stored(running), 13))
        assert 1 <= len(kept) < 12
        with shared_reader(tmp_path, "slow") as made:
            lost = failure_of(lambda: next_offset(made, start))
        assert isinstance(lost, DataLoss)
        assert "reader slow has not read" in str(lost)
        assert "onDataLoss" in str(lost)
        assert told(caplog, "rows_removed") == []
        with shared_reader(tmp_path, "slow", **GOES_ON) as made:
            rows, end = drained(made, start, last)
            made.commit(end)
            assert numbers(rows) == kept
            assert numbers(drained(made, end, fill(served, running, 13, 1))[0]) == [13]
    (removed,) = told(caplog, "rows_removed")
    assert (removed["reader"], removed["stream"]) == ("slow", start["stream"])
    (behind,) = told(caplog, "reader_left_behind")  # once, however much was removed
    assert behind["reader"] == "slow"


@pytest.mark.only_in_all
def test_the_limit_holds_without_any_reader(served: Served, tmp_path: Path) -> None:
    with capturing(served[1].port, tmp_path, FEW) as running:
        fill(served, running, 1)
        assert stored(running) < 12


def planned(served: Served, running: RunningCapture, folder: Path) -> tuple[Offset, Offset]:
    """Plan a batch of two rows, whose first one is then removed; return its offsets."""
    with shared_reader(folder) as made:
        start = anchor_of(made)
        wait_until(lambda: [each.done for each in running.process.readers] != [(0, 0)])
        spool = running.process.state.spool
        assert spool is not None
        for number in (1, 2):
            commit = insert(served[0], number)
            wait_until(lambda at=commit: spool.manifest.end.commit >= at)  # type: ignore[misc]
        end = next_offset(made, start)
        while end["commit"] < commit:
            end = next_offset(made, start)
        assert numbers(rows_of(made, start, end)) == [1, 2]
    spool.trim(spool.manifest.segments[0].place)  # as for retentionBytes
    return start, end


@pytest.mark.fault(
    fault="a part of a planned batch was removed by retentionBytes of the capture",
    outcome="IFXCDC-0006; with onDataLoss=continue its other rows, and a log event",
)
def test_a_planned_batch_that_was_partly_removed(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with capturing(served[1].port, tmp_path) as running:
        start, end = planned(served, running, tmp_path)
        with shared_reader(tmp_path) as made:
            assert isinstance(failure_of(lambda: rows_of(made, start, end)), DataLoss)
        with shared_reader(tmp_path, **GOES_ON) as made:
            for _ in range(2):
                assert numbers(rows_of(made, start, end)) == [2]
            assert len(told(caplog, "rows_removed")) == 1
            assert numbers(drained(made, end, insert(served[0], 3))[0]) == [3]
    assert len(told(caplog, "rows_removed")) == 1


def test_a_mirror_reads_its_tables_again_if_a_part_of_a_planned_batch_was_removed(
    served: Served, tmp_path: Path
) -> None:
    rows = {"tableEvents": "true", "shape": "json", "truncate": "emit"}
    with capturing(served[1].port, tmp_path, tableEvents="true") as running:
        with shared_reader(tmp_path, **rows) as made:
            start = anchor_of(made)
            end = next_offset_of_two(served, running, made, start)
        spool = running.process.state.spool
        assert spool is not None
        spool.trim(spool.manifest.segments[0].place)
        with shared_reader(tmp_path, onDataLoss="resync", **rows) as made:
            assert len(rows_of(made, start, end)) == 1
        folder = RequestFolder(tmp_path / start["stream"])
        wait_until(lambda: list(folder.path.glob("*.json")) or list(folder.path.glob("*.done")))


def next_offset_of_two(served: Served, running: RunningCapture, made: object, start: Offset) -> Offset:
    spool = running.process.state.spool
    assert spool is not None
    wait_until(lambda: [each.done for each in running.process.readers] != [(0, 0)])
    for number in (1, 2):
        commit = insert(served[0], number)
        wait_until(lambda at=commit: spool.manifest.end.commit >= at)  # type: ignore[misc]
    end = next_offset(made, start)  # type: ignore[arg-type]
    while end["commit"] < commit:
        end = next_offset(made, start)  # type: ignore[arg-type]
    return end


@pytest.mark.only_in_all
def test_an_older_checkpoint_holds_its_rows_back_again(served: Served, tmp_path: Path) -> None:
    """A query whose checkpoint is restored reads again; another reader keeps the rows until then."""
    with capturing(served[1].port, tmp_path) as running:
        with shared_reader(tmp_path, "slow") as slow:
            behind = anchor_of(slow)
        with shared_reader(tmp_path) as made:
            start = anchor_of(made)
            _, end = drained(made, start, fill(served, running, 1, 2))
            made.commit(end)
        with shared_reader(tmp_path) as made:  # with an older checkpoint
            next_offset(made, start)
            with shared_reader(tmp_path, "slow") as slow:
                _, behind = drained(slow, behind, end["commit"])
                slow.commit(behind)
            wait_until(lambda: min(each.taken.commit for each in running.process.readers))
            done = {each.name: each.done[0] for each in Readers(tmp_path).all()}
            assert done == {"one": start["commit"], "slow": behind["commit"]}
            assert numbers(rows_of(made, start, end)) == [1, 2]


def test_a_name_that_was_removed_asks_anew_for_the_end_of_the_log(
    served: Served, tmp_path: Path
) -> None:
    with capturing(served[1].port, tmp_path) as running:
        for _ in range(3):
            with shared_reader(tmp_path) as made:
                made.prepareForTriggerAvailableNow()
                start = made.initialOffset()
                while (end := made.latestOffset(start, made.getDefaultReadLimit())) != start:
                    start = end
        # The file that the reader has seen is written first.
        wait_until(lambda: running.process.publication.published.answered["one"] == 3)  # type: ignore[union-attr]
        assert Readers(tmp_path).remove("one")
        with shared_reader(tmp_path) as made:
            made.prepareForTriggerAvailableNow()
            made.latestOffset(made.initialOffset(), made.getDefaultReadLimit())
            assert made.captured.reader._asked == 4  # type: ignore[attr-defined]
