"""A second process of a capture waits for the first one to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.capture.driving import Served, anchor_of, drained, insert, numbers
from harness.capture.shared import RunningCapture, capture_settings, capturing, shared_reader
from harness.runs.patience import wait_until

pytestmark = pytest.mark.slow


def test_a_standby_takes_over_when_the_capture_ends(served: Served, tmp_path: Path) -> None:
    server, listening = served
    with capturing(listening.port, tmp_path) as first, shared_reader(tmp_path) as made:
        rows, start = drained(made, anchor_of(made), insert(server, 1))
        standby = RunningCapture(capture_settings(listening.port, tmp_path))
        try:
            first.stop()
            last = insert(server, 2)
            wait_until(standby.has_published)
            more, _ = drained(made, start, last)
        finally:
            standby.stop()
    assert standby.error is None
    assert numbers(rows + more) == [1, 2]


def test_a_standby_ends_when_it_is_told_to(served: Served, tmp_path: Path) -> None:
    _, listening = served
    with capturing(listening.port, tmp_path) as first:
        standby = RunningCapture(capture_settings(listening.port, tmp_path))
        standby._stop.set()
        wait_until(lambda: standby.has_ended)
        assert (standby.error, first.has_ended) == (None, False)
