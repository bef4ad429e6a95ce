"""One stream, one folder, one writer: two sinks are two streams, and a newcomer waits its turn."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from harness.capture.driving import (
    LIMIT,
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    numbers,
    reader,
)
from informix_capture_client.errors import AccessRefused
from informix_cdc.capture import run as capture_run


@pytest.mark.slow
@pytest.mark.only_in_all
def test_two_sinks_on_one_data_frame_are_two_streams(served: Served, tmp_path: Path) -> None:
    server, listening = served
    kept = {"spoolPath": str(tmp_path)}
    with reader(listening.port, **kept) as one, reader(listening.port, **kept) as other:
        anchors = [anchor_of(one), anchor_of(other)]
        last = insert(server, 1)
        assert numbers(drained(one, anchors[0], last)[0]) == [1]
        assert numbers(drained(other, anchors[1], last)[0]) == [1]
    assert {folder.name for folder in tmp_path.iterdir()} == {anchor["stream"] for anchor in anchors}


@pytest.mark.slow
@pytest.mark.fault(
    fault="the query starts again before its former process has ended",
    outcome="waits its turn, then goes on from the spool",
)
@pytest.mark.only_in_all
def test_a_newcomer_answers_with_the_start_while_the_former_owner_ends(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    kept = {"spoolPath": str(tmp_path)}
    with reader(listening.port, **kept) as former:
        anchor = anchor_of(former)
        last = insert(server, 1)
        with reader(listening.port, **kept) as newcomer:
            assert newcomer.latestOffset(anchor, LIMIT) == anchor
            assert newcomer.latestOffset(anchor, LIMIT) == anchor
            threading.Timer(0.5, former.stop).start()
            assert numbers(drained(newcomer, anchor, last)[0]) == [1]


@pytest.mark.slow
@pytest.mark.fault(
    fault="two queries on one checkpoint and spoolPath",
    outcome="the second is refused: IFXCDC-0002; the first is not disturbed",
)
@pytest.mark.only_in_all
def test_a_newcomer_refuses_after_the_read_timeout_and_a_margin(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_run, "STOP_MARGIN_SECONDS", 0.1)
    _, listening = served
    kept = {"spoolPath": str(tmp_path)}
    with reader(listening.port, **kept) as former:
        anchor = anchor_of(former)
        with reader(listening.port, **kept) as newcomer:
            begun = time.monotonic()
            error = failure_of(lambda: [newcomer.latestOffset(anchor, LIMIT) for _ in iter(int, 1)])
            assert time.monotonic() - begun > 1
        assert former.latestOffset(anchor, LIMIT) == anchor  # it is not disturbed
    assert isinstance(error, AccessRefused)
    assert "another query is writing to the spool" in str(error)
