"""`informix-cdc alter`: one command, while the query runs; killed at each step, and repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import Result

from connector.commands.commands import refusal, run
from harness.capture.copied_tables import CopiedTables, copied_tables
from harness.runs.background import meanwhile
from harness.runs.deaths import die_at
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE
from informix_cdc.commands import alter
from informix_checkpoints import running_streams

pytestmark = pytest.mark.slow

TABLE = "informix.lines"
ADD = f"ALTER TABLE {TABLE} ADD (size INTEGER DEFAULT 7)"


def altered(query: CopiedTables, statement: str, *more: str) -> Result:
    return run(query.listening, "alter", statement, *query.arguments(), *more)


@pytest.fixture
def query(tmp_path: Path) -> Iterator[CopiedTables]:
    with copied_tables(tmp_path) as query:
        yield query.begin()


@pytest.mark.only_in_all
def test_one_command_alters_a_table_under_load(query: CopiedTables) -> None:
    with query.running(), meanwhile(lambda: query.change(1, "pairs", "other"), 0.005):
        found = altered(query, ADD)
        assert found.exit_code == 0, found.output
    query.finish()
    assert "30 rows were read again" in found.stderr
    assert query.sizes() == {7}
    query.require_equal()
    assert max(query.pauses) < 2


@pytest.mark.only_in_all
def test_a_masked_table_is_altered_and_stays_masked(tmp_path: Path) -> None:
    with copied_tables(tmp_path, {"mask": "lines.name=null,other.name=null"}) as query:
        _alter_masked(query.begin())


def _alter_masked(query: CopiedTables) -> None:
    with query.running():
        found = altered(query, ADD)
        assert found.exit_code == 0, found.output
    query.finish()
    assert query.sizes() == {7}
    for table in (TABLE, "informix.other"):
        assert {row["name"] for row in query.copies.rows[table].values()} == {None}


STEPS = [
    "alter.after_request",
    "alter.before_switch_off",
    "alter.before_statement",
    "alter.after_statement",
    "alter.before_switch_on",
    "alter.before_return",
]


def run_alter(port: int, arguments: list[str]) -> None:
    run(SimpleNamespace(port=port), "alter", ADD, *arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "place",
    ["alter.after_statement", *rest_in_all(each for each in STEPS if each != "alter.after_statement")],
)
def test_a_command_that_died_is_repeated(place: str, query: CopiedTables) -> None:
    with query.running():
        die_at(place, run_alter, query.listening.port, query.arguments())
        other = run(
            query.listening, "alter", f"ALTER TABLE {TABLE} ADD (x INTEGER)", *query.arguments()
        )
        assert "another change of informix.lines is in progress" in refusal(other, 2)
        found = altered(query, ADD)
        assert found.exit_code == 0, found.output
    query.finish()
    assert query.sizes() == {7}
    query.require_equal()
    assert query.server.table(f"{DATABASE}:{TABLE}").full_row_logging


def test_a_dry_run_and_locks_change_nothing(
    query: CopiedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    with query.running():
        shown = altered(query, ADD, "--dry-run")
        assert shown.exit_code == 0, shown.output
        assert ADD in shown.stderr
        transaction = query.server.begin()
        transaction.insert(f"{DATABASE}:{TABLE}", {"id": 500, "name": "x"})
        monkeypatch.setattr(alter, "LOCK_WAIT_SECONDS", 1)
        line = refusal(altered(query, ADD))
        transaction.rollback()
    assert "stores:informix.lines cannot be altered: it was locked for 1 s by 1 session: 0." in line
    assert query.requests.pending() == []


def test_a_statement_that_the_server_refuses_returns_the_table(query: CopiedTables) -> None:
    with query.running():
        wrong = f"ALTER TABLE {TABLE} ADD (name INTEGER)"
        line = refusal(altered(query, wrong))
        assert "returns to the stream unchanged" in line
    query.finish()
    query.require_equal()


REFUSED = {
    "CREATE TABLE x (a INTEGER)": "none of the tables that the stream captures",
    "ALTER TABLE informix.nothing ADD (a INTEGER)": "none of the tables",
    f"BEGIN WORK; {ADD}": "statement 1 is BEGIN, which alter does not run",
    f"{ADD}; CREATE PROCEDURE p() END PROCEDURE": "statement 2 is CREATE PROCEDURE",
    " -- nothing\n;": "there is no statement to run",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_other_statements_are_refused(statement: str, query: CopiedTables) -> None:
    line = refusal(altered(query, statement), 2)
    assert REFUSED[statement] in line


def test_tables_of_a_query_that_does_not_run_are_altered_too(
    query: CopiedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    query.change(10)  # not delivered before
    monkeypatch.setattr(running_streams, "_GRACE_SECONDS", 0.2)
    found = altered(query, ADD)
    assert found.exit_code == 0, found.output
    assert "Start the query" in found.stderr
    query.change()
    with query.running():
        wait_until(lambda: not query.requests.pending(), 60)
    query.finish()
    assert query.sizes() == {7}
    query.require_equal()
