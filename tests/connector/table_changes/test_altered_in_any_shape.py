"""`informix-cdc alter` beside a query of any shape: what its consumer has is what the tables have."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.commands.commands import run
from harness.capture.copied_tables import LINES, OTHER, filled
from harness.capture.snapshots import serving_tables
from harness.capture.supervised import OF_SHAPES, Supervised
from harness.runs.background import meanwhile
from harness.runs.tiers import rest_in_all
from harness.servers.in_process import InProcessConnection
from informix_capture_client.errors import RestartRequired
from informix_cdc.commands import row_logging
from informix_emulator.sql_errors import SqlError

pytestmark = pytest.mark.slow

TABLES = ("informix.lines", "informix.other")
DDL = {
    "ADD with DEFAULT": "ALTER TABLE informix.lines ADD (size INTEGER DEFAULT 7)",
    "MODIFY": "ALTER TABLE informix.lines MODIFY (name VARCHAR(40))",
    "RENAME COLUMN": "RENAME COLUMN informix.lines.name TO label",
    "DROP and CREATE": "DROP TABLE informix.lines; CREATE TABLE informix.lines (id INTEGER NOT NULL,"
    " n INTEGER, PRIMARY KEY (id)); INSERT INTO informix.lines VALUES (3, 4)",
    "both tables": "ALTER TABLE informix.lines ADD (size INTEGER DEFAULT 7); ALTER TABLE other"
    " DROP (name); UPDATE informix.lines SET size = 8 WHERE id < 5",
}
CASES = [(shape, "ADD with DEFAULT") for shape in OF_SHAPES] + [("rows", name) for name in DDL]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(row_logging, "PAUSE_SECONDS", 0)
    with serving_tables(LINES, OTHER) as served:
        filled(served[0], "lines", "other")
        yield served


def write(writer: InProcessConnection, draw: random.Random) -> None:
    """Change a row of a table, whatever other columns it has now."""
    table, number = draw.choice(TABLES), draw.randrange(40)
    with contextlib.suppress(SqlError):  # there is no table between DROP and CREATE
        if draw.random() < 0.4:
            writer.rows(f"DELETE FROM {table} WHERE id = {number}")
        else:
            is_there = f"EXISTS (SELECT 1 FROM {table} WHERE id = {number})"
            writer.rows(
                f"INSERT INTO {table} (id) SELECT {number} FROM systables WHERE tabid = 1"
                f" AND NOT {is_there}"
            )


def begun(served: Any, folder: Path, shape: str, **more: str) -> Supervised:
    found = Supervised(served[1].port, folder, {**OF_SHAPES[shape], **more})
    found.begin()
    return found


@pytest.mark.fault(
    fault="a captured table is altered while its query and its writers run",
    outcome="json and arrow: the query goes on; rows and envelope: it ends with IFXCDC-0009, and goes"
    " on with the new columns when it is started again; copies are equal, other tables have no gap",
    seeds="ADD with a DEFAULT; MODIFY; RENAME COLUMN; DROP and CREATE; several tables in one call",
)
@pytest.mark.parametrize(
    ("shape", "name"),
    rest_in_all(dict.fromkeys(CASES)),
    ids=[f"{shape}, {name}" for shape, name in dict.fromkeys(CASES)],
)
def test_tables_are_altered_beside_a_running_query(
    shape: str, name: str, served: Any, tmp_path: Path
) -> None:
    _, listening, writer = served
    query, draw = begun(served, tmp_path, shape), random.Random(0)
    arguments = query.arguments()
    with query.running(), meanwhile(lambda: write(writer, draw), 0.01):
        done = run(listening, "alter", DDL[name], *arguments)
        assert done.exit_code == 0, done.output
    query.until_equal(writer, *TABLES)
    is_fixed = shape.partition(" ")[0] in ("rows", "envelope")
    assert is_fixed == any(isinstance(reason, RestartRequired) for reason in query.ends)
    assert is_fixed == ("ends with IFXCDC-0009" in done.stderr)
