"""What another client writes is what is captured, and what it reads is what the changes add up to.

Rule: on a live server `ibm_db`, `pyodbc` and `informix-driver` write and read, which share no code with
the product. On the emulator, which takes the SQL of the first two not, `informix-driver` does too where
it is installed, and the suite's own writer: a rehearsal of the test.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from harness.servers.capture_server import CaptureServer
from harness.servers.emulated import emulated_world
from informix_capture_client.records.records import RecordKind
from informix_cdc.proving.reading import Reader
from informix_cdc.proving.sql_text import ContractTable
from lab.live import servers
from lab.live.independent import (
    CLIENTS,
    IndependentClient,
    NoClient,
    Place,
    drda_string,
    independent_client,
    odbc_string,
    place_of,
)
from odbc_driver.build import Drivers, build_drivers

LIVE = [pytest.param(kind, marks=pytest.mark.informix) for kind in CLIENTS]
COLUMNS = {"id": "integer", "b": "varchar(20,0)", "n": "bigint"}
PLACE = Place("db1", 9088, "ol_one", "stores", "joe", "s3cret", "/opt/libthcli.so")


@dataclass(frozen=True)
class SuiteClient:
    """The suite's own writer in the place of another client."""

    server: CaptureServer

    def run(self, statement: str, *values: int | str) -> None:
        """Run one statement that returns nothing."""
        with closing(self.server.connect(self.server.database)) as transport:
            transport.rows(statement, *values)

    def rows(self, statement: str) -> list[tuple[str | None, ...]]:
        """Return what a query finds."""
        with closing(self.server.connect(self.server.database)) as transport:
            return [tuple(row) for row in transport.rows(statement)]


@pytest.fixture(params=["rehearsal", "rehearsal with informix_driver", *LIVE])
def placed(
    request: pytest.FixtureRequest,
) -> Iterator[tuple[CaptureServer, IndependentClient | SuiteClient]]:
    """A server, and a client of it that is not the product."""
    if request.param.startswith("rehearsal"):
        with emulated_world(str(build_drivers().narrow)) as world:
            server = world.capture_server("stores", "en_US.utf8")
            kind = request.param.removeprefix("rehearsal").removeprefix(" with ")
            place = place_of(world.settings("stores", "en_US.utf8"), {})
            with _client(kind, place) if kind else nullcontext(SuiteClient(server)) as client:
                yield server, client
            server.drop_tables()
        return
    server = request.getfixturevalue("clean_live_informix")
    with _client(request.param, server.place) as client:
        yield server, client


@contextmanager
def _client(kind: str, place: Place) -> Iterator[IndependentClient]:
    try:
        with independent_client(kind, place) as client:
            yield client
    except NoClient as reason:
        pytest.skip(str(reason))


def replayed(reader: Reader, table: ContractTable) -> list[tuple[str, ...]]:
    """Return the rows that the captured changes leave, by their key."""
    rows: dict[object, tuple[str, ...]] = {}
    for record, row in reader.decoded_records(table):
        if record.kind in (RecordKind.INSERT, RecordKind.UPDAFT):
            rows[row[0]] = tuple(map(str, row))
        else:
            rows.pop(row[0])
    return sorted(rows.values())


@pytest.mark.assumption(53)
def test_what_another_client_writes_is_captured_as_it_reads_it(
    placed: tuple[CaptureServer, IndependentClient | SuiteClient],
) -> None:
    server, client = placed
    table = server.create_table(COLUMNS)
    with server.session(table) as session:
        for key, text in enumerate(("one", "zwölf", "三"), 1):
            client.run(f"INSERT INTO {table.name} (id, b, n) VALUES (?, ?, ?)", key, text, 10**15 + key)
        client.run(f"UPDATE {table.name} SET b = 'two' WHERE id = 2")
        client.run(f"DELETE FROM {table.name} WHERE id = 1")
        reader = Reader(session)
        reader.until_ended(5)
    read = client.rows(f"SELECT id, b, n FROM {table.name} ORDER BY id")
    assert (
        replayed(reader, table) == read == [("2", "two", str(10**15 + 2)), ("3", "三", str(10**15 + 3))]
    )


