"""The pages for the DBA state the load on a server and all statements that it receives."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from connector.commands.commands import refusal, run, run_plain, server_options
from harness.capture.driving import anchor_of, drained, figure, insert, reader
from harness.capture.snapshots import until_snapshots_are_done
from harness.runs.patience import wait_until
from harness.servers.in_process import LOGIN, InProcessConnection
from harness.servers.stores import DATABASE, listening_stores, source_options
from informix_capture_client import statements
from informix_capture_client.transport.sqli import WireTrace
from informix_cdc.capture.server_watch import INTERVAL_SECONDS, log_facts
from informix_cdc.options import SourceOptions
from informix_cdc.server import look_up_tables, open_catalog, trace_wire
from informix_emulator import EmulatedServer, ListeningServer, keep_rows, load_rows
from informix_emulator.answers import CheckStatement, Prepared, SqlSession
from informix_emulator.connection import Connection
from informix_emulator.sqli.pam import Prompt, PromptStyle
from manual.made_parts import ROOT
from manual.sent_statements import OF_A_TABLE, WHEN, texts
from odbc_driver.build import Drivers, build_drivers

# Statements that no run against this server sends, each with the reason.
NOT_SENT_HERE = {
    "DEACTIVATE_SESSION": "a stream closes its session at once",
    "RECORD_BOUNDARY": "no stream sends it",
    "FRAGMENTS": "the emulator's tables are not fragmented",
    "LOCK_HOLDERS": "nobody locks a table for so long",
    "PARTITION_SERIALS": "no stream sends it",
}
TABLE = "informix.orders"
# of the captured tables, whose names a statement is made of
_OF_A_TABLE = re.compile(r'"?informix"?\."?(lines|heaps|pulse|notes)\b')
_MANY = re.compile(r"(?<=IN )\(\?(, \?)+\)")


@pytest.fixture(scope="module")
def drivers() -> Drivers:
    return build_drivers()


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The texts that reach the emulator, whatever transport they come by."""
    seen: set[str] = set()
    session, lo_read = Connection.session, Connection.lo_read

    def noting_read(self: Connection, descriptor: int, max_bytes: int, check: CheckStatement) -> bytes:
        seen.add(statements.LO_READ)  # on the wire it is a message of its own
        return lo_read(self, descriptor, max_bytes, check)

    monkeypatch.setattr(Connection, "session", lambda self: _Noted(session(self), seen))
    monkeypatch.setattr(Connection, "lo_read", noting_read)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # the doctor looks at it
    return seen


