"""Tables that leave, come back, or are altered: a copy that applies what comes has what the table has.

Rule: the copy is folded by key from the rows alone, and compared with what a SELECT gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from connector.commands.commands import run
from harness.capture.driving import LIMIT, Offset, anchor_of, failure_of, next_offset, reader, rows_of
from harness.capture.snapshots import Rows, are_done, serving_tables
from harness.capture.told import told
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import source_options
from harness.spark.checkpoints import run_batches
from informix_capture_client.errors import BadOption
from informix_capture_client.positions import show
from informix_cdc.commands import row_logging
from informix_cdc.spark.datasource import InformixCdcDataSource
from informix_emulator import EmulatedServer, ListeningServer
from informix_emulator.sql_errors import SqlError

pytestmark = pytest.mark.slow

BOTH = "informix.t0,informix.t1"
READ_AGAIN = {"initialSnapshot": "all", "truncate": "emit"}


@dataclass
class Copy:
    """A server with two tables, a stream of both, and the copies of a consumer that applies it."""

    server: EmulatedServer
    listening: ListeningServer
    writer: InProcessConnection
    folder: Path
    copies: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    offsets: list[Offset] = field(default_factory=list)

    def reader(self, **options: str) -> Any:
        chosen = {"table": BOTH, "spoolPath": str(self.folder / "spool"), **READ_AGAIN}
        return reader(self.listening.port, **{**chosen, **options})

    def run(self, upto: Callable[[Offset], bool], **options: str) -> None:
        """Take batches until an offset is as it has to be, and apply them."""
        with self.reader(**options) as made:
            end = self.offsets[-1] if self.offsets else anchor_of(made)
            self.offsets.append(end)
            while not upto(end):
                start, end = end, next_offset(made, end, seconds=30)
                self.apply(rows_of(made, start, end))
                self.offsets.append(end)

    def apply(self, rows: Rows) -> None:
        for row in rows:
            name = row["_table"].rpartition(".")[2]
            copy, image = self.copies.setdefault(name, {}), row[name]
            match row["_change_type"]:
                case "truncate":
                    copy.clear()
                case "delete" | "update_preimage":
                    copy.pop(image["id"], None)
                case _:
                    copy[image["id"]] = image

    def write(self, *statements: str) -> int:
        for statement in statements:
            self.writer.rows(statement)
        return self.server.position()

    def is_read_upto(self, place: int) -> Callable[[Offset], bool]:
        """Return what tells whether an offset has all snapshots, and all changes up to a place."""
        self.write("INSERT INTO t1 VALUES (0, 'mark')", "DELETE FROM t1 WHERE id = 0")
        return lambda end: are_done(end) and end["commit"] >= place

    def require_equal(self, *columns: str, table: str = "t0") -> None:
        """Compare the copy of a table with the table."""
        rows = self.writer.rows(f"SELECT {', '.join(columns)} FROM {table}")
        found = {int(row[0] or 0): list(row) for row in rows}
        copied = {
            key: [str(row[name]) for name in columns] for key, row in self.copies.get(table, {}).items()
        }
        assert copied == {key: [str(value) for value in row] for key, row in found.items()}


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Copy]:
    monkeypatch.setattr(row_logging, "PAUSE_SECONDS", 0)
    made = [f"CREATE TABLE t{n} (id INTEGER PRIMARY KEY, b VARCHAR(20))" for n in (0, 1)]
    filled = [f"INSERT INTO t0 VALUES ({n}, 'old {n}')" for n in range(1, 9)]
    with serving_tables(*made, *filled) as (server, listening, writer):
        found = Copy(server, listening, writer, tmp_path)
        found.run(are_done)
        yield found


CHANGES = (
    "DELETE FROM t0 WHERE id < 4",
    "UPDATE t0 SET b = 'new' WHERE id = 5",
    "INSERT INTO t0 VALUES (20, 'added')",
)
REFUSED = {
    "initialSnapshot still names it": {"table": "informix.t1", "initialSnapshot": BOTH},
    "another option is wrong": {"table": "informix.t1", "heartbeatTable": "informix.nobody"},
    "it is swapped for one without a key": {"table": "informix.t1,informix.t9"},
}


@pytest.mark.fault(
    fault="a start that leaves a table out is refused, or killed before its first batch",
    outcome="the table is in the stream as before once the options are put back",
    seeds="an option that names it still, a key that is missing, a stop as soon as the session is up",
)
@pytest.mark.parametrize("options", rest_in_all(REFUSED.values()), ids=REFUSED.keys())
@pytest.mark.only_in_all
def test_a_start_that_is_refused_takes_no_table_out(copy: Copy, options: dict[str, str]) -> None:
    copy.write("CREATE TABLE t9 (n INTEGER)")

    def refused() -> None:
        with copy.reader(**options) as made:
            made.latestOffset(copy.offsets[-1], LIMIT)
            next_offset(made, copy.offsets[-1])

    assert isinstance(failure_of(refused), BadOption)
    copy.run(copy.is_read_upto(copy.write(*CHANGES)))
    copy.require_equal("id", "b")


def test_a_start_that_is_killed_before_its_first_batch_takes_no_table_out(
    copy: Copy, caplog: pytest.LogCaptureFixture
) -> None:
    """The spool has it that the table has left; the checkpoint, which decides, has not."""
    caplog.set_level("INFO")
    with copy.reader(table="informix.t1") as made:
        made.latestOffset(copy.offsets[-1], LIMIT)
        wait_until(lambda: told(caplog, "table_left"))
    copy.run(copy.is_read_upto(copy.write(*CHANGES)))
    copy.require_equal("id", "b")


@pytest.mark.only_in_all
def test_a_snapshot_of_a_table_that_is_not_captured_is_refused_at_load(copy: Copy) -> None:
    options = source_options(copy.listening.port, table="informix.t1", initialSnapshot="informix.t0")
    source = InformixCdcDataSource({**options, "spoolPath": str(copy.folder / "spool")})
    with pytest.raises(BadOption, match=r"initialSnapshot.*t0, which is not a captured table"):
        source.schema()


@pytest.mark.fault(
    fault="a table is taken out of a stream and named again later",
    outcome="a warning with both places; with truncate=emit a row that empties the copy, then all rows",
)
@pytest.mark.only_in_all
def test_a_table_that_comes_back_is_a_gap_that_is_logged_and_can_be_read_again(
    copy: Copy, caplog: pytest.LogCaptureFixture
) -> None:
    copy.run(lambda end: "informix.t0" not in end["tables"], table="informix.t1")
    left = copy.offsets[-1]
    assert left["left"] == {"informix.t0": left["commit"]}
    copy.write(*CHANGES)
    copy.run(lambda end: are_done(end) and "informix.t0" in end["tables"])
    copy.require_equal("id", "b")
    (gap,) = told(caplog, "table_came_back")
    since = copy.offsets[-1]["tables"]["informix.t0"]["since"]
    assert (gap["left"], gap["since"]) == (show(left["commit"]), show(since))
    assert "left" not in copy.offsets[-1]


def altered(copy: Copy, *ddl: str, more: str = "", answer: str = "informix.t0") -> None:
    """Run DDL while the query does not run, as the manual has it."""
    checkpoint = run_batches(copy.folder / "checkpoint", *copy.offsets)
    given = [f"--checkpoint={checkpoint}", f"--spool={copy.folder / 'spool'}", "--yes"]
    done = run(copy.listening, "alter", "; ".join(ddl), *given, *filter(None, [more]))
    assert done.exit_code == 0, done.output
    assert answer in done.stderr


DDL = {
    "DROP and CREATE": (
        [
            "DROP TABLE t0",
            "CREATE TABLE t0 (id INTEGER PRIMARY KEY, b VARCHAR(20))",
            "INSERT INTO t0 VALUES (3, 'of the new one')",
            "INSERT INTO t0 VALUES (77, 'of the new one')",
        ],
        ("id", "b"),
    ),
    "ADD with a DEFAULT": (
        ["ALTER TABLE t0 ADD (prio INTEGER DEFAULT 7 NOT NULL)"],
        ("id", "b", "prio"),
    ),
    "MODIFY and RENAME COLUMN": (
        [
            "ALTER TABLE t0 MODIFY (b VARCHAR(40))",
            "RENAME COLUMN t0.b TO c",
            "UPDATE t0 SET c = 'late'",
        ],
        ("id", "c"),
    ),
}


@pytest.mark.fault(
    fault="DDL gives existing rows other values, or makes the table anew, while no query runs",
    outcome="the next start reads the table again, and a copy has what it has",
    seeds="ADD with a DEFAULT; MODIFY; RENAME COLUMN; DROP and CREATE",
)
@pytest.mark.parametrize(("ddl", "columns"), rest_in_all(DDL.values()), ids=DDL.keys())
def test_an_altered_table_is_read_again(copy: Copy, ddl: list[str], columns: tuple[str, ...]) -> None:
    copy.write(*CHANGES)  # which the stream has not delivered
    altered(copy, *ddl)
    digest = copy.offsets[-1]["tables"]["informix.t0"]["digest"]
    same = {"digest": digest}
    copy.run(lambda end: are_done(end) and end["tables"].get("informix.t0", same)["digest"] != digest)
    copy.write("UPDATE t0 SET id = 33 WHERE id = 3")
    copy.run(copy.is_read_upto(copy.server.position()))
    copy.require_equal(*columns)


@pytest.mark.fault(
    fault="a table is altered, and its consumer cannot remove rows (`--accept-gap`)",
    outcome="a data loss with both places, in the offset too",
)
def test_a_table_that_is_not_read_again_has_a_gap(copy: Copy, caplog: pytest.LogCaptureFixture) -> None:
    left = copy.offsets[-1]["commit"]
    altered(copy, *DDL["ADD with a DEFAULT"][0], more="--accept-gap")
    copy.write("UPDATE t0 SET b = 'in the gap'")
    copy.run(
        lambda end: "informix.t0" in end["tables"] and end["tables"]["informix.t0"]["since"] > left
    )
    copy.write("UPDATE t0 SET b = 'late' WHERE id = 5")
    copy.run(copy.is_read_upto(copy.server.position()))
    state = copy.offsets[-1]["tables"]["informix.t0"]
    (gap,) = told(caplog, "data_loss")
    assert (gap["after"], gap["upto"]) == (show(state["left"]), show(state["since"]))
    assert left <= state["left"] < state["since"]
    late = {"id": 5, "b": "late", "prio": 7}
    assert [row for row in copy.copies["t0"].values() if row.get("prio")] == [late]


@pytest.mark.fault(
    fault="a captured table is renamed: RENAME TABLE while it is captured, and by `informix-cdc alter`",
    outcome="refused by the server; then the start names the table that is gone, and under its new name"
    " the table joins, with its rows",
)
@pytest.mark.only_in_all
def test_a_table_that_is_renamed_leaves_and_joins_under_its_new_name(copy: Copy) -> None:
    with pytest.raises(SqlError, match="-19816"):
        copy.write("RENAME TABLE t0 TO t2")
    altered(copy, "RENAME TABLE t0 TO t2", answer="informix.t0 no longer exists")
    with pytest.raises(BadOption, match=r"informix\.t0 does not exist"), copy.reader():
        pass
    both = {"table": "informix.t1,informix.t2"}
    copy.run(lambda end: are_done(end) and "informix.t2" in end["tables"], **both)
    copy.write("UPDATE t2 SET b = 'late' WHERE id = 3")
    copy.run(copy.is_read_upto(copy.server.position()), **both)
    copy.require_equal("id", "b", table="t2")
