"""Snapshots as commands show them: the rows of `tail --snapshot`, and what the doctor asks for one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.commands.commands import refusal, run
from harness.capture.told import told
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND
from informix_emulator import EmulatedServer, ListeningServer, load_rows

LOGIN = {"SERVER": "informix", "UID": "informix", "PWD": PASSWORD, "DB_LOCALE": "en_US.utf8"}
LINES = "informix.lines"


@pytest.fixture
def lines() -> Iterator[ListeningServer]:
    server = EmulatedServer("informix", {"informix": PASSWORD}, timeout_seconds=SHORT_SECOND)
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    writer = InProcessConnection(server, LOGIN, DATABASE)
    writer.rows(f"CREATE TABLE {LINES} (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))")
    writer.rows("CREATE TABLE informix.notes (note VARCHAR(20)) LOCK MODE PAGE")
    load_rows(server, f"{DATABASE}:{LINES}", ({"id": n, "name": f"n{n}"} for n in range(10)))
    with ListeningServer(server) as listening:
        yield listening


def findings(listening: ListeningServer, *arguments: str) -> dict[tuple[str, str | None], Any]:
    result = run(listening, "doctor", "--json", *arguments)
    return {(each["check"], each["table"]): each for each in json.loads(result.stdout)["findings"]}


# tail --snapshot


@pytest.mark.slow
@pytest.mark.only_in_all
def test_tail_prints_the_rows_that_are_there_as_json(lines: ListeningServer) -> None:
    result = run(lines, "tail", f"--table={LINES}", "--snapshot", "--format=json", "--limit=10")
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["row"]["id"] for row in rows] == list(range(10))
    assert {(row["_change_type"], row["_snapshot"]) for row in rows} == {("insert", True)}
    assert "Snapshot of informix.lines: done, 10 rows." in result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith("10 existing rows, 0 rows of 0 transactions in ")


@pytest.mark.slow
def test_a_row_that_was_there_is_called_read_for_people(lines: ListeningServer) -> None:
    arguments = ("--snapshot", "--snapshot-chunk-rows=4", "--limit=10")
    result = run(lines, "tail", f"--table={LINES}", *arguments)
    kinds = [line.split()[1 - line.startswith(" ")] for line in result.stdout.splitlines()]
    assert kinds == ["read"] * 10
    shown = [line.partition("id=")[2].split()[0] for line in result.stdout.splitlines()]
    assert shown == [str(number) for number in range(10)]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_tail_keeps_nothing_behind(
    lines: ListeningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run(lines, "tail", f"--table={LINES}", "--snapshot", "--limit=3")
    assert list(tmp_path.iterdir()) == []
    assert lines.server.sessions() == {}


def test_a_snapshot_begins_now_and_nowhere_else(lines: ListeningServer) -> None:
    line = refusal(run(lines, "tail", f"--table={LINES}", "--snapshot", "--from=earliest"), 2)
    assert "--from" in line


def test_a_table_without_a_key_is_refused_by_tail_with_the_options_that_help(
    lines: ListeningServer,
) -> None:
    line = refusal(run(lines, "tail", "--table=informix.notes", "--snapshot"), 2)
    assert "--snapshot-key" in line
    assert "--snapshot-without-key=lock" in line


def test_an_error_that_ends_tail_is_printed_once(
    lines: ListeningServer, caplog: pytest.LogCaptureFixture
) -> None:
    result = run(lines, "tail", "--table=informix.notes", "--snapshot")
    assert result.stderr.count("IFXCDC-0003") == 1
    assert told(caplog, "capture_failed") == []


# doctor


def test_the_doctor_looks_at_a_snapshot_only_where_one_is_asked_for(
    lines: ListeningServer, tmp_path: Path
) -> None:
    tables = f"--table={LINES},informix.notes"
    without = findings(lines, tables)
    asked = findings(lines, tables, "--initial-snapshot=all", f"--spool-path={tmp_path}")
    assert not [check for check, _ in without if check.startswith("snapshot")]
    found = {key: each["state"] for key, each in asked.items() if key[0].startswith("snapshot")}
    assert found == {
        ("snapshot key", f"{DATABASE}:{LINES}"): "ok",
        ("snapshot key", None): "failure",
        ("snapshot right", f"{DATABASE}:{LINES}"): "ok",
        ("snapshot right", f"{DATABASE}:informix.notes"): "ok",
        ("snapshot locks", f"{DATABASE}:{LINES}"): "ok",
        ("snapshot locks", f"{DATABASE}:informix.notes"): "warning",
        ("snapshot marker", None): "ok",
        ("snapshot transactions", None): "ok",
    }


def test_the_doctor_refuses_a_snapshot_of_what_is_not_captured(
    lines: ListeningServer, tmp_path: Path
) -> None:
    found = findings(
        lines, f"--table={LINES}", "--initial-snapshot=informix.notes", f"--spool-path={tmp_path}"
    )
    assert found["snapshot key", None]["state"] == "failure"
    assert "not a captured table" in found["snapshot key", None]["found"]
