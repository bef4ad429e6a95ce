"""The query is away while the server's log wraps again and again: the capture has it all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.capture.driving import Served, anchor_of, drained, insert, numbers
from harness.capture.shared import RunningCapture, capturing, shared_reader
from harness.runs.patience import wait_until
from harness.servers.stores import listening_stores
from informix_emulator import EmulatedServer

LOGS = 3  # of four pages
LENGTHS = 3


@pytest.fixture
def small_log() -> Iterator[Served]:
    with listening_stores(log_pages=4, log_count=LOGS) as (server, listening):
        yield server, listening


def log_file(server: EmulatedServer) -> int:
    return server.position() >> 32


@pytest.mark.slow
@pytest.mark.fault(
    fault="no query runs for three lengths of the server's log; `informix-cdc capture` does",
    outcome="the query gets every row once, in order",
)
@pytest.mark.only_in_all
def test_a_query_that_is_away_for_three_log_lengths_loses_nothing(
    small_log: Served, tmp_path: Path
) -> None:
    server, listening = small_log
    with capturing(listening.port, tmp_path), shared_reader(tmp_path) as made:
        start = anchor_of(made)
    begun, number, commit = log_file(server), 0, 0
    while log_file(server) < begun + LENGTHS * LOGS:
        with capturing(listening.port, tmp_path) as running:  # it is restarted meanwhile
            reached = log_file(server)
            while log_file(server) < reached + LOGS - 1:
                number += 1
                commit = insert(server, number)
                if number % 20 == 0:
                    until_stored(running, commit)
            until_stored(running, commit)
    with capturing(listening.port, tmp_path), shared_reader(tmp_path) as made:
        assert numbers(drained(made, start, commit)[0]) == list(range(1, number + 1))


def until_stored(running: RunningCapture, commit: int) -> None:
    spool = running.process.state.spool
    assert spool is not None
    wait_until(lambda: spool.manifest.end.commit >= commit)
