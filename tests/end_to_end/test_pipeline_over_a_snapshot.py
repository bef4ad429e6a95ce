"""The example's pipeline over rows that were there: its views are states that the table has had.

Rule: the writer's own account is the oracle. Places of the stream say which of its states is meant.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from harness.runs.background import meanwhile
from harness.runs.patience import patiently
from harness.servers.kept_orders import KeptOrders, kept_orders
from harness.servers.stores import PASSWORD
from manual.made_parts import ROOT

ROWS_THERE = 60
SPEC = "{{name: shop, storage: 'file://{0}/state', libraries: [{{glob: {{include: '{1}'}}}}]}}"
RUN = [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--refresh", "changes,history,orders"]

State = dict[int, object]
Row = dict[str, Any]


@dataclass
class Account:
    """What the table has held: the log's end behind each transaction, and the cities by number."""

    orders: KeptOrders
    ends: list[int] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    def note(self) -> None:
        self.ends.append(self.orders.server.position())
        self.states.append({key: order["city"] for key, order in self.orders.present.items()})

    def grow(self) -> None:
        """Commit one more transaction."""
        if len(self.orders.present) < ROWS_THERE:  # there are always some to change
            self.orders.insert(1)
        else:
            self.orders.change(1)
        self.note()

    def after(self, changes: list[Row], version: int) -> State:
        """Return the state behind a place: of the last change at or below it that was delivered."""
        commits = sorted({row["_commit_version"] for row in changes if not row["_snapshot"]})
        known = bisect_right(commits, version)
        if known == 0:  # a chunk before all changes
            return self.states[bisect_right(self.ends, commits[0]) - 1]
        return self.states[bisect_right(self.ends, commits[known - 1])]


def run_pipeline(folder: Path, source: dict[str, str]) -> None:
    (folder / "spark-pipeline.yml").write_text(SPEC.format(folder, "flows/**"))
    (folder / "flows").mkdir()
    flows = ROOT / "examples" / "auto_cdc_flows.py"
    (folder / "flows" / flows.name).write_text(flows.read_text(encoding="utf-8"))
    settings = {
        "SPARK_REMOTE": "local[1]",
        "PYSPARK_PYTHON": sys.executable,
        "SOURCE": json.dumps(source),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
    }
    done = subprocess.run(
        RUN,
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=patiently(120),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def rows_of(folder: Path, table: str) -> list[Row]:
    found: list[Row] = pyarrow.parquet.read_table(folder / "spark-warehouse" / table).to_pylist()
    return found


@pytest.mark.slow
def test_views_over_rows_that_were_there_and_changes_are_states_of_the_table(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    with kept_orders(seed=42) as orders:
        orders.insert(ROWS_THERE)
        account = Account(orders)
        account.note()
        source = orders.options(
            passwordFile=str(secret), snapshotChunkRows="20", spoolPath=str(tmp_path / "spool")
        )
        source.pop("password", None)
        with meanwhile(account.grow, pause_seconds=0.02):
            run_pipeline(tmp_path, source)
    changes = rows_of(tmp_path, "changes")
    assert {row["_snapshot"] for row in changes} == {True, False}
    last = max(row["_commit_version"] for row in changes)
    assert {row["order_num"]: row["city"] for row in rows_of(tmp_path, "orders")} == account.after(
        changes, last
    )
    history = rows_of(tmp_path, "history")
    kept = [row for row in history if not _ends_in_its_transaction(row)]
    assert {row["end"] is None for row in kept} == {True, False}
    for row in kept:
        state = account.after(changes, row["begin"]["_commit_version"])
        assert state[row["order_num"]] == row["city"], row


def _ends_in_its_transaction(row: Row) -> bool:
    return bool(row["end"]) and row["end"]["_commit_version"] == row["begin"]["_commit_version"]
