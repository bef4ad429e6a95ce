"""Tables that are read at once while all are written: on both products, through broken connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import anchor_of, drained, reader
from harness.capture.snapshots import Rows, serving_tables, until_snapshots_are_done
from harness.runs.patience import patiently
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import DATABASE, PASSWORD
from informix_cdc.snapshots.reading import TableReader
from informix_emulator import EmulatedServer, load_rows

NAMES = ("lines", "parts", "notes")
MADE = [f"CREATE TABLE informix.{n} (id INTEGER NOT NULL PRIMARY KEY, v INTEGER)" for n in NAMES]
ROWS = 20
WRITER = "writer"
pytestmark = pytest.mark.slow  # each waits for seconds of the server's clock


@contextmanager
def writing(writer: InProcessConnection) -> Iterator[None]:
    """Change rows of all tables in one transaction after the other, until told to stop."""
    is_over = threading.Event()

    def write() -> None:
        number = 0
        while not is_over.wait(0.002):
            number += 1
            writer.rows("BEGIN WORK")
            for name in NAMES:
                key = number % ROWS
                writer.rows(f"UPDATE informix.{name} SET v = {1000 + number} WHERE id = {key}")
                if key % 5 == 4:
                    writer.rows(f"DELETE FROM informix.{name} WHERE id = {key}")
                    writer.rows(f"INSERT INTO informix.{name} VALUES ({key + 100 * number}, {number})")
            writer.rows("COMMIT WORK")

    worker = threading.Thread(target=write, name=WRITER)
    worker.start()
    try:
        yield
    finally:
        is_over.set()
        worker.join()


def states_of(rows: Rows) -> dict[str, dict[int, int]]:
    """Return what a consumer of all tables has that upserts what comes."""
    states: dict[str, dict[int, int]] = {name: {} for name in NAMES}
    for each in rows:
        name = each["_table"].rpartition(".")[2]
        row = each[name]
        if each["_change_type"] in ("insert", "update_postimage"):
            states[name][row["id"]] = row["v"]
        else:
            states[name].pop(row["id"], None)
    return states


def true_states(writer: InProcessConnection) -> dict[str, dict[int, int]]:
    return {
        name: {int(k or 0): int(v or 0) for k, v in writer.rows(f"SELECT id, v FROM informix.{name}")}
        for name in NAMES
    }


def fill(server: EmulatedServer) -> None:
    for name in NAMES:
        rows: list[dict[str, object]] = [{"id": n, "v": n} for n in range(ROWS)]
        load_rows(server, f"{DATABASE}:informix.{name}", rows)


def followed(port: int, folder: Path, writer: InProcessConnection, **changes: str) -> Rows:
    """Take the snapshots of all tables while all are written, and what comes behind."""
    tables = ",".join(f"informix.{name}" for name in NAMES)
    options = {
        "initialSnapshot": "all",
        "snapshotChunkRows": "7",
        "snapshotParallelism": "3",
        "spoolPath": str(folder),
        **changes,
    }
    with reader(port, table=tables, **options) as made:
        start = anchor_of(made)
        with writing(writer):
            rows, start = until_snapshots_are_done(made, start)
        server_place = _last_commit(writer)
        more, _ = drained(made, start, server_place)
    return rows + more


def _last_commit(writer: InProcessConnection) -> int:
    transaction = writer.inner.server.begin()
    transaction.insert(f"{DATABASE}:informix.lines", {"id": -1, "v": 0})
    return int(transaction.commit())


@pytest.mark.parametrize(("dialect", "user"), [("informix", "informix"), ("gbase8s", "gbasedbt")])
def test_three_tables_are_read_at_once_while_all_are_written(
    dialect: str, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    are_three, run = threading.Barrier(len(NAMES)), TableReader.run

    def run_with_the_others(self: TableReader) -> None:
        are_three.wait(patiently(10))  # with fewer at once it breaks, and the query with it
        run(self)

    monkeypatch.setattr(TableReader, "run", run_with_the_others)
    with serving_tables(*MADE, poses_as=dialect) as (server, listening, writer):
        server.users[user] = PASSWORD
        fill(server)
        rows = followed(listening.port, tmp_path, writer, dialect=dialect, user=user)
        assert states_of(rows) == true_states(writer)


@pytest.mark.fault(
    fault="all connections break in the middle of a chunk, of three tables that are read at once",
    outcome="the capture connects anew, and each table goes on behind its last chunk; the state of a"
    " consumer is exact, and no key of a chunk comes twice",
)
@pytest.mark.only_in_all
def test_connections_break_in_the_middle_of_a_chunk(tmp_path: Path) -> None:
    with serving_tables(*MADE) as (server, listening, writer):
        fill(server)
        steps = iter(range(1 << 20))

        def break_some() -> None:
            is_ours = threading.current_thread().name in (WRITER, threading.main_thread().name)
            if not is_ours and next(steps) in (4, 12):  # in a SELECT of a chunk
                listening.disconnect_all()

        server.rows_per_scan_step, server.between_scan_steps = 3, break_some
        rows = followed(listening.port, tmp_path, writer)
        assert next(steps) > 12  # so that it has happened
        assert states_of(rows) == true_states(writer)
    read = [(row["_table"], row[name]["id"]) for row in rows for name in NAMES if is_of(row, name)]
    assert len(read) == len(set(read))


def is_of(row: dict[str, Any], name: str) -> bool:
    return bool(row["_snapshot"] and row["_table"].endswith(name))
