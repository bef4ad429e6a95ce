"""Without the jar, what requires it is refused, and the jar is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.capture.driving import insert
from harness.runs.background import meanwhile
from harness.runs.patience import patiently
from harness.servers.stores import listening_stores
from harness.spark.starting import python_path

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = Path(__file__).with_name("without_the_jar.py")


@pytest.mark.only_in_all
def test_real_time_mode_and_asynchronous_progress_name_the_jar(tmp_path: Path) -> None:
    with listening_stores() as (server, listening), meanwhile(lambda: insert(server, 1), 0.5):
        done = subprocess.run(
            [sys.executable, str(PROGRAM), str(listening.port), str(tmp_path)],
            env={**os.environ, "PYTHONPATH": python_path()},
            capture_output=True,
            text=True,
            check=False,
            timeout=patiently(180),
        )
    assert done.returncode == 0, done.stderr
    real_time, asynchronous = json.loads(done.stdout.splitlines()[-1])
    assert "INPUT_STREAM_NOT_SUPPORTED" in real_time  # Spark's own words; ours stand before them
    assert "event=read_in_python" in done.stderr
    assert "`informix-cdc jar` prints" in done.stderr
    assert "asyncProgressTrackingEnabled, which requires the jar" in asynchronous
