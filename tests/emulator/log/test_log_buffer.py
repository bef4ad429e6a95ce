"""A log with a buffer: captures see a COMMIT when it has been flushed, its locks are gone before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.captures import names
from emulator.conftest import make_server
from emulator.raw_client import RawClient
from emulator.sql.asking import Asked
from informix_emulator import EmulatedServer
from informix_emulator.sql import open_session

Connect = Callable[..., RawClient]
QUICK = "quick:informix.t"


@pytest.fixture
def server() -> EmulatedServer:
    """A server with an unbuffered database, stores, and a buffered one, quick."""
    server = make_server()
    server.create_database("quick", buffered=True)
    server.create_table(QUICK, "id integer, v varchar(200)", full_row_logging=True)
    server.buffer_log()
    return server


@pytest.fixture
def client(server: EmulatedServer, connect: Connect) -> RawClient:
    client = connect(server, database="quick")
    client.open()
    client.capture(QUICK, "id,v")
    client.activate()
    client.until_timeout()
    return client


def write(server: EmulatedServer, number: int = 1, size: int = 1) -> None:
    with server.transaction() as tx:
        tx.insert(QUICK, {"id": number, "v": "x" * size})


def session(server: EmulatedServer, database: str) -> Asked:
    return Asked(open_session(server, "informix", database, False), server)


ALL = ["BEGINTX", "INSERT", "COMMTX"]


def test_a_buffered_commit_is_seen_by_select_before_it_is_in_the_stream(
    server: EmulatedServer, client: RawClient
) -> None:
    writer, reader = session(server, "quick"), session(server, "quick")
    writer.run("INSERT INTO t VALUES (1, 'x')")
    assert reader.rows("SELECT id FROM t") == [(1,)]
    assert reader.rows("SELECT tx_id FROM sysmaster:systrans") == []
    assert names(client.until_timeout()) == ["TIMEOUT"]
    server.flush_log()
    assert names(client.until_timeout()) == [*ALL, "TIMEOUT"]


def test_a_timeout_does_not_tell_of_what_is_in_the_buffer(
    server: EmulatedServer, client: RawClient
) -> None:
    before = client.until_timeout()[-1].sequence
    write(server)
    assert client.until_timeout()[-1].sequence == before
    server.flush_log()
    assert client.until_timeout()[-1].sequence > before


# what flushes the buffer
def _another_database(server: EmulatedServer) -> None:
    session(server, "stores").run("INSERT INTO orders VALUES (1, 'a', 1)")


def _no_rows_in_another(server: EmulatedServer) -> None:
    session(server, "stores").run("CREATE TEMP TABLE m (n integer) WITH NO LOG")


def _checkpoint(server: EmulatedServer) -> None:
    session(server, "stores").run("EXECUTE FUNCTION sysadmin:task('checkpoint')")


def _end_of_session(server: EmulatedServer) -> None:
    session(server, "quick").session.close()


def _new_log(server: EmulatedServer) -> None:
    session(server, "stores").run("EXECUTE FUNCTION sysadmin:task('onmode', 'l')")


@pytest.mark.parametrize(
    "flush", [_another_database, _no_rows_in_another, _checkpoint, _end_of_session, _new_log]
)
def test_what_brings_it_into_the_stream(
    server: EmulatedServer, client: RawClient, flush: Callable[[EmulatedServer], None]
) -> None:
    write(server)
    assert names(client.until_timeout()) == ["TIMEOUT"]
    flush(server)
    assert names(client.until_timeout())[:3] == ALL


def test_the_buffer_is_flushed_when_it_is_full(server: EmulatedServer, client: RawClient) -> None:
    server.buffer_log(2000)
    for number in range(1, 6):  # of 364 bytes in the log, and so five to a buffer
        write(server, number, 195)
    assert names(client.until_timeout()) == ["TIMEOUT"]
    write(server, 6, 195)
    assert names(client.until_timeout()) == [*ALL * 5, "BEGINTX", "TIMEOUT"]


def test_temp_tables_of_a_buffered_database_do_not_flush_it(
    server: EmulatedServer, client: RawClient
) -> None:
    marker = session(server, "quick")
    marker.all("CREATE TEMP TABLE m (n integer) WITH NO LOG", "DROP TABLE m")
    assert names(client.until_timeout()) == ["TIMEOUT"]
    server.flush_log()
    assert names(client.until_timeout()) == [*["BEGINTX", "COMMTX"] * 2, "TIMEOUT"]


def test_it_is_flushed_after_some_seconds(server: EmulatedServer, client: RawClient) -> None:
    server.buffer_log(seconds=0.0)
    write(server)
    assert names(client.until_timeout())[:3] == ALL


def test_without_a_buffer_everything_is_seen_at_once(server: EmulatedServer, client: RawClient) -> None:
    write(server)
    server.buffer_log(0)
    assert names(client.until_timeout())[:3] == ALL
    write(server)
    assert names(client.until_timeout())[:3] == ALL


def test_a_session_that_begins_at_the_end_begins_before_what_is_in_the_buffer(
    server: EmulatedServer, connect: Connect
) -> None:
    write(server)
    client = connect(server, database="quick")
    client.open()
    client.capture(QUICK, "id,v")
    client.activate(0)
    server.flush_log()
    assert [r.name for r in client.until_timeout() if r.name in ALL] == ALL


@pytest.mark.parametrize("used", ["flushed", "begun", "full"])
def test_used_pages_are_those_that_are_flushed(server: EmulatedServer, used: str) -> None:
    server.used_pages = used
    ask = session(server, "stores")
    query = "SELECT used FROM sysmaster:syslogs WHERE is_current = 1"
    before = ask.rows(query)
    for number in range(20):
        write(server, number, 195)
    assert ask.rows(query) == before
    server.flush_log()
    assert ask.rows(query) > before


def test_a_crash_may_lose_what_was_in_the_buffer(
    server: EmulatedServer, client: RawClient, connect: Connect
) -> None:
    write(server, 1)
    server.flush_log()
    write(server, 2)
    with server.log.changed:
        lost_from = server.log.flushed_end()
    server.recover(lost_from)
    fresh = connect(server, database="quick")
    fresh.open()
    fresh.capture(QUICK, "id,v")
    fresh.activate(server.oldest_log() << 32)
    assert names(fresh.until_timeout()).count("INSERT") == 1


def test_a_client_can_ask_for_a_checkpoint(
    server: EmulatedServer, client: RawClient, connect: Connect
) -> None:
    other = connect(server, database="quick")
    other.rows("INSERT INTO t VALUES (1, 'x')")
    assert names(client.until_timeout()) == ["TIMEOUT"]
    other.rows("EXECUTE FUNCTION sysadmin:task('checkpoint')")
    assert names(client.until_timeout())[:3] == ALL