@pytest.mark.assumption(56)
def test_another_client_calls_a_procedure_that_commits_by_itself(
    placed: tuple[CaptureServer, IndependentClient | SuiteClient],
) -> None:
    """As the workload of docker/client does."""
    server, client = placed
    server.needs("procedures")
    table = server.create_table(COLUMNS)
    procedure = f"p_{table.name}"
    client.run(
        f"CREATE PROCEDURE {procedure}() BEGIN WORK;"
        f" INSERT INTO {table.name} (id, b, n) VALUES (1, 'one', 1); COMMIT WORK; END PROCEDURE"
    )
    try:
        with server.session(table) as session:
            client.run(f"EXECUTE PROCEDURE {procedure}()")
            reader = Reader(session)
            reader.until_ended()
    finally:
        client.run(f"DROP PROCEDURE {procedure}")
    assert replayed(reader, table) == [("1", "one", "1")]


# ---- as far as it can be tried without a live server ----


@pytest.fixture(scope="module")
def drivers() -> Drivers:
    return build_drivers()


def test_pyodbc_reads_through_a_driver_manager_what_the_server_has(drivers: Drivers) -> None:
    with emulated_world(str(drivers.narrow)) as world:
        world.capture_server("stores", "en_US.utf8")
        place = place_of(world.settings("stores", "en_US.utf8"), {})
        try:
            with independent_client("pyodbc", place) as client:
                found = client.rows("SELECT name, is_logging FROM sysmaster:informix.sysdatabases")
                with pytest.raises(Exception, match="syntax error"):
                    client.run("SELEKT 1")
        except NoClient as reason:
            pytest.skip(str(reason))
    assert ("stores", "1") in found


def test_a_driver_of_four_byte_characters_is_a_reason_to_skip(drivers: Drivers) -> None:
    with emulated_world(str(drivers.wide)) as world:
        world.capture_server("stores", "en_US.utf8")
        place = place_of(world.settings("stores", "en_US.utf8"), {})
        with (
            pytest.raises(NoClient, match=r"pyodbc"),
            independent_client("pyodbc", place),
        ):
            pass


def test_a_client_that_is_not_installed_is_a_reason_to_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ibm_db_dbi", None)
    with (
        pytest.raises(NoClient, match=r"pip install 'informix-cdc\[ibm-db\]'"),
        independent_client("ibm_db", PLACE),
    ):
        pass


def test_each_statement_of_ibm_db_is_committed_and_the_connection_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[object] = []

    def connect(*words: str) -> SimpleNamespace:
        calls.append(words)
        return SimpleNamespace(set_autocommit=calls.append, close=lambda: calls.append("closed"))

    monkeypatch.setitem(sys.modules, "ibm_db_dbi", SimpleNamespace(connect=connect))
    with independent_client("ibm_db", PLACE):
        pass
    assert calls == [(drda_string(PLACE), "", ""), True, "closed"]


def test_informix_driver_is_told_the_database_its_locale_and_to_commit_each_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[object] = []

    def connect(*place: object, **facts: object) -> SimpleNamespace:
        calls.append((place, facts))
        return SimpleNamespace(close=lambda: calls.append("closed"))

    monkeypatch.setitem(sys.modules, "informix_db", SimpleNamespace(connect=connect))
    with independent_client("informix_driver", PLACE):
        pass
    facts = {"user": "joe", "password": "s3cret", "database": "stores", "server": "ol_one"}
    locales = {"client_locale": "en_US.utf8", "env": {"DB_LOCALE": "en_US.utf8"}}
    assert calls == [(("db1", 9088), {**facts, **locales, "autocommit": True}), "closed"]


def test_each_client_is_told_its_own_port_and_the_same_database() -> None:
    assert drda_string(PLACE) == (
        "DATABASE=stores;HOSTNAME=db1;PORT=9089;PROTOCOL=TCPIP;UID=joe;PWD=s3cret;"
    )
    assert "HOST=db1;SERVICE=9088;SERVER=ol_one;PROTOCOL=onsoctcp;DATABASE=stores" in odbc_string(PLACE)
    assert "s3cret" not in repr(PLACE)


def test_a_password_that_a_string_cannot_hold_is_refused_and_not_repeated() -> None:
    place = Place("db1", 9088, "ol_one", "stores", "joe", "s3cret;HOSTNAME=evil")
    with pytest.raises(NoClient) as caught:
        drda_string(place)
    assert "s3cret" not in str(caught.value)
    assert "PWD={s3cret;HOSTNAME=evil}" in odbc_string(place)


def test_the_live_server_says_where_it_is_to_other_clients() -> None:
    place = place_of(servers._in_container("db1", 9088).settings, {"INFORMIX_CDC_TEST_DRDA_PORT": "7"})
    assert (place.host, place.port, place.drda_port, place.user) == ("db1", 9088, 7, "informix")
