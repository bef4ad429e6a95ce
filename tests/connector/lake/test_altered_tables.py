"""A mirror over an ALTER: the altered table is exact, no other one stops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.lake.ledger import LedgerTable, ledger
from harness.lake.mirroring import MirrorRun, until
from harness.servers.in_process import LOGIN, InProcessConnection
from informix_checkpoints.requests import ALTER, Request, RequestFolder
from informix_emulator import EmulatedServer

T, OTHER = "stores:informix.t", "stores:informix.other"
COLUMNS = {"id": "integer", "note": "varchar(20,0)", "size": "integer"}
ALTERED: dict[str, dict[str, str]] = {
    "a column is added": {**COLUMNS, "priority": "smallint"},
    "a column is wider": {**COLUMNS, "size": "bigint"},
    "a column is dropped": {"id": "integer", "size": "integer"},
    "a column is another type": {**COLUMNS, "size": "decimal(5,2)"},
}
SQL = {
    "a column is added": "ADD (priority SMALLINT)",
    "a column is wider": "MODIFY (size BIGINT)",
    "a column is dropped": "DROP (note)",
    "a column is another type": "MODIFY (size DECIMAL(5,2))",
}
ROWS: list[dict[str, Any]] = [
    {"id": number, "note": f"n{number}", "size": number, "priority": None} for number in (1, 2, 3)
]


def insert(server: EmulatedServer, table: str, *rows: dict[str, Any]) -> int:
    transaction = server.begin()
    for row in rows:
        transaction.insert(table, row)
    return int(transaction.commit())


def only(row: dict[str, Any], columns: dict[str, str]) -> dict[str, Any]:
    return {name: row[name] for name in columns}


def caught_up(run: MirrorRun, step: Callable[[], bool], upto: int) -> None:
    until(step, lambda: run.batches[-1].commit >= upto and not run.batches[-1].loading)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALTERED)
def test_a_table_that_is_altered_while_the_mirror_runs_equals_informix(
    name: str, tmp_path: Path
) -> None:
    """No restart, and writers go on, also while row logging is off."""
    columns = ALTERED[name]
    with ledger(1, 0) as (made, listening):
        made.add(LedgerTable("t", ("id",), COLUMNS))
        made.add(LedgerTable("other", ("id",), {"id": "integer"}))
        server = made.server
        insert(server, T, *(only(row, COLUMNS) for row in ROWS))
        run = MirrorRun(tmp_path, listening.port, snapshotParallelism="8")
        with run.running() as step:
            step()
            caught_up(run, step, insert(server, OTHER, {"id": 1}))
            assert run.start is not None
            spool = Path(run.settings.checkpoint) / "spool" / run.start["stream"]
            requests, request = RequestFolder(spool), Request(kind=ALTER, tables=("informix.t",))
            requests.submit(request)
            until(step, lambda: requests.is_ready(request.id))
            server.set_full_row_logging(T, False)
            insert(server, T, {"id": 5, "note": "late", "size": 5})
            InProcessConnection(server, LOGIN, "stores").rows(f"ALTER TABLE informix.t {SQL[name]}")
            server.finish_alter(T)
            requests.mark_altered(request.id)
            until(step, lambda: requests.answer(request.id) is not None)
            new = {"id": 9, "note": "n9", "size": 9, "priority": 7}
            caught_up(run, step, insert(server, T, only(new, columns)))
        wanted = [*ROWS, {"id": 5, "note": "late", "size": 5, "priority": None}, new]
        found = sorted(run.rows("t"), key=lambda row: row["id"])
        assert found == [only(row, columns) for row in wanted]
        assert [row["status"] for row in run.control("informix.t")][-1] == "mirrored"
        assert sorted(row["id"] for row in run.rows("other")) == [1]
