"""A reader that was left behind returns to the shared capture without a loss, as the manual says."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.capture.driving import (
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    next_offset,
    numbers,
    reader,
)
from harness.capture.shared import capturing, shared_reader
from harness.runs.patience import wait_until
from informix_capture_client.errors import DataLoss


@pytest.mark.only_in_all
def test_a_capture_of_its_own_reads_removed_rows_again_and_the_shared_one_continues(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    folder = tmp_path / "shared"
    with capturing(listening.port, folder, {"retentionBytes": "8k"}) as running:
        with shared_reader(folder) as made:
            rows, start = drained(made, anchor_of(made), insert(server, 1))
            made.commit(start)
        spool = running.process.state.spool
        assert spool is not None
        for number in range(2, 8):
            last = insert(server, number)
            wait_until(lambda commit=last: spool.manifest.end.commit >= commit)
        wait_until(lambda: spool.manifest.start.commit > start["commit"])
        with shared_reader(folder) as made:
            assert isinstance(failure_of(lambda: next_offset(made, start)), DataLoss)
        with reader(listening.port, spoolPath=str(tmp_path / "own")) as own:
            again, start = drained(own, start, last)
        with shared_reader(folder) as made:
            more, _ = drained(made, start, insert(server, 8))
    assert numbers(rows + again + more) == [*range(1, 9)]
