"""`snapshotWhere` limits the existing rows of a table, and no change."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.capture.driving import anchor_of, drained, failure_of, reader
from harness.capture.snapshots import serving_tables, until_snapshots_are_done
from harness.servers.stores import DATABASE
from informix_capture_client.errors import BadOption
from informix_cdc.options.declaring import snapshot_conditions
from informix_cdc.options.source import SourceOptions
from informix_emulator import EmulatedServer, load_rows

pytestmark = pytest.mark.slow  # they wait for seconds of the server's clock

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
ITEMS = "CREATE TABLE informix.items (id INTEGER NOT NULL, name VARCHAR(20))"
BOTH = {"table": "informix.lines,informix.items", "initialSnapshot": "all", "snapshotChunkRows": "3"}


def insert(server: EmulatedServer, table: str, number: int) -> int:
    transaction = server.begin()
    transaction.insert(f"{DATABASE}:informix.{table}", {"id": number, "name": "late"})
    return transaction.commit()


@pytest.mark.only_in_all
def test_existing_rows_are_limited_and_changes_are_not(tmp_path: Path) -> None:
    options = {
        **BOTH,
        "snapshotWithoutKey": "lock",
        "shape": "json",
        "spoolPath": str(tmp_path),
        "snapshotWhere": "informix.lines: id > 4 OR name = 'a;b'; informix.items: (id = 3)",
    }
    with serving_tables(LINES, ITEMS) as (server, listening, _):
        for table in ("lines", "items"):
            rows = [{"id": n, "name": "a;b" if n == 1 else "x"} for n in range(10)]
            load_rows(server, f"{DATABASE}:informix.{table}", rows)
        with reader(listening.port, **options) as made:
            rows, end = until_snapshots_are_done(made, anchor_of(made))
            more, _ = drained(made, end, insert(server, "lines", 2))
    found = [(row["_table"].partition(".")[2], row["after"]) for row in rows]
    lines = [1, *range(5, 10)]
    assert [text for table, text in found if table == "lines"] == [
        f'{{"id":{n},"name":"{"a;b" if n == 1 else "x"}"}}' for n in lines
    ]
    assert [text for table, text in found if table == "items"] == ['{"id":3,"name":"x"}']
    assert [row["after"] for row in more] == ['{"id":2,"name":"late"}']


def test_a_condition_that_the_server_refuses_is_named(tmp_path: Path) -> None:
    options = {"table": "informix.lines", "initialSnapshot": "all", "spoolPath": str(tmp_path)}
    with (
        serving_tables(LINES) as (_, listening, _),
        reader(listening.port, **options, snapshotWhere="informix.lines: nmae = 'x'") as made,
    ):
        error = failure_of(lambda: anchor_of(made))
    assert "refuses the condition of option snapshotWhere for stores:informix.lines" in str(error)


def test_a_condition_on_a_column_that_is_hidden_by_a_function_is_refused(tmp_path: Path) -> None:
    """The server would compare its login with the login of each row."""
    table = 'CREATE TABLE informix.lines (id INTEGER NOT NULL, "user" VARCHAR(20), PRIMARY KEY (id))'
    options = {"table": "informix.lines", "initialSnapshot": "all", "spoolPath": str(tmp_path)}
    with serving_tables(table) as (server, listening, _):
        rows = [{"id": n, "user": "josh" if n else "ann"} for n in range(3)]
        load_rows(server, f"{DATABASE}:informix.lines", rows)
        with reader(listening.port, **options, snapshotWhere="informix.lines: user = 'ann'") as made:
            error = failure_of(lambda: anchor_of(made))
        assert 'Write t."user" for the column' in str(error)
        right = "informix.lines: t.user = 'ann'"
        with reader(listening.port, **options, shape="json", snapshotWhere=right) as made:
            found, _ = until_snapshots_are_done(made, anchor_of(made))
    assert [row["after"] for row in found] == ['{"id":0,"user":"ann"}']


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("id > 4", "must be owner.table: CONDITION"),
        ("informix.lines:", "must be owner.table: CONDITION"),
        ("informix.lines: 1 = 1) OR (1 = 1", "unbalanced parentheses"),
        ("informix.lines: (id = 1", "unbalanced quotes or parentheses"),
        ("informix.lines: name = 'x", "unbalanced quotes or parentheses"),
        ("informix.lines: id = 1 -- and", "a comment"),
        ("informix.lines: id = 1 {", "a comment"),
        ("informix.lines: id = 1 /* x", "a comment"),
    ],
)
def test_conditions_that_could_change_the_statement_are_refused(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        snapshot_conditions(text)


def test_a_table_has_one_condition() -> None:
    given = {
        "host": "h",
        "server": "s",
        "database": "stores",
        "table": "informix.lines",
        "password": "x",
        "initialSnapshot": "all",
        "spoolPath": "/tmp/x",
        "snapshotWhere": "informix.lines: id = 1; informix.lines: id = 2",
    }
    with pytest.raises(BadOption, match="two conditions for a table"):
        SourceOptions.parse(given)
