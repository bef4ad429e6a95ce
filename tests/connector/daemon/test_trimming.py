"""Rows are removed while readers register: none is removed that a reader has just been promised."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harness.capture.driving import Served, anchor_of, drained, insert, numbers
from harness.capture.shared import capturing, shared_reader
from harness.runs.patience import wait_until
from informix_capture_client import failpoints


def test_a_reader_that_registers_while_rows_are_removed_gets_all_from_its_start(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening = served
    anchored: list[object] = []

    with (
        capturing(listening.port, tmp_path),
        shared_reader(tmp_path, "one") as first,
        shared_reader(tmp_path, "two") as second,
    ):
        start = anchor_of(first)
        _, end = drained(first, start, insert(server, 1))
        begins = threading.Thread(target=lambda: anchored.append(anchor_of(second)))

        def at(name: str) -> None:
            if name == "daemon.before_trim" and not begins.is_alive() and not anchored:
                begins.start()
                begins.join(1)  # it may have to wait until the rows are removed

        monkeypatch.setattr(failpoints, "reached", at)
        first.commit(end)
        wait_until(lambda: anchored)
        begins.join()
        (here,) = anchored
        assert isinstance(here, dict)
        assert numbers(drained(second, here, insert(server, 2))[0])[-1] == 2
