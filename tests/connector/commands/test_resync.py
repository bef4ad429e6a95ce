"""`informix-cdc resync`: requests to a running query, and what the command prints about them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.capture.driving import LIMIT, anchor_of, reader, rows_of
from harness.capture.snapshots import serving_tables
from harness.runs.patience import patiently
from harness.servers.stores import DATABASE
from harness.spark.checkpoints import commit, plan
from informix_capture_client.errors import BadOption
from informix_cdc.commands.cli import main
from informix_cdc.commands.resync import Limits, limits_of
from informix_cdc.lake.identity import MirrorFolder
from informix_checkpoints.requests import RequestFolder
from informix_checkpoints.running_streams import RunningStream
from informix_emulator import load_rows

pytestmark = pytest.mark.slow

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
TABLE = "informix.lines"


class Query:
    """A query that delivers batches as Spark does, and writes its checkpoint."""

    def __init__(self, place: Path, made: Any) -> None:
        self.place, self._made = place, made
        self.rows: list[dict[str, Any]] = []
        self.end = anchor_of(made)
        self._number = 0
        self._commit()
        self._stop = threading.Event()
        self._worker = threading.Thread(target=self._run)

    @property
    def requests(self) -> RequestFolder:
        return RequestFolder(self.place / "spool" / self.end["stream"])

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._stop.set()
        if self._worker.is_alive():
            self._worker.join()

    def _commit(self) -> None:
        plan(self.place, self._number, self.end)
        commit(self.place, self._number)
        self._number += 1

    def _run(self) -> None:
        while not self._stop.is_set():
            end = self._made.latestOffset(self.end, LIMIT)
            if end != self.end:
                self.rows += rows_of(self._made, self.end, end)
                self.end = end
                self._commit()


@contextmanager
def query(place: Path) -> Iterator[Query]:
    options = {
        "table": "informix.*",
        "shape": "json",
        "tableEvents": "true",
        "truncate": "emit",
        "snapshotChunkRows": "3",
        "spoolPath": str(place / "spool"),
    }
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, f"{DATABASE}:{TABLE}", [{"id": n, "name": "x"} for n in range(7)])
        with reader(listening.port, **options) as made:
            running = Query(place, made)
            try:
                yield running
            finally:
                running.stop()


def resync(place: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["resync", *arguments, f"--checkpoint={place}"])


def wait(place: Path, *arguments: str) -> Result:
    return resync(place, *arguments, f"--timeout={patiently(60)}")


def inserted(running: Query) -> list[int]:
    rows = running.rows
    return [json.loads(row["after"])["id"] for row in rows if row["_change_type"] == "insert"]


def test_the_command_waits_until_the_sink_has_the_rows(tmp_path: Path) -> None:
    with query(tmp_path) as running:
        running.start()
        result = wait(tmp_path, "informix.l*")
        assert (result.exit_code, result.stdout) == (0, f"{TABLE}: 7 rows read again.\n"), result.output
        assert inserted(running) == [*range(7)]


def test_rows_of_a_table_that_the_mirror_has_stopped_are_not_called_written(tmp_path: Path) -> None:
    with query(tmp_path) as running:
        running.start()
        MirrorFolder(str(tmp_path)).record_stopped({TABLE: "its target is append-only."})
        result = wait(tmp_path, TABLE)
    assert (result.exit_code, result.stdout) == (3, f"{TABLE}: 7 rows read again.\n"), result.output
    stopped = "nothing was written, because the mirror has stopped it: its target is append-only."
    assert f"{TABLE}: {stopped}" in result.stderr


def test_where_reads_a_part_of_the_rows(tmp_path: Path) -> None:
    with query(tmp_path) as running:
        running.start()
        result = wait(tmp_path, TABLE, "--where", "ID >= 2 AND id <= 4")
        assert result.exit_code == 0, result.output
        assert inserted(running) == [2, 3, 4]


@pytest.mark.parametrize(
    ("where", "problem"),
    [("name >= 'x'", "Give limits of id with --where"), ("id >= 'x'", "is not a value of column id")],
)
def test_limits_that_make_no_sense_are_a_problem_of_the_table(
    where: str, problem: str, tmp_path: Path
) -> None:
    with query(tmp_path) as running:
        running.start()
        result = wait(tmp_path, TABLE, "--where", where)
        assert result.exit_code == 1
        assert problem in result.stderr


def test_requests_are_stored_without_a_query_and_can_be_cancelled(tmp_path: Path) -> None:
    with query(tmp_path) as running:
        folder = running.requests
        resync(tmp_path, TABLE, "--no-wait", "--window=22:00-05:00")
        (stored,) = folder.pending()
        assert stored.window == "22:00-05:00"
    result = resync(tmp_path, TABLE)
    assert result.exit_code == 0
    assert "No query is running" in result.stderr
    result = resync(tmp_path, TABLE, "--cancel")
    assert result.output.count("Cancelled request") == 2
    assert all(folder.is_cancelled(request.id) for request in folder.pending())


@pytest.mark.only_in_all
def test_wrong_arguments_are_refused_with_a_remedy(tmp_path: Path) -> None:
    with query(tmp_path):
        assert f"Its tables: {TABLE}." in resync(tmp_path, "informix.orders").stderr
        assert "22:00-05:00" in resync(tmp_path, TABLE, "--window=25:00-1").stderr
        assert "Give --spool" in resync(tmp_path, TABLE, "--spool=/nowhere").stderr


@pytest.mark.only_in_all
def test_a_request_that_takes_too_long_continues(tmp_path: Path) -> None:
    with query(tmp_path) as running:
        result = resync(tmp_path, TABLE, "--timeout=0.1")
        assert result.exit_code == 1
        assert "its log has an event request_answered" in result.stderr
        assert len(running.requests.pending()) == 1


def test_the_command_ends_when_the_query_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[Result] = []
    is_waiting, until_true = threading.Event(), RunningStream.wait

    def seen(*arguments: Any) -> None:
        is_waiting.set()
        until_true(*arguments)

    monkeypatch.setattr(RunningStream, "wait", seen)
    with query(tmp_path) as running:
        command = threading.Thread(target=lambda: results.append(wait(tmp_path, TABLE)))
        command.start()
        is_waiting.wait()  # nothing is delivered, so it is not answered
        assert len(running.requests.pending()) == 1
    command.join()
    assert results[0].exit_code == 1
    assert "does not run" in results[0].stderr


def test_conditions_are_limits_of_one_column() -> None:
    assert limits_of("a = 7") == Limits("a", "7", "7")
    assert limits_of("a <= 'O''Hara' and A >= -1.5") == Limits("a", "-1.5", "O'Hara")
    for refused in ("a > 7", "a >= 1 AND b <= 2", "a >= 1 AND a >= 2", "a >= 1; DROP", "a LIKE 'x'"):
        with pytest.raises(BadOption, match=">="):
            limits_of(refused)
