"""Spark with executors in processes of their own: rows reach them without a folder that both see."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from harness.runs.patience import patiently
from harness.servers.stores import (
    ORDERS,
    Change,
    Workload,
    listening_stores,
    source_options,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "stream_on_a_cluster.py"


def run_on_a_cluster(folder: Path, queries: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Run queries one after the other in one cluster; the driver runs in `folder`."""
    command = [sys.executable, str(PROGRAM), json.dumps(queries), str(folder)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=patiently(240), check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return found


def changes_in(rows: list[list[Any]]) -> list[Change]:
    return [
        (kind, (number, customer, note, amount and Decimal(amount)))
        for kind, number, customer, note, amount in rows
    ]


def test_executors_pull_rows_from_the_driver(tmp_path: Path) -> None:
    with listening_stores() as (server, listening):
        server.set_full_row_logging(ORDERS, True)
        work = Workload(server, seed=29)
        work.run(300)
        common = source_options(listening.port, startingPosition="earliest", minPartitions="3")
        unseen = {**common, "spoolPath": "/proc/self/cwd/found by the driver alone"}
        found = run_on_a_cluster(
            tmp_path,
            {
                "flight": {**common, "delivery": "flight"},
                "auto": {**unseen, "flightHost": "127.0.0.1"},
                "files": {**unseen, "delivery": "files"},
            },
        )
    assert len(found["executors"]) == 2
    for name in ("flight", "auto"):
        assert found[name]["error"] == ""
        assert changes_in(found[name]["rows"]) == work.changes()
        assert max(found[name]["partitions"]) == 3
    assert found["files"]["rows"] == []
    assert "IFXCDC-0002: spool segment" in found["files"]["error"]
    assert "cannot be had on this host" in found["files"]["error"]
