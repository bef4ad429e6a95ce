"""RENAME TABLE: what the catalogue, other tables and captures see of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.captures import capturing, fill, names
from emulator.conftest import ORDERS, make_server
from emulator.raw_client import RawClient, Refused
from informix_emulator.sql import keep_rows

Connect = Callable[..., RawClient]
RENAMED = "stores:informix.bookings"
NO_TABLE = -83705
RENAME = "RENAME TABLE orders TO bookings"


def test_a_renamed_table_is_the_same_table(connect: Connect) -> None:
    client = connect(make_server())
    for text in (
        "CREATE TABLE t (id integer PRIMARY KEY)",
        "CREATE TABLE child (c integer REFERENCES t (id) CONSTRAINT fk)",
        "CREATE VIEW s AS SELECT id FROM t",
        "INSERT INTO t VALUES (1)",
    ):
        client.rows(text)
    query = "SELECT tabid, partnum FROM systables WHERE tabname = '{}'"
    before = client.rows(query.format("t"))
    client.rows("RENAME TABLE informix.t TO u")
    assert client.rows(query.format("u")) == before
    assert client.rows(query.format("t")) == []
    assert client.rows("SELECT * FROM u") == [("1",)]
    with pytest.raises(Refused, match="-206"):
        client.rows("SELECT * FROM t")
    with pytest.raises(Refused, match="-691"):
        client.rows("INSERT INTO child VALUES (2)")
    client.rows("INSERT INTO child VALUES (1)")
    with pytest.raises(Refused, match="-692"):
        client.rows("DELETE FROM u")
    for text in ("BEGIN WORK", "RENAME TABLE u TO v", "INSERT INTO v VALUES (2)", "ROLLBACK WORK"):
        client.rows(text)
    assert client.rows("SELECT * FROM u") == [("1",)]
    client.rows("CREATE TABLE v (n integer)")
    for text, number in {
        "RENAME TABLE u TO v": -310,
        "RENAME TABLE nothing TO w": -206,
        "RENAME TABLE s TO w": -201,
        "RENAME TABLE u TO informix.w": -201,
        "RENAME TABLE stores:u TO w": -201,
    }.items():
        with pytest.raises(Refused, match=str(number)):
            client.rows(text)


def test_a_table_that_others_use_is_not_renamed(connect: Connect) -> None:
    server = make_server()
    client, other = connect(server), connect(server)
    client.rows("CREATE TABLE t (id integer)")
    other.rows("BEGIN WORK")
    other.rows("INSERT INTO t VALUES (1)")
    with pytest.raises(Refused, match="-242"):
        client.rows("RENAME TABLE t TO u")
    other.rows("ROLLBACK WORK")


def test_with_full_row_logging_it_is_refused(connect: Connect) -> None:
    client = connect(make_server())
    with pytest.raises(Refused, match="-19816"):
        client.rows(RENAME)


def test_a_capture_goes_on_and_a_new_one_finds_the_new_name_alone(connect: Connect) -> None:
    """Full row logging came off by force, the table was renamed, and it went on again."""
    server = make_server()
    keep_rows(server)
    session = capturing(connect, server)
    start = server.position()
    fill(server, 1)
    server.set_full_row_logging(ORDERS, False)
    connect(server).rows(RENAME)
    server.set_full_row_logging(RENAMED, True)
    with server.transaction() as tx:
        tx.insert(RENAMED, {"id": 2, "name": "x", "qty": None})
    rows = [name for name in names(session.until_timeout()) if name not in ("BEGINTX", "COMMTX")]
    assert rows == ["TABSCHEMA", "INSERT", "INSERT", "TIMEOUT"]  # nothing tells of the rename
    tables = "SELECT tablename FROM syscdcv1:syscdctabs"
    assert connect(server).rows(tables) == [("bookings",)]
    again = connect(server)
    again.open()
    opened = again.call("cdc_startcapture", *(again.session, 0, ORDERS, "id,name,qty", 7))
    assert opened == NO_TABLE
    again.capture(RENAMED, "id,name,qty")
    again.activate(start)
    rows = [name for name in names(again.until_timeout()) if name not in ("BEGINTX", "COMMTX")]
    assert rows == ["TABSCHEMA", "INSERT", "INSERT", "TIMEOUT"]  # those from before it too
