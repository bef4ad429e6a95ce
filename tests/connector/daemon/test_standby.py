"""A second capture of a folder waits, and takes over when the first one ends or is killed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.capture.capture_process import capture_command, killed
from harness.capture.driving import Served, insert
from harness.capture.shared import RunningCapture, capture_settings, capturing
from harness.capture.shared_batches import changes_in, comparable, reading_on
from harness.capture.told import told
from harness.oracles.long_workload import LongWorkload
from harness.runs.patience import wait_until
from harness.servers.stores import SHORT_SECOND, listening_stores

pytestmark = pytest.mark.slow  # processes of their own


@pytest.fixture
def served() -> Iterator[Served]:
    with listening_stores(timeout_seconds=SHORT_SECOND) as served:
        yield served


def test_a_standby_takes_over_when_the_capture_is_stopped(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    work = LongWorkload(server, 5)
    with (
        capturing(listening.port, tmp_path / "spool") as first,
        reading_on(tmp_path / "spool", tmp_path / "one") as reading,
    ):
        stream = first.process.state.stream
        standby = RunningCapture(capture_settings(listening.port, tmp_path / "spool"))
        try:
            with work.going_on():
                wait_until(lambda: told(caplog, "spool_awaited"))
                assert not standby.process.state.stream
                reading.until(insert_counted(work))
                first.stop()
                wait_until(standby.has_published)
                assert standby.process.state.stream == stream
            work.finish()
            reading.until(work.committed[-1].commit)
        finally:
            standby.stop()
        assert standby.error is None
    assert changes_in(reading.kept) == comparable(work.changes())


def insert_counted(work: LongWorkload) -> int:
    """Return a commit that the account knows; it works in the background."""
    wait_until(lambda: work.committed)
    return work.committed[-1].commit


@pytest.mark.fault(
    fault="`informix-cdc capture` is killed while another one waits for its folder",
    outcome="the other one takes over the stream; each reader gets each row once, in order",
)
def test_a_standby_takes_over_when_the_capture_is_killed(served: Served, tmp_path: Path) -> None:
    server, listening = served
    work = LongWorkload(server, 6)
    with capture_command(tmp_path, listening.port) as command:
        first = command.begin()
        command.start()
        wait_until(lambda: "event=spool_awaited" in command.printed(), 60, command.printed)
        with reading_on(command.spool, tmp_path / "one") as reading, work.going_on():
            reading.until(insert_counted(work), command.printed)
            killed(first)
            seen = len(work.committed)
            wait_until(lambda: len(work.committed) > seen)
            reading.until(work.committed[-1].commit, command.printed)
        with reading_on(command.spool, tmp_path / "one") as reading:
            work.finish()
            reading.until(work.committed[-1].commit, command.printed)
    assert changes_in(reading.kept) == comparable(work.changes())


def test_a_standby_is_ready_and_can_be_stopped(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening = served
    with capturing(listening.port, tmp_path / "spool") as first, notified(tmp_path) as next_message:
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        standby = RunningCapture(capture_settings(listening.port, tmp_path / "spool"))
        wait_until(lambda: "STATUS=standby" in next_message())
        standby.stop()
        assert standby.has_ended
        assert standby.error is None
        commit = insert(server, 1)
        spool = first.process.state.spool
        wait_until(lambda: spool is not None and spool.manifest.end.commit >= commit)


@contextmanager
def notified(folder: Path) -> Iterator[Callable[[], str]]:
    """Listen as systemd does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(folder / "notify"))
        yield lambda: listening.recv(4096).decode()


@pytest.mark.only_in_all
def test_a_standby_process_ends_with_sigterm(served: Served, tmp_path: Path) -> None:
    with capture_command(tmp_path, served[1].port) as command:
        command.begin()
        standby = command.start()
        wait_until(lambda: "event=spool_awaited" in command.printed(), 60, command.printed)
        standby.terminate()
        assert standby.wait(60) == 0, command.printed()