class _Noted:
    """A session whose statements are taken down."""

    def __init__(self, inner: SqlSession, seen: set[str]) -> None:
        self._inner = inner
        self._seen = seen

    def prepare(self, text: str) -> Prepared:
        self._seen.add(" ".join(text.split()))
        return self._inner.prepare(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def a_life_of_a_stream(server: EmulatedServer, listening: ListeningServer) -> None:
    """Do what a user may do: look, begin, deliver, resume, get names wrong, release."""
    assert run(listening, "doctor", f"--table={TABLE}").exit_code == 0
    assert run(listening, "doctor", "--table=informix.ord*").exit_code == 1  # it matches one only
    with reader(listening.port) as made:
        end = anchor_of(made)
        assert run_plain("status", *server_options(listening)).exit_code == 0
        assert run_plain("status", *server_options(listening), "--row-logging").exit_code == 0
        assert run(listening, "size", f"--table={TABLE}", "--seconds=1").exit_code == 0
        _, end = drained(made, end, insert(server, 1, 2))
    with reader(listening.port, startingPosition="earliest") as made:
        drained(made, anchor_of(made), insert(server, 3))
    assert run(listening, "acquire", TABLE).exit_code == 0
    assert "informix.orders" in refusal(run(listening, "tail", "--table=orders"), 2)
    nowhere = run_plain("tail", *server_options(listening), "--database=shops", f"--table={TABLE}")
    assert "stores" in refusal(nowhere)
    released = run(listening, "release", TABLE, "--no-checkpoint", "--yes")
    assert released.exit_code == 0, released.output


def a_life_with_snapshots(
    server: EmulatedServer, listening: ListeningServer, folder: Path, received: set[str]
) -> None:
    """Read a table by its key and one that has none; a marker of ours, and a table of the user's."""
    writer = InProcessConnection(server, LOGIN, DATABASE)
    for table in ("lines (id INTEGER PRIMARY KEY)", "heaps (id INTEGER)", "pulse (n INTEGER)"):
        writer.rows(f"CREATE TABLE informix.{table}")
    for table in ("lines", "heaps", "pulse"):
        load_rows(server, f"{DATABASE}:informix.{table}", [{"id": n, "n": n} for n in range(3)])
    snapshot = {
        "table": "informix.lines,informix.heaps",
        "initialSnapshot": "all",
        "snapshotWithoutKey": "lock",
        "snapshotChunkRows": "2",
        "heartbeatTable": "informix.pulse",
    }
    with reader(listening.port, **snapshot, spoolPath=str(folder / "spool")) as made:
        rows, _ = until_snapshots_are_done(made, anchor_of(made))
        # the thread that has read lets the writers go on; a reader that ends before leaves it out
        wait_until(lambda: statements.COMMIT_WORK in received)
    assert len(rows) == 6


def a_life_with_values(server: EmulatedServer, listening: ListeningServer, folder: Path) -> None:
    """Read a TEXT by its row's key, the second time while its transaction still holds its locks."""
    writer = InProcessConnection(server, LOGIN, DATABASE)
    writer.rows("CREATE TABLE informix.notes (id INTEGER PRIMARY KEY, page TEXT, picture BLOB)")
    keep_rows(server)

    def put(number: int) -> int:
        tx = server.begin()
        picture = server.sbspace.create(b"picture")
        tx.insert(f"{DATABASE}:informix.notes", {"id": number, "page": "text", "picture": picture})
        return tx.commit()

    own = {"table": "informix.notes", "simpleLobs": "reselect", "lobs": "content"}
    with reader(listening.port, **own, spoolPath=str(folder / "values")) as made:
        rows, end = drained(made, anchor_of(made), put(1))
        server.late_release.hold()
        place = put(2)
        released = threading.Timer(1, server.late_release.let_go)
        released.start()
        more, _ = drained(made, end, place)
        released.join()
    found = [(row["page"]["content"], row["picture"]["content"]) for row in rows + more]
    assert found == [("text", b"picture")] * 2


@pytest.mark.slow
def test_a_server_receives_what_is_listed_and_all_of_it(received: set[str], tmp_path: Path) -> None:
    with listening_stores() as (server, listening):
        a_life_of_a_stream(server, listening)
        written_beside = {*received}
        a_life_with_snapshots(server, listening, tmp_path, received)
        a_life_with_values(server, listening, tmp_path)
    made_of_names = {text for text in received if _OF_A_TABLE.search(text)}
    ours = {text for text in made_of_names - written_beside if not text.startswith("CREATE")}
    beginnings = tuple(beginning for beginning, _, _ in OF_A_TABLE)
    assert {text for text in ours if not text.startswith(beginnings)} == set()
    unused = [each for each in beginnings if not any(text.startswith(each) for text in ours)]
    assert unused == []
    listed = {text: name for name, text in texts().items()}
    others = {_MANY.sub("(?)", text) for text in received - made_of_names}
    assert others - listed.keys() == set()
    assert {listed[text] for text in listed.keys() - others} == NOT_SENT_HERE.keys()


def test_over_odbc_a_server_receives_nothing_else(received: set[str], drivers: Drivers) -> None:
    with listening_stores() as (server, listening):
        over_odbc = {"transport": "odbc", "driver": str(drivers.narrow)}
        with reader(listening.port, **over_odbc) as made:
            drained(made, anchor_of(made), insert(server, 1, 2))
    assert texts()["LO_READ"] in received
    assert received - set(texts().values()) == set()


PAGE = ROOT / "docs" / "dba.md"
REFERENCE = ROOT / "docs" / "statements.md"
NAMED = re.compile(r"`(login|SQ_\w+)`")


@pytest.mark.slow
@pytest.mark.only_in_all
def test_without_a_driver_a_server_receives_the_messages_that_are_listed(tmp_path: Path) -> None:
    lines: list[str] = []
    trace = WireTrace(lines.append, lambda: datetime.now(UTC))
    with listening_stores() as (server, listening), trace_wire(trace):
        server.prompts = (Prompt(PromptStyle.HIDDEN, "Password: "),)
        a_life_of_a_stream(server, listening)
        a_life_with_values(server, listening, tmp_path)
    sent = {line.split()[3] for line in lines if line.split()[2] == ">"}
    paragraph = REFERENCE.read_text().partition("With `transport=sqli` there is no driver")[2]
    assert set(NAMED.findall(paragraph.partition("<!--")[0])) == sent


def test_every_fifteen_seconds_a_server_is_asked_what_the_page_says(received: set[str]) -> None:
    assert INTERVAL_SECONDS == 15
    with listening_stores() as (_, listening):
        options = SourceOptions.parse(source_options(listening.port))
        tables = look_up_tables(options)
        with open_catalog(options.connection) as catalog:
            received.clear()
            log_facts(catalog, tables, now=0.0)
    asked = {name for name, text in texts().items() if text in received}
    assert asked == {name for name, when in WHEN.items() if "every 15 s" in when}
    assert len(asked - {"PARTITION_FLAGS"}) == 6
    assert "every 15 s: six queries, and one for up to a hundred tables, or their" in PAGE.read_text()


def test_one_stream_is_two_connections_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are closed again: the one of the start, and that of `load()`."""
    here: set[int] = set()
    begin, end = Connection.__init__, Connection.close

    def begun(self: Connection, *arguments: Any) -> None:
        begin(self, *arguments)
        here.add(id(self))

    def ended(self: Connection) -> None:
        here.discard(id(self))
        end(self)

    monkeypatch.setattr(Connection, "__init__", begun)
    monkeypatch.setattr(Connection, "close", ended)
    with listening_stores() as (server, listening), reader(listening.port) as made:
        drained(made, anchor_of(made), insert(server, 1))
        wait_until(lambda: figure(made, "headroomBytes") is not None)  # the log is watched
        wait_until(lambda: len(here) == 2, complaint=lambda: f"{len(here)} connections are open")
    assert "One stream is **two connections**" in PAGE.read_text()


def test_a_statement_that_is_not_listed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "ANOTHER", "SELECT 1 FROM x", raising=False)
    with pytest.raises(ValueError, match="ANOTHER"):
        texts()
