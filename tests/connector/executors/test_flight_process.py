"""The process that serves rows: started again whatever ends it, and told everything anew."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from checkpoints.spool.spools import fill, open_spool
from connector.executors.served_folder import published
from harness.runs.patience import wait_until
from informix_capture_client.shapes import change_count
from informix_cdc.executors import flight_process
from informix_cdc.executors.flight_client import fetched_range

pytestmark = pytest.mark.slow


@pytest.mark.fault(
    fault="the process of the Flight server is killed, and there is no memory to start it again",
    outcome="it is started again as soon as possible, on the same port; executors call it again",
)
def test_it_is_started_again_also_if_that_fails_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(flight_process, "_PAUSE_SECONDS", 0.01)
    spool = open_spool(tmp_path / "spool")
    fill(spool)
    start, failures = subprocess.Popen, [OSError(12, "Cannot allocate memory")]

    def started(*arguments: Any, **named: Any) -> subprocess.Popen[str]:
        if failures:
            raise failures.pop()
        made: subprocess.Popen[str] = start(*arguments, **named)
        return made

    with published(spool) as (process, address):
        monkeypatch.setattr(subprocess, "Popen", started)
        os.kill(process, signal.SIGKILL)
        for wanted in spool.between((100, 0), (140, 0)):
            arrived = fetched_range(address, wanted)
            assert sum(map(change_count, arrived)) == wanted.end - wanted.first
        wait_until(lambda: not failures)
    said = [each for each in caplog.records if getattr(each, "event", "") == "flight_server_ended"]
    assert len(said) == 2
    spool.close()


def test_nothing_of_the_working_directory_is_run_and_no_password_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = open_spool(tmp_path / "spool")
    fill(spool)
    (tmp_path / "asyncio.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INFORMIX_CDC_PASSWORD", "S3cret")
    with published(spool) as (process, address):
        [wanted, *_] = spool.between((100, 0), (140, 0))
        assert sum(map(change_count, fetched_range(address, wanted))) == wanted.end - wanted.first
        assert b"S3cret" not in Path(f"/proc/{process}/environ").read_bytes()
        assert address.token.encode() not in Path(f"/proc/{process}/environ").read_bytes()
        assert address.token.encode() not in Path(f"/proc/{process}/cmdline").read_bytes()
    spool.close()
