"""Records are encoded once for all sessions that capture the same; each session gets its own bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.conftest import ORDERS
from emulator.raw_client import RawClient, Record
from informix_emulator import EmulatedServer

Connect = Callable[..., RawClient]
START = 1 << 32
OTHERS = "stores:informix.others"


@pytest.fixture
def full(server: EmulatedServer) -> EmulatedServer:
    server.create_table(OTHERS, "n integer", full_row_logging=True)
    for number in range(1, 40):
        with server.transaction() as transaction:
            transaction.insert(ORDERS, {"id": number, "name": "n" * (number % 9), "qty": -number})
            transaction.insert(OTHERS, {"n": number})
    return server


def read(
    connect: Connect,
    server: EmulatedServer,
    columns: str | None,
    user_data: int = 0,
    *,
    room: int = 1 << 16,
    max_recs: int = 256,
) -> list[Record]:
    client = connect(server)
    client.open(max_recs=max_recs)
    if columns:
        client.capture(ORDERS, columns, user_data)
    client.activate(START)
    return client.until_timeout(room)


def rows(records: list[Record]) -> list[tuple[int, bytes]]:
    return [(record.user_data, record.payload) for record in records if record.name == "INSERT"]


def test_sessions_with_other_columns_and_numbers_get_their_own_rows(
    full: EmulatedServer, connect: Connect
) -> None:
    wanted = [("id,name,qty", 0), ("id,name,qty", 5), ("qty", 0), ("name", 0), ("id,name,qty", 0)]
    got = [rows(read(connect, full, *one)) for one in wanted]
    assert all(len(found) == 39 for found in got)
    assert [{user_data for user_data, _ in found} for found in got] == [{0}, {5}, {0}, {0}, {0}]
    assert [payload for _, payload in got[2]] == [(-n).to_bytes(4, signed=True) for n in range(1, 40)]
    names = ["n" * (number % 9) for number in range(1, 40)]
    assert [payload for _, payload in got[3]] == [bytes((len(n),)) + n.encode() for n in names]
    assert [payload for _, payload in got[0]] == [payload for _, payload in got[1]]
    assert got[0] == got[4]


def test_a_session_without_tables_sees_no_rows_of_the_others(
    full: EmulatedServer, connect: Connect
) -> None:
    assert rows(read(connect, full, "id"))
    records = read(connect, full, None)
    assert {record.name for record in records} == {"BEGINTX", "COMMTX", "TIMEOUT"}
    assert records[-1].sequence == records[-2].sequence


@pytest.mark.parametrize("max_recs", [1, 2, 7, 256])
@pytest.mark.parametrize("room", [128, 129, 500, 1 << 16])
def test_the_bytes_are_the_same_however_they_are_read(
    full: EmulatedServer, connect: Connect, room: int, max_recs: int
) -> None:
    records = read(connect, full, "id,name", room=room, max_recs=max_recs)
    assert records == read(connect, full, "id,name")


def test_a_session_that_ends_a_capture_sees_no_more_of_the_table(
    full: EmulatedServer, connect: Connect
) -> None:
    client = connect(full)
    client.open(max_recs=10)
    client.capture(ORDERS, "id")
    client.activate(START)
    assert rows(client.records())
    assert client.call("cdc_endcapture", client.session, 0, ORDERS) == 0
    assert rows(client.until_timeout()) == []
    client.capture(ORDERS, "qty")
    with full.transaction() as transaction:
        transaction.insert(ORDERS, {"id": 99, "qty": 7})
    assert rows(client.until_timeout()) == [(7, (7).to_bytes(4))]
