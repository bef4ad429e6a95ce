"""`informix-cdc alter` that meets another one, an earlier failure, or another stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connector.commands.commands import refusal, run
from connector.table_changes.test_scripts_of_ddl import LINE, OTHER_ONE, begun, query, run_alter, served
from harness.capture.driving import LIMIT
from harness.capture.supervised import OF_SHAPES, Supervised
from harness.runs.deaths import die_at
from harness.runs.patience import wait_until
from harness.spark.checkpoints import plan
from informix_capture_client.errors import InformixCdcError, RestartRequired
from informix_cdc.commands import alter as command
from informix_checkpoints.requests import RESYNC, Request

__all__ = ["query", "served"]
pytestmark = pytest.mark.slow

ADD = f"ALTER TABLE {LINE} ADD (size INTEGER DEFAULT 7)"
AUDITED = f"ALTER TABLE {LINE} ADD (a INTEGER); INSERT INTO audit VALUES (1)"


def columns_of(writer: Any, table: str) -> set[str]:
    found = writer.rows(
        "SELECT colname FROM syscolumns c, systables t WHERE c.tabid = t.tabid AND t.tabname ="
        f" '{table.rpartition('.')[2]}'"
    )
    return {str(name).strip() for (name,) in found}


def test_two_tables_of_a_stopped_query_one_after_the_other(query: Supervised, served: Any) -> None:
    _, listening, writer = served
    arguments = query.arguments()
    for table in (OTHER_ONE, LINE):
        done = run(listening, "alter", f"ALTER TABLE {table} ADD (a INTEGER)", *arguments)
        assert done.exit_code == 0, done.output
    query.until_equal(writer, LINE, OTHER_ONE)


@pytest.mark.fault(
    fault="`informix-cdc alter` for two streams of different tables dies between two statements",
    outcome="the same command runs what has not run, and --end knows the tables of both",
)
def test_two_streams_of_different_tables(served: Any, tmp_path: Path) -> None:
    _, listening, writer = served
    one, two = begun(served, tmp_path / "1"), begun(served, tmp_path / "2", table=LINE)
    arguments = [*one.arguments(), *two.arguments()]
    script = f"{ADD}; ALTER TABLE {OTHER_ONE} ADD (b INTEGER)"
    die_at("alter.before_statement@2", run_alter, listening.port, script, *arguments)
    done = run(listening, "alter", script, *arguments)
    assert done.exit_code == 0, done.output
    assert "b" in columns_of(writer, OTHER_ONE)
    for each, tables in ((one, (LINE, OTHER_ONE)), (two, (LINE,))):
        each.until_equal(writer, *tables)
    arguments = [*one.arguments(), *two.arguments()]
    begin = [f"--begin={LINE}", f"--begin={OTHER_ONE}"]
    assert run(listening, "alter", *begin, *arguments).exit_code == 0
    writer.rows(f"DROP TABLE {OTHER_ONE}")
    assert "informix.other no longer exists" in run(listening, "alter", "--end", *arguments).stderr


@pytest.mark.only_in_all
def test_a_stream_that_refuses_gets_the_tables_of_the_others_back(served: Any, tmp_path: Path) -> None:
    _, listening, writer = served
    one = begun(served, tmp_path / "1")
    two = begun(served, tmp_path / "2", "json without events", truncate="ignore", table=LINE)
    arguments = [*one.arguments(), *two.arguments()]
    with one.running(), two.running():
        line = refusal(run(listening, "alter", ADD, *arguments), 2)
        assert "refused: its consumer could not remove rows" in line
        wait_until(lambda: not one.requests.pending(), 60)
        done = run(listening, "alter", ADD, "--accept-gap", *arguments)
        assert done.exit_code == 0, done.output
    assert "size" in columns_of(writer, LINE)


@pytest.mark.only_in_all
def test_a_checkpoint_without_the_table_changes_nothing(served: Any, tmp_path: Path) -> None:
    _, listening, _ = served
    one, two = begun(served, tmp_path / "1"), begun(served, tmp_path / "2", table=OTHER_ONE)
    line = refusal(run(listening, "alter", ADD, *one.arguments(), *two.arguments()), 2)
    assert "captures none of informix.lines" in line
    assert one.requests.pending() == []


@pytest.mark.only_in_all
def test_a_start_whose_options_cannot_empty_the_copy_is_refused(query: Supervised, served: Any) -> None:
    """The table was altered while the query did not run, with the options of before."""
    _, listening, writer = served
    query.options = {"shape": "json"}
    assert run(listening, "alter", ADD, *query.arguments()).exit_code == 0
    query.options = {"shape": "json", "truncate": "ignore"}
    with pytest.raises(InformixCdcError, match="after a row of kind truncate"):
        query.until_equal(writer, LINE, OTHER_ONE)
    query.options = {"shape": "json"}
    query.until_equal(writer, LINE, OTHER_ONE)


@pytest.mark.fault(
    fault="a statement fails, and `informix-cdc alter` dies before the tables are back",
    outcome="the same command lets them return, and reports the failure again",
)
def test_a_failure_is_not_forgotten(query: Supervised, served: Any) -> None:
    _, listening, writer = served
    arguments = query.arguments()
    script = f"{ADD}; ALTER TABLE {LINE} DROP (nobody); ALTER TABLE {LINE} ADD (c INTEGER)"
    die_at("alter.before_switch_on", run_alter, listening.port, script, *arguments)
    line = refusal(run(listening, "alter", script, *arguments))
    assert "statement 2 of 3 failed" in line
    assert "--from 2" in line
    query.until_equal(writer, LINE, OTHER_ONE)


@pytest.mark.only_in_all
def test_a_statement_of_a_rest_is_not_run_twice(query: Supervised, served: Any) -> None:
    _, listening, writer = served
    writer.rows("CREATE TABLE audit (n INTEGER)")
    script, arguments = f"{AUDITED}; {ADD}", query.arguments()
    die_at("alter.after_statement@1", run_alter, listening.port, script, "--from=2", *arguments)
    line = refusal(run(listening, "alter", script, "--from=2", *arguments), 2)
    assert "interrupted by statement 2" in line
    done = run(listening, "alter", script, "--from=3", *arguments)
    assert done.exit_code == 0, done.output
    assert len(writer.rows("SELECT * FROM audit")) == 1
    assert {"size"} <= columns_of(writer, LINE)
    assert "a" not in columns_of(writer, LINE)


def test_the_same_command_twice_at_once(
    query: Supervised, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, listening, writer = served
    writer.rows("CREATE TABLE audit (n INTEGER)")
    arguments, lines = query.arguments(), list[str]()

    def beside(name: str) -> None:
        if name == "alter.after_statement" and not lines:
            lines.append(refusal(run(listening, "alter", AUDITED, *arguments), 2))

    monkeypatch.setattr(command, "failpoint", beside)
    done = run(listening, "alter", AUDITED, *arguments)
    assert done.exit_code == 0, done.output
    assert "another informix-cdc alter runs these statements now" in lines[0]
    assert len(writer.rows("SELECT * FROM audit")) == 1


@pytest.mark.only_in_all
def test_a_resync_that_waits_for_a_gap_reads_all_rows(query: Supervised, served: Any) -> None:
    _, listening, _ = served
    arguments = query.arguments()
    query.copies.rows[LINE].pop((4,))  # which is why somebody asked for it
    request = Request(kind=RESYNC, tables=(LINE,))
    query.requests.submit(request)
    assert run(listening, "alter", ADD, "--accept-gap", *arguments).exit_code == 0
    with query.running():
        wait_until(lambda: query.requests.answer(request.id) is not None, 60)
    assert (4,) in query.copies.rows[LINE]


@pytest.mark.only_in_all
def test_a_gap_is_refused_while_existing_rows_are_read(served: Any, tmp_path: Path) -> None:
    _, listening, writer = served
    query = Supervised(served[1].port, tmp_path, {**OF_SHAPES["json"], "snapshotChunkRows": "1"})
    with query.running():
        wait_until(lambda: 0 < len(query.copies.rows[LINE]) < 25, 30)
    line = refusal(run(listening, "alter", ADD, "--accept-gap", *query.arguments()), 2)
    assert "--accept-gap would leave out the rest" in line
    query.until_equal(writer, LINE, OTHER_ONE)


@pytest.mark.only_in_all
def test_a_table_without_a_key_returns_if_it_may_be_locked(served: Any, tmp_path: Path) -> None:
    _, listening, writer = served
    writer.rows("CREATE TABLE informix.nokey (id INTEGER NOT NULL, name VARCHAR(20))")
    writer.rows("INSERT INTO informix.nokey VALUES (1, 'x')")
    options = {"shape": "json", "snapshotWithoutKey": "lock"}
    query = Supervised(listening.port, tmp_path, options, ("informix.nokey", OTHER_ONE))
    query.begin()
    statement, arguments = "ALTER TABLE informix.nokey ADD (a INTEGER)", query.arguments()
    assert "has no primary key" in refusal(run(listening, "alter", statement, *arguments), 2)
    assert "a" not in columns_of(writer, "nokey")
    done = run(listening, "alter", statement, "--snapshot-without-key=lock", *arguments)
    assert done.exit_code == 0, done.output
    query.until_equal(writer, "informix.nokey", OTHER_ONE)


@pytest.mark.fault(
    fault="a table of a stopped query is altered, and its spool has lost rows of a planned batch",
    outcome="refused: the query must commit that batch first",
)
def test_a_planned_batch_that_is_lost_comes_first(query: Supervised, served: Any) -> None:
    _, listening, writer = served
    start, query.commits = query.offset, False
    with query.running():
        writer.rows(f"INSERT INTO {OTHER_ONE} VALUES (77, 'before')")
        wait_until(lambda: (77,) in query.copies.rows[OTHER_ONE], 30)
    end, query.offset, query.commits = query.offset, start, True
    arguments = query.arguments()
    plan(query.checkpoint, 2, end)
    sorted((query.spool / end["stream"]).glob("*.arrow"))[-1].unlink()
    line = refusal(run(listening, "alter", ADD, *arguments), 2)
    assert "its last batch is incomplete" in line
    query.copies.rows[OTHER_ONE].pop((77,))
    query.repeat(start, end)
    assert (77,) in query.copies.rows[OTHER_ONE]


@pytest.mark.only_in_all
def test_a_session_begins_again_without_a_table_that_was_dropped(
    query: Supervised, served: Any
) -> None:
    _, listening, writer = served
    arguments = query.arguments()
    with query.running():
        assert run(listening, "alter", f"DROP TABLE {LINE}", *arguments).exit_code == 0
        done = run(listening, "alter", f"ALTER TABLE {OTHER_ONE} ADD (a INTEGER)", *arguments)
        assert done.exit_code == 0, done.output
    assert query.ends == []
    query.tables = (OTHER_ONE,)
    query.until_equal(writer, OTHER_ONE)


@pytest.mark.only_in_all
def test_columns_that_change_before_the_first_batch_ask_for_a_restart(
    served: Any, tmp_path: Path
) -> None:
    _, listening, _ = served
    query = begun(served, tmp_path, "rows")
    arguments = query.arguments()
    with query.reader() as made:
        assert run(listening, "alter", ADD, *arguments).exit_code == 0
        with pytest.raises(RestartRequired):
            wait_until(lambda: made.latestOffset(query.offset, LIMIT) != query.offset, 30)
