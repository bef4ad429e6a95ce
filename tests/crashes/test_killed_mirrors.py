"""`informix-cdc mirror` whose process dies between two tables, and anywhere else in a batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.lake.ledger import Ledger, ledger
from harness.lake.mirroring import MirrorRun
from harness.runs.patience import patiently
from harness.servers.stores import PASSWORD
from harness.spark.starting import is_late_worker
from informix_capture_client.failpoints import EXIT_CODE, VARIABLE
from informix_cdc.options import PASSWORD_VARIABLE

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILE = """\
into = "{folder}/lake"
checkpoint = "{folder}/checkpoint"
[source]
host = "127.0.0.1"
port = {port}
transport = "sqli"
server = "informix"
database = "stores"
table = "informix.*"
snapshotParallelism = 8
[tables."informix.t01"]
keep = "history"
[tables."informix.t02"]
keep = "changes"
[spark]
"spark.master" = "local[1]"
"spark.ui.enabled" = false
"""
_MOST_STARTS = 3  # of a Python process of Spark's, which has 10 s


class Mirrors:
    """The command, started again and again on one checkpoint."""

    def __init__(self, folder: Path, port: int) -> None:
        self.file = folder / "mirror.toml"
        self.file.write_text(FILE.format(folder=folder, port=port))
        self.compared = MirrorRun(folder, port)

    def start(self, failpoint: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "informix_cdc.commands.cli", "mirror", str(self.file)]
        return subprocess.Popen(
            [*command, "--once"],
            env={**os.environ, PASSWORD_VARIABLE: PASSWORD, VARIABLE: failpoint},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, failpoint: str = "") -> str:
        """Run it to its end, or to its death at a failpoint; return what it said."""
        for _ in range(_MOST_STARTS):
            running = self.start(failpoint)
            _, errors = running.communicate(timeout=patiently(180))
            if running.returncode == (EXIT_CODE if failpoint else 0):
                return errors
            assert is_late_worker(errors), errors[-3000:]
        raise AssertionError("Spark's Python came late each time")

    def require_equal(self, made: Ledger) -> None:
        commit = max(made.states)
        for table in made.tables[:1]:
            assert self.compared.keyed(table) == made.state_at(commit)[table.name]
        history, changes = made.tables[1:3]
        rows = self.compared.rows(history.name)
        assert made.state_in(rows, history, commit) == made.state_at(commit)[history.name]
        found = [row["_commit_version"] for row in self.compared.rows(changes.name)]
        wanted = [each.commit for each in made.changes if each.table == changes.name]
        assert sorted(each for each in found if each >= min(wanted)) == sorted(wanted)
        for table in made.tables:
            batches = self.compared.batches_in(table.name)
            assert len(set(batches)) == len(batches), "a batch made a second version"


PLACES = ["before_table@2", "after_table@1", "after_table@3", "before_control", "after_control"]


@pytest.mark.parametrize("place", PLACES)
def test_a_mirror_that_dies_in_a_batch_goes_on_as_if_it_had_not(place: str, tmp_path: Path) -> None:
    with ledger(21, 3) as (made, listening):
        mirrors = Mirrors(tmp_path, listening.port)
        mirrors.run()
        made.change(60)
        mirrors.run(f"mirror.{place}")
        made.change(5)
        output = mirrors.run()
        mirrors.require_equal(made)
        assert "changes in" in output


def test_a_mirror_that_is_killed_at_any_time_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with ledger(22, 3) as (made, listening):
        mirrors = Mirrors(tmp_path, listening.port)
        mirrors.run()
        for seconds in (4.0, 5.5, 7.0):
            running = mirrors.start()
            end = time.monotonic() + seconds
            while time.monotonic() < end and running.poll() is None:
                made.change(3)
                time.sleep(0.05)
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
        mirrors.run()
        mirrors.require_equal(made)
