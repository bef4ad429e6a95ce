"""A shared capture dies while it reads existing rows, or while a table joins: no row is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.capture.batches import Batches
from harness.capture.capture_process import CaptureCommand, capture_command
from harness.capture.copied_tables import (
    KEYS,
    LINES,
    OTHER,
    PAIRS,
    filled,
    in_copies,
    in_tables,
    marked,
)
from harness.capture.copies import Copies
from harness.capture.shared import of_capture, of_reader
from harness.capture.shared_batches import reading_on
from harness.capture.snapshots import serving_tables
from harness.runs.background import meanwhile
from harness.runs.patience import wait_until
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import DATABASE
from informix_emulator import EmulatedServer, load_rows

pytestmark = pytest.mark.slow  # processes of their own

PLACES = [
    "spool.before_manifest@4",
    *(
        pytest.param(place, marks=pytest.mark.only_in_all)
        for place in (
            "spool.before_manifest@9",
            "capture.before_flush@3",
            "daemon.before_publish@2",
            "daemon.before_publish@4",
            "replace_file.after_rename@7",
        )
    ),
]
SOURCE = {
    "table": "informix.*",
    "shape": "json",
    "tableEvents": "true",
    "truncate": "emit",
    "snapshotChunkRows": "5",
    "initialSnapshot": "all",
    "stream__discovery_seconds": 1,
}
LATE = "informix.late"
LATE_TABLE = LINES.replace("lines", "late")


@dataclass(frozen=True)
class Work:
    """Writes rows of the tables while the capture comes and goes."""

    server: EmulatedServer
    writer: InProcessConnection
    numbers: Iterator[int]

    def insert(self) -> None:
        transaction = self.server.begin()
        name = f"{DATABASE}:informix.lines"
        transaction.insert(name, {"id": next(self.numbers), "name": "live"})
        transaction.commit()


@pytest.fixture
def served() -> Iterator[tuple[Work, int]]:
    with serving_tables(LINES, PAIRS, OTHER) as (server, listening, writer):
        filled(server)
        yield Work(server, writer, iter(range(2000, 10**9))), listening.port


def copied(kept: Batches) -> Copies:
    """Return copies of the tables, as a sink has them; each row has come once, in order."""
    rows: list[dict[str, Any]] = [row for batch in kept.results for row in batch]
    places = [(row["_commit_version"], row["_change_ordinal"]) for row in rows if not row["_snapshot"]]
    assert places == sorted(set(places)), "changes are repeated or out of order"
    read = [
        (row["_table"], row["after"])
        for row in rows
        if row["_snapshot"] and row["_change_type"] == "insert"
    ]
    assert len(read) == len(set(read)), "rows of the snapshot are repeated"
    copies = Copies({**KEYS, LATE: ("id",)})
    copies.apply(rows)
    return copies


def require_equal(copies: Copies, work: Work) -> None:
    tables = in_tables(work.writer)
    found = in_copies(copies)
    assert {name: found[name] for name in tables} == tables


def until_read(command: CaptureCommand, kept: Batches, tables: int) -> None:
    def is_read() -> bool:
        states = kept.offsets[-1].get("tables", {}).values() if kept.offsets else ()
        return len(states) == tables and all(each["snapshot"].get("done") for each in states)

    wait_until(is_read, 60, command.printed)


@pytest.mark.fault(
    fault="`informix-cdc capture` dies at a failpoint while it reads existing rows",
    outcome="the snapshot goes on after a restart; each reader's copy of the tables equals Informix",
)
@pytest.mark.parametrize("place", PLACES)
def test_a_capture_that_dies_in_a_snapshot_loses_no_row(
    place: str, served: tuple[Work, int], tmp_path: Path
) -> None:
    work, port = served
    with capture_command(tmp_path, port, **of_capture(SOURCE)) as command:
        command.arm(place)
        with meanwhile(work.insert, 0.02):
            command.until_dead(command.start())
            command.begin()
            with reading_on(command.spool, tmp_path / "one", **of_reader(SOURCE)) as reading:
                until_read(command, reading.kept, 3)
        with reading_on(command.spool, tmp_path / "one", **of_reader(SOURCE)) as reading:
            reading.until(marked(work.server), command.printed)
    require_equal(copied(reading.kept), work)


@pytest.mark.fault(
    fault="`informix-cdc capture` dies at a failpoint while a table joins by a pattern",
    outcome="the table joins after a restart; each reader gets its existing rows and its changes",
)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.only_in_all
def test_a_capture_that_dies_while_a_table_joins_loses_no_row(
    place: str, served: tuple[Work, int], tmp_path: Path
) -> None:
    work, port = served
    with capture_command(tmp_path, port, **of_capture(SOURCE)) as command:
        capture = command.begin()
        with reading_on(command.spool, tmp_path / "one", **of_reader(SOURCE)) as reading:
            until_read(command, reading.kept, 3)
            work.writer.rows(LATE_TABLE)
            name = f"{DATABASE}:{LATE}"
            load_rows(work.server, name, [{"id": n, "name": "x"} for n in range(30)])
            command.arm(place)
            with meanwhile(work.insert, 0.02):
                command.until_dead(capture)
                command.start()
                until_read(command, reading.kept, 4)
            transaction = work.server.begin()
            transaction.insert(name, {"id": 99, "name": "live"})
            transaction.commit()
            reading.until(marked(work.server), command.printed)
    copies = copied(reading.kept)
    require_equal(copies, work)
    late = {(str(row["id"]), row["name"]) for row in copies.rows[LATE].values()}
    assert late == {(text, name) for text, name in work.writer.rows(f"SELECT id, name FROM {LATE}")}
    assert [each[0] for each in late if each[1] == "live"] == ["99"]
