"""`informix-cdc alter` with scripts and brackets: what fails, dies or is done twice at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connector.commands.commands import refusal, run
from harness.capture.copied_tables import LINES, OTHER, PAIRS, filled
from harness.capture.snapshots import serving_tables
from harness.capture.supervised import OF_SHAPES, Supervised
from harness.runs.deaths import die_at
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE
from harness.spark.checkpoints import plan
from informix_cdc.commands import row_logging
from informix_checkpoints import running_streams
from informix_checkpoints.requests import ALTER, Request

pytestmark = pytest.mark.slow

LINE, OTHER_ONE = "informix.lines", "informix.other"
SCRIPT = """\
-- of a vendor; {for both tables}
ALTER TABLE informix.lines ADD (size INTEGER DEFAULT 7);
CREATE INDEX by_size ON informix.lines (size);
ALTER TABLE informix.other ADD (note VARCHAR(20) DEFAULT 'a;b');
UPDATE informix.other SET note = 'it''s; new' WHERE id < 9;
"""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(row_logging, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(running_streams, "_GRACE_SECONDS", 0.3)
    with serving_tables(LINES, OTHER, PAIRS) as served:
        filled(served[0])
        yield served


@pytest.fixture
def query(served: Any, tmp_path: Path) -> Supervised:
    return begun(served, tmp_path)


def begun(served: Any, folder: Path, shape: str = "json", **more: str) -> Supervised:
    found = Supervised(served[1].port, folder, {**OF_SHAPES[shape], **more})
    found.begin()
    return found


def script_in(folder: Path, text: str = SCRIPT) -> str:
    path = folder / "upgrade.sql"
    path.write_text(text)
    return f"--file={path}"


@pytest.mark.only_in_all
def test_a_script_for_two_tables(query: Supervised, served: Any, tmp_path: Path) -> None:
    _, listening, writer = served
    arguments = query.arguments()
    with query.running():
        done = run(listening, "alter", script_in(tmp_path), *arguments)
        assert done.exit_code == 0, done.output
    query.until_equal(writer, LINE, OTHER_ONE)
    notes = {row["note"] for row in query.copies.rows[OTHER_ONE].values()}
    assert notes == {"a;b", "it's; new"}


@pytest.mark.fault(
    fault="a statement of a script fails half way",
    outcome="the tables return with what the statements before it have changed; the error names --from",
)
def test_a_statement_in_the_middle_fails(query: Supervised, served: Any, tmp_path: Path) -> None:
    _, listening, writer = served
    wrong = script_in(tmp_path, SCRIPT.replace("CREATE INDEX by_size", "CREATE INDEX by size"))
    arguments = query.arguments()
    with query.running():
        line = refusal(run(listening, "alter", wrong, *arguments))
        assert "statement 2 of 4 failed" in line
        assert "run alter again with --from 2" in line
    query.until_equal(writer, LINE, OTHER_ONE)
    assert "size" in query.copies.rows[LINE][1,]
    assert "note" not in query.copies.rows[OTHER_ONE][1,]
    arguments = query.arguments()
    with query.running():
        done = run(listening, "alter", script_in(tmp_path), "--from=2", *arguments)
        assert done.exit_code == 0, done.output
    query.until_equal(writer, LINE, OTHER_ONE)
    assert "note" in query.copies.rows[OTHER_ONE][1,]


def run_alter(port: int, *arguments: str) -> None:
    run(SimpleNamespace(port=port), "alter", *arguments)  # type: ignore[arg-type]


PLACES = {
    "alter.before_statement@2": "CREATE INDEX by_size ON informix.lines (size)",  # nothing shows it
    "alter.before_statement@1": "",  # by the layout
    "alter.after_statement@1": "",
    "alter.after_statement@2": "SELECT tabid FROM systables WHERE tabid = 1",
    "alter.after_statement@3": "",
    "altering.before_leaving": "",
    "requests.before_ready": "",
}


@pytest.mark.fault(
    fault="`informix-cdc alter` dies between or in the statements of a script",
    outcome="the same command continues; if nothing shows whether one has run, it asks for --from",
)
@pytest.mark.parametrize("place", rest_in_all(PLACES))
def test_a_script_that_died_is_continued(
    place: str, query: Supervised, served: Any, tmp_path: Path
) -> None:
    _, listening, writer = served
    script, arguments = script_in(tmp_path), query.arguments()
    die_at(place, run_alter, listening.port, script, *arguments)
    done = run(listening, "alter", script, *arguments)
    if PLACES[place]:
        assert "nothing shows whether it has run: CREATE INDEX" in refusal(done, 2)
        writer.rows(PLACES[place])  # it has run, or is run by hand
        done = run(listening, "alter", script, "--from=3", *arguments)
    assert done.exit_code == 0, done.output
    query.until_equal(writer, LINE, OTHER_ONE)
    assert len(writer.rows("SELECT idxname FROM sysindexes WHERE idxname = 'by_size'")) == 1
    assert "note" in query.copies.rows[OTHER_ONE][1,]


@pytest.mark.only_in_all
def test_a_bracket_around_ddl_of_another_program(query: Supervised, served: Any) -> None:
    server, listening, writer = served
    arguments = query.arguments()
    with query.running():
        begin = [f"--begin={LINE}", f"--begin={OTHER_ONE}"]
        done = run(listening, "alter", *begin, *arguments)
        assert done.exit_code == 0, done.output
        assert "Run the DDL now" in done.stderr
        assert not server.table(f"{DATABASE}:{LINE}").full_row_logging
        again = refusal(run(listening, "alter", "--begin=informix.pairs", *arguments), 2)
        assert "another change of informix.lines, informix.other is in progress: --begin" in again
        writer.rows("DROP TABLE informix.lines")
        writer.rows("CREATE TABLE informix.lines (id INTEGER PRIMARY KEY, other INTEGER)")
        writer.rows("INSERT INTO informix.lines VALUES (1, 2)")
        writer.rows("ALTER TABLE informix.other ADD (size INTEGER DEFAULT 7)")
        done = run(listening, "alter", "--end", *arguments)
        assert done.exit_code == 0, done.output
        assert "no `informix-cdc alter --begin`" in refusal(
            run(listening, "alter", "--end", *arguments), 2
        )
    query.until_equal(writer, LINE, OTHER_ONE)
    assert query.copies.rows[LINE] == {(1,): {"id": 1, "other": 2}}


@pytest.mark.only_in_all
def test_a_table_that_is_dropped_for_good_leaves_the_running_query(
    query: Supervised, served: Any
) -> None:
    _, listening, writer = served
    arguments = query.arguments()
    with query.running():
        done = run(listening, "alter", f"DROP TABLE {LINE}", *arguments)
        assert done.exit_code == 0, done.output
        assert "informix.lines no longer exists: the stream continues without it" in done.stderr
        writer.rows(f"INSERT INTO {OTHER_ONE} VALUES (77, 'later')")
        wait_until(lambda: (77,) in query.copies.rows[OTHER_ONE], 30)
    assert query.ends == []


@pytest.mark.fault(
    fault="two `informix-cdc alter` run at once, of different tables and of the same",
    outcome="those of different tables both; of the same table the second is refused, or waits",
)
def test_two_at_once(query: Supervised, served: Any) -> None:
    """As both looked before either asked: the second one has a request too, and comes after."""
    _, listening, writer = served
    arguments = query.arguments()
    first = Request(
        kind=ALTER, tables=(OTHER_ONE,), statements=(f"ALTER TABLE {OTHER_ONE} ADD (a INT)",)
    )
    again = Request(
        kind=ALTER, tables=(OTHER_ONE,), statements=(f"ALTER TABLE {OTHER_ONE} ADD (b INT)",)
    )
    for request in (first, again):
        query.requests.submit(request)
    with query.running():
        beside = run(listening, "alter", f"ALTER TABLE {LINE} ADD (c INT)", *arguments)
        assert beside.exit_code == 0, beside.output
        assert not query.requests.is_ready(again.id)
        other = run(listening, "alter", f"ALTER TABLE {OTHER_ONE} ADD (d INT)", *arguments)
        assert f"another change of {OTHER_ONE} is in progress" in refusal(other, 2)
        for request in (first, again):
            done = run(listening, "alter", *request.statements, *arguments)
            assert done.exit_code == 0, done.output
    query.until_equal(writer, LINE, OTHER_ONE)
    assert {"a", "b"} <= query.copies.rows[OTHER_ONE][1,].keys()
    assert "c" in query.copies.rows[LINE][1,]


@pytest.mark.only_in_all
def test_streams_of_two_queries(served: Any, tmp_path: Path) -> None:
    """One runs and one does not; each has another set of tables."""
    _, listening, writer = served
    one, two = begun(served, tmp_path / "1", "rows"), begun(served, tmp_path / "2", table=LINE)
    statement = f"ALTER TABLE {LINE} ADD (size INTEGER DEFAULT 7)"
    with two.running():
        done = run(listening, "alter", statement, *one.arguments(), *two.arguments())
        assert done.exit_code == 0, done.output
    for query, tables in ((one, (LINE, OTHER_ONE)), (two, (LINE,))):
        query.until_equal(writer, *tables)
        assert "size" in query.copies.rows[LINE][1,]


@pytest.mark.fault(
    fault="a table is altered in the middle of its first snapshot, or while it is read again",
    outcome="it leaves at once, and is read from its first row when it is back",
)
@pytest.mark.parametrize("shape", ["json", "rows"])
@pytest.mark.only_in_all
def test_a_table_leaves_in_the_middle_of_its_snapshot(shape: str, served: Any, tmp_path: Path) -> None:
    _, listening, writer = served
    query = Supervised(listening.port, tmp_path, {**OF_SHAPES[shape], "snapshotChunkRows": "1"})
    with query.running():
        wait_until(lambda: 0 < len(query.copies.rows[LINE]) < 25, 30)
    assert len(query.copies.rows[LINE]) < 30
    with query.running():
        done = run(
            listening, "alter", f"ALTER TABLE {LINE} ADD (size INTEGER DEFAULT 7)", *query.arguments()
        )
        assert done.exit_code == 0, done.output
    query.until_equal(writer, LINE, OTHER_ONE)


def test_a_gap_is_refused_unless_it_is_accepted(served: Any, tmp_path: Path) -> None:
    _, listening, writer = served
    query = begun(served, tmp_path, "json without events", truncate="ignore")
    statement = f"ALTER TABLE {LINE} ADD (size INTEGER DEFAULT 7)"
    arguments = query.arguments()
    line = refusal(run(listening, "alter", statement, *arguments), 2)
    assert "does not run, so it cannot be asked whether its rows can be read again" in line
    with query.running():
        line = refusal(run(listening, "alter", statement, *arguments), 2)
        assert "Set option tableEvents=true or truncate=emit; or run alter with --accept-gap" in line
        writer.rows(f"UPDATE {LINE} SET name = 'as before' WHERE id = 4")
        done = run(listening, "alter", statement, "--accept-gap", *arguments)
        assert done.exit_code == 0, done.output
        assert "are lost for its consumers" in done.stderr
        writer.rows(f"UPDATE {LINE} SET name = 'later' WHERE id = 3")
        later = {"id": 3, "name": "later", "size": 7}
        wait_until(lambda: query.copies.rows[LINE][3,] == later, 30)
    state = query.offset["tables"][LINE]
    assert 0 < state["left"] < state["since"]
    assert "size" not in query.copies.rows[LINE][4,]


@pytest.mark.fault(
    fault="Spark repeats a batch with rows from before an ALTER",
    outcome="it comes from the spool, with NULL in new columns",
)
@pytest.mark.parametrize("shape", ["rows", "json"])
def test_a_planned_batch_from_before_is_repeated(shape: str, served: Any, tmp_path: Path) -> None:
    _, listening, writer = served
    query = begun(served, tmp_path, shape)
    start, query.commits = query.offset, False
    with query.running():
        writer.rows(f"INSERT INTO {LINE} VALUES (77, 'before')")
        wait_until(lambda: (77,) in query.copies.rows[LINE], 30)
    end, query.offset, query.commits = query.offset, start, True
    arguments = query.arguments()
    plan(query.checkpoint, 2, end)
    statement = f"ALTER TABLE {LINE} ADD (size INTEGER DEFAULT 7)"
    done = run(listening, "alter", statement, *arguments)
    assert done.exit_code == 0, done.output
    query.copies.rows[LINE].pop((77,))  # as if the process had died before the sink had the batch
    query.repeat(start, end)
    again = {"id": 77, "name": "before"}
    assert query.copies.rows[LINE][77,] == (again if shape == "json" else {**again, "size": None})
    query.until_equal(writer, LINE, OTHER_ONE)
