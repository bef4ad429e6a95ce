"""A capture starts again behind its last rows: nothing stored is dropped, and no old log is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.capture.driving import Served, anchor_of, drained, insert, numbers
from harness.capture.shared import RunningCapture, capturing, shared_reader
from harness.runs.patience import wait_until
from harness.servers.stores import CUSTOMERS, SHORT_SECOND, listening_stores
from informix_cdc.daemon import publication
from informix_checkpoints.spool import load_manifest
from informix_emulator import EmulatedServer


def pass_by(server: EmulatedServer, running: RunningCapture) -> None:
    """Let transactions without captured rows pass, until the capture has read them."""
    spool = running.process.state.spool
    assert spool is not None
    before = spool.manifest.high_watermark
    for _ in range(3):
        foreign = server.begin()
        foreign.insert(CUSTOMERS, {"customer_num": 1, "name": "x", "city": "y"})
        foreign.commit()
        server.begin().commit()
        server.begin().rollback()
    wait_until(lambda: spool.manifest.high_watermark != before)


@pytest.mark.fault(
    fault="a capture starts again after its high watermark was written behind its last rows",
    outcome="stored rows stay, and a reader at the last of them goes on",
)
@pytest.mark.parametrize("read", [1, 2], ids=["one row unread", "all read"])
@pytest.mark.only_in_all
def test_a_restart_behind_the_last_rows_drops_none(read: int, served: Served, tmp_path: Path) -> None:
    server, listening = served
    with capturing(listening.port, tmp_path) as running, shared_reader(tmp_path) as made:
        start = anchor_of(made)
        first = insert(server, 1)
        rows, start = drained(made, start, first)
        insert(server, 2)
        wait_until(lambda: running.process.state.spool_rows == 2)
        if read == 2:
            more, start = drained(made, start, first + 1)
            rows += more
        pass_by(server, running)
        made.commit(start)  # removes what was read, and so writes the manifest
        wait_until(lambda: running.process.state.spool_rows == 2 - read)
        stream = running.process.state.stream
    manifest = load_manifest(tmp_path / str(stream))
    assert manifest is not None
    assert manifest.high_watermark.place > manifest.end.place
    with capturing(listening.port, tmp_path), shared_reader(tmp_path) as made:
        rows += drained(made, start, insert(server, 3))[0]
    assert numbers(rows) == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.fault(
    fault="a capture of quiet tables starts again after the log with their last rows was overwritten",
    outcome="it goes on where it had read the log, without a data loss; unread rows are still there",
)
@pytest.mark.only_in_all
def test_a_capture_of_quiet_tables_needs_no_old_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "_QUIET_SECONDS", 0.1)
    small = listening_stores(log_pages=4, log_count=3, timeout_seconds=SHORT_SECOND)
    with small as (server, listening):
        with capturing(listening.port, tmp_path) as running:
            with shared_reader(tmp_path) as made:
                start = anchor_of(made)
            insert(server, 1)
            wait_until(lambda: running.process.state.spool_rows == 1)
            for _ in range(9):
                server.switch_log()
                pass_by(server, running)
            file = server.position() >> 32
            wait_until(lambda: restart_of(running) >> 32 >= file - 1, pause_seconds=0.1)
        with capturing(listening.port, tmp_path), shared_reader(tmp_path) as made:
            assert numbers(drained(made, start, insert(server, 2))[0]) == [1, 2]


def restart_of(running: RunningCapture) -> int:
    """Return the published restart position."""
    published = running.process.publication.published
    assert published is not None
    assert published.offset is not None
    return published.offset.position.restart
