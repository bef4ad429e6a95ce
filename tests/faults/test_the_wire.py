"""The wire itself at fault, by both ways to it: cut at every byte, lengths that lie, a byte at a time.

Rule: a connection of its own for each fault, one server for all of them, no Spark. Whatever happens,
what comes back is whole and right, or one of our errors, and the server frees what the client held.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from harness.capture.followed import Stores, account, followed, stores_behind_proxy
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.fault_proxy import SOUND, Fault
from harness.servers.stores import DATABASE, ORDERS, PASSWORD, Workload
from informix_capture_client import statements
from informix_capture_client.errors import (
    AccessRefused,
    ConnectionLost,
    InformixCdcError,
    ProtocolViolation,
    ServerRefused,
)
from informix_capture_client.transport.base import ConnectionSettings, Row, Transport
from informix_capture_client.transport.odbc.transport import OdbcTransport
from informix_capture_client.transport.sqli.transport import SqliTransport
from odbc_driver.build import build_drivers

pytestmark = pytest.mark.slow

ROOM = 256
SILENCE_SECONDS = 1
# the answer to a read: 97, 0, how many bytes, how long the first chunk is, and the bytes
SIZE_PLACE, CHUNK_PLACE, DATA_PLACE = 4, 8, 10

Connect = Callable[..., Transport]


@pytest.fixture(scope="module")
def stores() -> Iterator[Stores]:
    with stores_behind_proxy() as stores:
        yield stores


@pytest.fixture(params=rest_in_all(["sqli", "odbc"]))
def way(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The options of a stream that choose the transport."""
    before = os.environ.pop("INFORMIXDIR", None)  # loading a driver sets it
    driver = {"driver": str(build_drivers().narrow)} if request.param == "odbc" else {}
    yield {"transport": request.param, **driver}
    os.environ.pop("INFORMIXDIR", None)
    if before is not None:
        os.environ["INFORMIXDIR"] = before


@pytest.fixture
def connect(stores: Stores, way: dict[str, str]) -> Iterator[Connect]:
    """Opens a transport that suffers from its first byte on; the server is left as it was."""
    factory = OdbcTransport if way["transport"] == "odbc" else SqliTransport
    settings = ConnectionSettings(
        host="127.0.0.1",
        port=stores.proxy.port,
        server="informix",
        database=DATABASE,
        user="informix",
        password=PASSWORD,
        driver=way.get("driver", ""),
        db_locale="en_US.utf8",
        connect_timeout_seconds=SILENCE_SECONDS,
    )

    def open_one(fault: Fault = SOUND) -> Transport:
        stores.proxy.plan = lambda _number, _capture: fault
        return factory(settings, SILENCE_SECONDS)

    yield open_one
    stores.proxy.plan = lambda _number, _capture: SOUND
    wait_until(lambda: not stores.server.sessions(), complaint=lambda: "a session stays")


def bytes_down(stores: Stores, work: Callable[[], object]) -> int:
    """Return how many bytes of the server's some work takes, which makes no connection."""
    before = stores.proxy.sent
    work()
    return stores.proxy.sent - before


def question(transport: Transport) -> list[Row]:
    """Ask what the answer is known of."""
    return transport.rows(statements.DATABASE_LOGGING, DATABASE)


def captured(transport: Transport, stores: Stores) -> int:
    """Let a session capture one row, which waits to be read; return the session's number."""
    session = transport.call(statements.OPEN_SESSION, "informix", 0, 1, 64, 1, 1)
    assert session > 0
    asked = (session, 0, ORDERS, "order_num, customer_num, note, amount", 1)
    transport.call(statements.SET_FULL_ROW_LOGGING, ORDERS, 1)
    assert transport.call(statements.START_CAPTURE, *asked) == 0
    assert transport.call(statements.ACTIVATE_SESSION, session, 0) == 0
    with stores.server.transaction() as transaction:
        transaction.insert(ORDERS, {"order_num": 1, "customer_num": 2, "note": "n", "amount": None})
    return session


# ---- cut at every byte ----


@pytest.mark.fault(
    fault="connection cut after every byte of a login, by both transports",
    outcome="IFXCDC-0001 or -0002 that may pass and names the address; the next connection is sound",
    seeds="every byte",
)
@pytest.mark.only_in_all
def test_a_login_that_is_cut_is_an_error_that_may_pass(connect: Connect, stores: Stores) -> None:
    connect().close()
    goodbye = 2
    for count in range(stores.proxy.sent - goodbye):
        with pytest.raises((ConnectionLost, AccessRefused)) as told:
            connect(Fault(cut_after=count))
        assert told.value.is_temporary, f"{count}: {told.value}"
        assert f"127.0.0.1:{stores.proxy.port}" in str(told.value)
    with closing(connect()) as transport:
        assert question(transport)


