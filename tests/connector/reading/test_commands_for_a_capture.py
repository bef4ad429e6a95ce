"""`resync` and `alter` with the checkpoint of a reader and the folder of its capture."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from connector.commands.commands import refusal, run, run_plain
from connector.commands.test_alter import ADD
from connector.commands.test_resync import LINES, TABLE, Query, inserted
from connector.reading.conftest import SharedPlace
from harness.capture.driving import Offset
from harness.capture.shared import RunningCapture
from harness.capture.snapshots import serving_tables
from harness.runs.patience import patiently, wait_until
from harness.servers.stores import DATABASE
from harness.spark.checkpoints import commit, offset, plan
from informix_checkpoints import running_streams
from informix_checkpoints.requests import RequestFolder
from informix_checkpoints.shared_captures import load_published
from informix_emulator import EmulatedServer, ListeningServer, load_rows

pytestmark = pytest.mark.slow

NAME = f"{DATABASE}:{TABLE}"
SOURCE = {
    "table": "informix.*",
    "tableEvents": "true",
    "snapshotChunkRows": "3",
    "onDataLoss": "continue",
}
ROWS = {"shape": "json", "tableEvents": "true", "truncate": "emit"}
SMALL_LOG: dict[str, Any] = {"log_pages": 4, "log_count": 3}


@pytest.fixture
def served() -> Iterator[tuple[EmulatedServer, ListeningServer]]:
    with serving_tables(LINES, **SMALL_LOG) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(7)])
        yield server, listening


@contextmanager
def query(at: SharedPlace, place: Path) -> Iterator[Query]:
    """Run a query that reads the capture, until the block ends."""
    with at.reader(**ROWS) as made:
        running = Query(place, made)
        running.start()
        try:
            yield running
        finally:
            running.stop()


def places(at: SharedPlace, place: Path) -> list[str]:
    return [f"--checkpoint={place}", f"--spool={at.folder}"]


def resync(at: SharedPlace, place: Path, *more: str) -> Result:
    return run_plain("resync", TABLE, *places(at, place), f"--timeout={patiently(60)}", *more)


def published_stream(at: SharedPlace) -> str:
    published = load_published(at.folder)
    assert published is not None
    assert published.offset is not None
    return published.offset.stream


@contextmanager
def losing(at: SharedPlace, server: EmulatedServer, port: int) -> Iterator[RunningCapture]:
    """Let the log wrap while the capture is away."""
    for _ in range(6):
        server.switch_log()
    before = published_stream(at)
    with at.capturing(port, **SOURCE) as running:
        wait_until(lambda: published_stream(at) != before)
        yield running


@pytest.mark.only_in_all
def test_resync_waits_until_the_reader_has_the_rows(
    at: SharedPlace, served: Any, tmp_path: Path
) -> None:
    _, listening = served
    with at.capturing(listening.port, **SOURCE), query(at, tmp_path / "c") as running:
        result = resync(at, tmp_path / "c")
        assert (result.exit_code, result.stdout) == (0, f"{TABLE}: 7 rows read again.\n"), result.output
        assert inserted(running) == [*range(7)]


@pytest.mark.only_in_all
def test_resync_says_that_the_capture_does_not_run(
    at: SharedPlace, served: Any, tmp_path: Path
) -> None:
    _, listening = served
    with at.capturing(listening.port, **SOURCE), query(at, tmp_path / "c"):
        pass
    result = resync(at, tmp_path / "c")
    assert result.exit_code == 0
    assert "No capture is running. The request is stored" in result.stderr
    with at.capturing(listening.port, **SOURCE), query(at, tmp_path / "c2") as running:
        wait_until(lambda: len(inserted(running)) == 7)


def test_resync_names_both_logs_if_the_query_does_not_run(
    at: SharedPlace, served: Any, tmp_path: Path
) -> None:
    _, listening = served
    with at.capturing(listening.port, **SOURCE):
        with query(at, tmp_path / "c"):
            pass
        line = refusal(resync(at, tmp_path / "c", "--timeout=1"))
    assert "Look at the logs of the capture and of the query" in line


@pytest.mark.only_in_all
def test_resync_goes_to_the_stream_that_followed_a_data_loss(
    at: SharedPlace, served: Any, tmp_path: Path
) -> None:
    """The checkpoint is still in the stream that was left."""
    server, listening = served
    with at.capturing(listening.port, **SOURCE), query(at, tmp_path / "c") as running:
        first: Offset = running.end
    with losing(at, server, listening.port):
        assert published_stream(at) != first["stream"]
        result = run_plain("resync", TABLE, *places(at, tmp_path / "c"), "--no-wait")
        assert result.exit_code == 0, result.output
        assert "No capture is running" not in result.stderr
        folder = RequestFolder(at.folder / published_stream(at))
        wait_until(lambda: not folder.pending())
        with query(at, tmp_path / "c2") as running:
            wait_until(lambda: len(inserted(running)) == 7)


def test_requests_of_a_stream_that_was_left_are_listed_and_cancelled(
    at: SharedPlace, served: Any, tmp_path: Path
) -> None:
    server, listening = served
    with at.capturing(listening.port, **SOURCE), query(at, tmp_path / "c"):
        pass
    run_plain("resync", TABLE, *places(at, tmp_path / "c"), "--window=00:00-00:01", "--no-wait")
    with losing(at, server, listening.port):
        folder = RequestFolder(at.folder / published_stream(at))
        wait_until(lambda: folder.path.exists() and any(folder.path.glob("*.json")))
        cancelled = run_plain("resync", TABLE, *places(at, tmp_path / "c"), "--cancel")
        assert "Cancelled request" in cancelled.output or not folder.pending()
        wait_until(lambda: not folder.pending())


def test_alter_runs_while_readers_read(at: SharedPlace, served: Any, tmp_path: Path) -> None:
    server, listening = served
    given = [*places(at, tmp_path / "c"), "--yes"]
    with at.capturing(listening.port, **SOURCE), query(at, tmp_path / "c") as running:
        found = run(listening, "alter", ADD, *given)
        assert found.exit_code == 0, found.output
        assert "7 rows were read again" in found.stderr
        transaction = server.begin()
        transaction.insert(NAME, {"id": 50, "name": "new", "size": 3})
        transaction.commit()
        wait_until(lambda: 50 in inserted(running))
    sizes = [json.loads(row["after"]) for row in running.rows if row["_change_type"] == "insert"]
    assert {image["size"] for image in sizes} == {7, 3}


def test_a_table_of_a_capture_that_does_not_run_is_altered_too(
    at: SharedPlace, served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, listening = served
    monkeypatch.setattr(running_streams, "_GRACE_SECONDS", 0.2)
    with at.capturing(listening.port, **SOURCE), query(at, tmp_path / "c"):
        pass
    found = run(listening, "alter", ADD, *places(at, tmp_path / "c"), "--yes")
    assert found.exit_code == 0, found.output
    with at.capturing(listening.port, **SOURCE), query(at, tmp_path / "c2") as running:
        wait_until(lambda: len(inserted(running)) == 7)
    sizes = [json.loads(row["after"]) for row in running.rows if row["_change_type"] == "insert"]
    assert {image["size"] for image in sizes} == {7}


def test_a_folder_without_the_stream_is_refused(at: SharedPlace, served: Any, tmp_path: Path) -> None:
    _, listening = served
    with at.capturing(listening.port, **SOURCE):
        plan(tmp_path / "c", 0, offset(1, 1, stream="0" * 16))
        commit(tmp_path / "c", 0)
        line = refusal(resync(at, tmp_path / "c"), 2)
    assert "For a reader of informix-cdc capture, give spoolPath of the capture" in line
