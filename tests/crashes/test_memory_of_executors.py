"""The password is not in the memory of an executor: neither of its JVM nor of its Python workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.capture.driving import insert
from harness.runs.patience import patiently
from harness.servers.stores import ORDERS, listening_stores, source_options
from harness.spark.starting import python_path

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "memory_of_executors.py"
SECRET = "Can4ryPw_Zq7xWv"


@pytest.mark.fault(
    fault="someone reads the memory of an executor, password by option",
    outcome="no password in its JVM and Python workers",
)
def test_the_memory_of_an_executor_holds_no_password(tmp_path: Path) -> None:
    if not os.access("/proc/self/mem", os.R_OK):
        pytest.skip("needs /proc/PID/mem")
    with listening_stores() as (server, listening):
        server.users["informix"] = SECRET
        server.set_full_row_logging(ORDERS, True)
        insert(server, *range(1, 41))
        options = source_options(
            listening.port, password=SECRET, startingPosition="earliest", maxRowsPerTrigger="10"
        )
        plan = {"folder": str(tmp_path), "word": SECRET, "options": options, "rows": 40}
        done = subprocess.run(
            [sys.executable, str(PROGRAM)],
            input=json.dumps(plan),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=patiently(240),
            env={**os.environ, "PYTHONPATH": python_path()},
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["rows"] == 40
    assert found["driver JVM"]["copies"] > 0  # where it must be: so the search finds what there is
    assert found["executor JVM"] == {"processes": 1, "copies": 0}
    assert found["executor Python"]["processes"] > 0
    assert found["executor Python"]["copies"] == 0
