"""TLS that breaks off: in the handshake, in the middle of an answer, by a bit that is turned.

Rule: our own transport only: over ODBC the encryption is the driver's business. A connection of its own
for each fault, one server for all of them, and no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness.capture.followed import Stores, account, followed
from harness.servers.fault_proxy import SOUND, Fault, FaultProxy
from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND, Workload, stores_server
from harness.servers.tls import make_certificate, server_context
from informix_capture_client import statements
from informix_capture_client.errors import AccessRefused, ConnectionLost, ProtocolViolation
from informix_capture_client.transport.base import ConnectionSettings, Transport
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_emulator import ListeningServer

SILENCE_SECONDS = 1
STEP = 11  # bytes between two cuts

Connect = Callable[..., Transport]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def stores(certificate: tuple[Path, Path]) -> Iterator[Stores]:
    server = stores_server(timeout_seconds=SHORT_SECOND)
    with (
        ListeningServer(server, tls=server_context(*certificate)) as listening,
        FaultProxy(listening.port) as proxy,
    ):
        yield Stores(server, listening, proxy)


@pytest.fixture
def connect(stores: Stores, certificate: tuple[Path, Path]) -> Iterator[Connect]:
    """Opens a transport that suffers from its first byte on."""
    settings = ConnectionSettings(
        host="127.0.0.1",
        port=stores.proxy.port,
        server="informix",
        database=DATABASE,
        user="informix",
        password=PASSWORD,
        db_locale="en_US.utf8",
        encryption="tls",
        tls_ca_file=str(certificate[0]),
        connect_timeout_seconds=SILENCE_SECONDS,
    )

    def open_one(fault: Fault = SOUND) -> Transport:
        stores.proxy.plan = lambda _number, _capture: fault
        return SqliTransport(settings, SILENCE_SECONDS)

    yield open_one
    stores.proxy.plan = lambda _number, _capture: SOUND


def question(transport: Transport) -> object:
    return transport.rows(statements.DATABASE_LOGGING, DATABASE)


@pytest.mark.slow
@pytest.mark.fault(
    fault="TLS breaks off in the handshake or the login: closed, reset, or silent from then on",
    outcome="IFXCDC-0001 or -0002 that may pass and names the address; the next connection is sound",
    seeds="every 11th byte",
)
def test_a_handshake_that_breaks_off_may_pass(connect: Connect, stores: Stores) -> None:
    connect().close()
    total = stores.proxy.sent
    ends = [Fault(cut_after=count) for count in range(0, total - 100, STEP)]
    ends += [Fault(reset_after=count) for count in (0, 100, 700)]
    for fault in [*ends, Fault(freeze_after=100)]:
        with pytest.raises((ConnectionLost, AccessRefused)) as told:
            connect(fault)
        assert told.value.is_temporary, f"{fault}: {told.value}"
        assert f"127.0.0.1:{stores.proxy.port}" in str(told.value)
        assert PASSWORD not in str(told.value)
    with closing(connect()) as transport:
        assert question(transport)


@pytest.mark.slow
@pytest.mark.fault(
    fault="TLS breaks off in the middle of an answer",
    outcome="IFXCDC-0001, or all rows, where they had come already",
    seeds="every 11th byte",
)
@pytest.mark.only_in_all
def test_an_answer_that_breaks_off_gives_no_part_of_its_rows(connect: Connect, stores: Stores) -> None:
    with closing(connect()) as transport:
        whole, before = question(transport), stores.proxy.sent
        question(transport)
        total = stores.proxy.sent - before
    lost = 0
    for count in range(0, total, STEP):
        with closing(connect()) as transport:
            stores.proxy.disturb(Fault(cut_after=count))
            try:
                assert question(transport) == whole
            except ConnectionLost:
                lost += 1
    assert lost > total / STEP / 2


@pytest.mark.fault(
    fault="a bit is turned in what TLS encrypts",
    outcome="IFXCDC-0001 or -0007: no altered byte is ever handed on",
    seeds="every 11th byte of the first answer",
)
def test_a_bit_that_is_turned_is_seen(connect: Connect, stores: Stores) -> None:
    for place in range(5, 60, STEP):
        with closing(connect()) as transport:
            stores.proxy.disturb(Fault(flip=(place, 0x01)))
            with pytest.raises((ConnectionLost, ProtocolViolation)):
                question(transport)


@pytest.mark.slow
@pytest.mark.fault(
    fault="an encrypted stream's connection breaks off within its reads",
    outcome="reconnects; rows as committed, once, in order",
)
def test_an_encrypted_stream_that_breaks_off_loses_nothing(
    stores: Stores, certificate: tuple[Path, Path]
) -> None:
    secured = {"transport": "sqli", "encryption": "tls", "tlsCaFile": str(certificate[0])}
    with followed(stores.proxy.port, **secured) as stream:
        workload = Workload(stores.server, seed=62)
        for fault in (Fault(cut_after=3), Fault(reset_after=40), Fault(flip=(30, 0x80))):
            stores.proxy.disturb(fault)
            workload.run(4)
            stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnects") >= 3