@pytest.mark.fault(
    fault="connection cut after every byte of the answers to a query, by both transports",
    outcome="IFXCDC-0001, or all rows, where they had come already",
    seeds="every byte",
)
def test_a_query_that_is_cut_gives_no_part_of_its_rows(connect: Connect, stores: Stores) -> None:
    with closing(connect()) as transport:
        whole = question(transport)
        total = bytes_down(stores, lambda: question(transport))
    lost = 0
    for count in range(total):
        with closing(connect()) as transport:
            stores.proxy.disturb(Fault(cut_after=count))
            try:
                assert question(transport) == whole
            except ConnectionLost:
                lost += 1
    assert lost > total / 2


@pytest.mark.fault(
    fault="connection cut after every byte of the answer to a read, by both transports",
    outcome="IFXCDC-0001 and no part of the bytes; the server frees the session",
    seeds="every byte",
)
@pytest.mark.only_in_all
def test_a_read_that_is_cut_gives_no_part_of_its_bytes(connect: Connect, stores: Stores) -> None:
    with closing(connect()) as transport:
        session = captured(transport, stores)
        total = bytes_down(stores, lambda: transport.lo_read(session, ROOM))
    assert total > DATA_PLACE
    for count in range(total):
        with closing(connect()) as transport:
            session = captured(transport, stores)
            stores.proxy.disturb(Fault(cut_after=count))
            with pytest.raises(ConnectionLost):
                transport.lo_read(session, ROOM)


@pytest.mark.fault(
    fault="connections cut within the answer to a read, one after another, by both transports",
    outcome="reconnects each time; rows as committed, once, in order",
)
@pytest.mark.only_in_all
def test_a_stream_whose_reads_are_cut_again_and_again_loses_nothing(way: dict[str, str]) -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port, **way) as stream:
        workload = Workload(stores.server, seed=60)
        for count in (0, 1, 3, 7, 9, 11, 60):
            stores.proxy.disturb(Fault(cut_after=count))
            workload.run(4)
            stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnects") >= 7


# ---- lengths that lie ----

LIES = {
    "more bytes than there are": (SIZE_PLACE, struct.pack(">I", ROOM - 1)),
    "fewer bytes than there are": (SIZE_PLACE, struct.pack(">I", 1)),
    "no bytes": (SIZE_PLACE, struct.pack(">I", 0)),
    "a negative number of bytes": (SIZE_PLACE, struct.pack(">i", -1)),
    "2 GB": (SIZE_PLACE, struct.pack(">i", 2**31 - 1)),
    "a chunk that is longer than all": (CHUNK_PLACE, b"\xff\xff"),
    "a chunk of nothing": (CHUNK_PLACE, b"\0\0"),
    "a chunk that is shorter than it is": (CHUNK_PLACE, b"\0\x08"),
}


@pytest.mark.fault(
    fault="the answer to a read lies about its length: too long, too short, negative; so does a chunk",
    outcome="IFXCDC-0007, -0005 or -0001, and no byte is handed on; the connection is over",
    seeds="8 lies",
)
@pytest.mark.parametrize("lie", LIES)
def test_a_read_that_lies_about_its_length_is_told(connect: Connect, stores: Stores, lie: str) -> None:
    with closing(connect()) as transport:
        session = captured(transport, stores)
        stores.proxy.disturb(Fault(lie=LIES[lie]))
        with pytest.raises((ProtocolViolation, ServerRefused, ConnectionLost)):
            transport.lo_read(session, ROOM)
        with pytest.raises(ConnectionLost):
            question(transport)


@pytest.mark.fault(
    fault="the answer to a login lies about its length: too long, too short, nothing",
    outcome="IFXCDC-0001, -0002 or -0007; no hang",
)
@pytest.mark.parametrize("size", [0, 5, 6, 40, 65_535])
def test_a_login_whose_answer_lies_about_its_length_is_told(connect: Connect, size: int) -> None:
    with pytest.raises(InformixCdcError) as told:
        connect(Fault(lie=(0, struct.pack(">H", size))))
    assert isinstance(told.value, (ProtocolViolation, AccessRefused, ConnectionLost))


# ---- a byte at a time ----


@pytest.mark.fault(
    fault="slow drip from the login on: one byte at a time, by both transports",
    outcome="everything comes whole: no reconnect; rows as committed, once, in order",
)
@pytest.mark.only_in_all
def test_a_stream_that_comes_byte_by_byte_is_whole(way: dict[str, str]) -> None:
    drip = Fault(drip=(1, 0.00001))
    plan = lambda _number, _capture: drip  # noqa: E731 - as short as its use
    with stores_behind_proxy(plan) as stores, followed(stores.proxy.port, **way) as stream:
        workload = Workload(stores.server, seed=61)
        workload.run(6)
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnects") == 0
