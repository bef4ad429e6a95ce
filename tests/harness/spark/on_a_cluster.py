"""Run a program of the tests that starts a Spark with executors in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.runs.patience import patiently
from harness.spark.starting import python_path


def run_on_a_cluster(program: Path, folder: Path, plan: dict[str, Any]) -> dict[str, Any]:
    """Give a program its plan, and return what it has found; its driver runs in `folder`."""
    done = subprocess.run(
        [sys.executable, str(program), str(folder)],
        input=json.dumps(plan),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=patiently(300),
        env={**os.environ, "PYTHONPATH": python_path()},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return found
