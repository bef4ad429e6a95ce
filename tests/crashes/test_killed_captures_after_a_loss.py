"""A shared capture dies between beginning a stream after a data loss and telling its readers of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connector.capture.test_requests import LINES, NAME, TABLE, of_stream
from connector.capture.test_requests import insert as insert_lines
from harness.capture.capture_process import CaptureCommand, capture_command
from harness.capture.driving import anchor_of
from harness.capture.shared import of_capture, of_reader, shared_reader
from harness.capture.shared_batches import reading_on
from harness.capture.snapshots import serving_tables
from harness.runs.patience import wait_until
from informix_checkpoints.requests import RESYNC, Request, RequestFolder
from informix_checkpoints.shared_captures import load_published
from informix_emulator import EmulatedServer, load_rows

pytestmark = pytest.mark.slow  # processes of their own

RESYNCS = {**of_stream(Path("/")), "onDataLoss": "resync"}
RESYNCS.pop("spoolPath")


def published_stream(command: CaptureCommand) -> str:
    published = load_published(command.spool)
    assert published is not None
    assert published.offset is not None
    return published.offset.stream


def streams_in(command: CaptureCommand) -> set[str]:
    others = {"readers", "access"}
    return {path.name for path in command.spool.iterdir() if path.is_dir()} - others


def until_dead_in_the_new_stream(command: CaptureCommand, server: EmulatedServer) -> None:
    """Let a capture switch row logging on for a new stream, and die before it publishes that."""
    while not server.table(NAME).full_row_logging:  # it may have died before, with the previous stream
        command.arm("daemon.before_publish")
        command.until_dead(command.start())


@pytest.mark.fault(
    fault="row logging was off; `informix-cdc capture` dies after it has switched it on again",
    outcome="after a restart it still knows of the loss: the table is read again, no folder is left",
)
@pytest.mark.only_in_all
def test_a_loss_is_not_forgotten_by_a_capture_that_dies_before_it_publishes(tmp_path: Path) -> None:
    with (
        serving_tables(LINES) as (server, listening, _),
        capture_command(tmp_path, listening.port, **of_capture(RESYNCS)) as command,
    ):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(5)])
        command.begin().terminate()
        first = published_stream(command)
        command.stop()
        server.set_full_row_logging(NAME, False)
        insert_lines(server, 50)  # lost
        until_dead_in_the_new_stream(command, server)
        assert published_stream(command) == first
        command.start()
        wait_until(lambda: published_stream(command) != first, 60, command.printed)
        with reading_on(command.spool, tmp_path / "one", **of_reader(RESYNCS)) as reading:
            reading.until(insert_lines(server, 51), command.printed)
            wait_until(lambda: 50 in read_again(reading.kept.results), 60, command.printed)
        assert streams_in(command) <= {first, published_stream(command)}


def read_again(batches: list[list[dict[str, object]]]) -> list[int]:
    rows = [row for batch in batches for row in batch if row["_snapshot"] and row["after"]]
    images = [json.loads(str(row["after"])) for row in rows if row["_change_type"] == "insert"]
    return [int(image["id"]) for image in images]


@pytest.mark.fault(
    fault="a request comes to the stream that a shared capture has just left after a data loss",
    outcome="it is moved to the stream that follows, and answered there",
)
@pytest.mark.only_in_all
def test_a_request_to_a_stream_that_was_left_is_answered(tmp_path: Path) -> None:
    with (
        serving_tables(LINES, log_pages=4, log_count=3) as (server, listening, _),
        capture_command(
            tmp_path, listening.port, **{**of_capture(RESYNCS), "onDataLoss": "continue"}
        ) as command,
    ):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(5)])
        process = command.begin()
        with shared_reader(command.spool) as made:
            first = anchor_of(made)["stream"]  # it needs this stream
        process.terminate()
        process.wait()
        for _ in range(6):
            server.switch_log()
        command.start()
        wait_until(lambda: published_stream(command) != first, 60, command.printed)
        request = Request(kind=RESYNC, tables=(TABLE,))
        RequestFolder(command.spool / first).submit(request)
        folder = RequestFolder(command.spool / published_stream(command))
        wait_until(lambda: folder.answer(request.id) is not None, 60, command.printed)
        answer = folder.answer(request.id)
    assert answer is not None
    assert (answer.rows, answer.problems) == ({TABLE: 5}, {})
