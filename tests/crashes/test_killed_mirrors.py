"""`informix-cdc mirror` whose process dies between two tables, and anywhere else in a batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from harness.lake.ledger import Ledger, LedgerTable, ledger
from harness.lake.mirroring import MirrorRun, overwrite
from harness.runs.patience import patiently
from harness.servers.stores import PASSWORD
from harness.spark.starting import is_late_worker
from informix_capture_client.failpoints import EXIT_CODE, VARIABLE
from informix_cdc.options import PASSWORD_VARIABLE
from informix_checkpoints.requests import ALTER, REPAIR, Request, RequestFolder
from informix_checkpoints.running_streams import RunningStream

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
_MOST_RUNS = 6  # with AvailableNow until a request is done
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
        """Run it to its end, or to its death at a failpoint; return what it said.

        Where the capture dies, in a process of its own, the command ends with an error.
        """
        wanted = {EXIT_CODE if failpoint.startswith("mirror.") else 1 if failpoint else 0}
        for _ in range(_MOST_STARTS):
            running = self.start(failpoint)
            _, errors = running.communicate(timeout=patiently(180))
            if running.returncode in wanted and not is_late_worker(errors):
                return errors
            assert is_late_worker(errors), errors[-3000:]
        raise AssertionError("Spark's Python came late each time")

    def submit(self, **request: Any) -> tuple[RequestFolder, Request]:
        """Request something of the stream."""
        made = Request(**request)
        folder = RunningStream.of(str(self.compared.settings.checkpoint)).requests
        folder.submit(made)
        return folder, made

    def run_until_answered(self, folder: RequestFolder, request: Request) -> None:
        """Run it until the request is done, and everything is in the targets."""
        self.run_until(lambda: folder.answer(request.id) is not None)
        answer = folder.answer(request.id)
        assert answer is not None
        assert answer.problems == {}
        self.run()

    def run_until(self, is_so: Callable[[], bool]) -> None:
        """Run it again and again until something is so; at once if it is."""
        for _ in range(_MOST_RUNS):
            if is_so():
                return
            self.run()
        assert is_so(), "it did not come to that"

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


def tampered(mirrors: Mirrors, table: LedgerTable) -> None:
    """Remove a row of a target, and put a ghost into it."""
    place = mirrors.compared.lake / table.name
    rows = pa.table(DeltaTable(str(place)).scan().read_all())
    ghost = {**rows.slice(0, 1).to_pylist()[0], table.key[-1]: GHOST[table.columns[table.key[-1]]]}
    added = pa.Table.from_pylist([ghost], rows.schema)
    overwrite(place, pa.concat_tables([rows.slice(1), added]))


GHOST: dict[str, Any] = {
    "serial": 999_999,
    "char(12)": "zz",
    "varchar(40,0)": "zz",
    "date": date(2079, 1, 1),
}
REQUEST_PLACES = [  # a place takes most of a minute
    "mirror.before_differences",
    *(
        pytest.param(place, marks=pytest.mark.only_in_all)
        for place in (
            "requests.before_begin",
            "requests.before_answer",
            "mirror.before_table@1",
            "mirror.before_control",
        )
    ),
]


@pytest.mark.parametrize("place", REQUEST_PLACES)
def test_a_repair_outlives_the_process_that_runs_it(place: str, tmp_path: Path) -> None:
    with ledger(24, 3) as (made, listening):
        mirrors = Mirrors(tmp_path, listening.port)
        mirrors.run()
        made.change(30)
        mirrors.run()
        tampered(mirrors, made.tables[0])
        names = tuple(f"informix.{table.name}" for table in made.tables)
        folder, request = mirrors.submit(kind=REPAIR, tables=names)
        mirrors.run(place)
        made.change(5)
        mirrors.run_until_answered(folder, request)
        mirrors.require_equal(made)
        found = [
            (row["key"], row["what"])
            for row in mirrors.compared.rows("_informix_cdc_differences")
            if row["request"] == request.id
        ]
        assert len(set(found)) == len(found)
        assert "extra" in [what for _, what in found]  # the other key may have changed since


@pytest.mark.only_in_all
@pytest.mark.parametrize("place", ["requests.before_ready", "requests.before_answer"])
def test_an_alter_outlives_the_process_that_captures(place: str, tmp_path: Path) -> None:
    with ledger(25, 3) as (made, listening):
        mirrors = Mirrors(tmp_path, listening.port)
        mirrors.run()
        table = made.tables[0]
        folder, request = mirrors.submit(kind=ALTER, tables=(f"informix.{table.name}",))
        mirrors.run(place if place == "requests.before_ready" else "")
        if place == "requests.before_ready":
            assert not folder.is_ready(request.id)
        mirrors.run_until(lambda: folder.is_ready(request.id))
        made.server.set_full_row_logging(table.full_name, False)
        made.change(30)  # in the log incompletely
        made.server.set_full_row_logging(table.full_name, True)
        folder.mark_altered(request.id)
        if place == "requests.before_answer":
            mirrors.run(place)
        made.change(5)
        mirrors.run_until_answered(folder, request)
        mirrors.require_equal(made)


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
