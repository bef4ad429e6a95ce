"""Whoever reaches the Flight server's port and is not of the query is turned away unheard."""

from __future__ import annotations

import contextlib
import re
import resource
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from pyarrow import flight

from checkpoints.spool.spools import fill, open_spool
from connector.executors.served_folder import credentials_of_another_query, published
from informix_capture_client.errors import AccessRefused
from informix_capture_client.shapes import change_count
from informix_cdc.executors import certificate_of_reader, certificate_of_server, flight_client
from informix_cdc.executors.flight_client import fetched_range
from informix_cdc.executors.flight_protocol import FlightAddress, location_of
from informix_checkpoints.spool import Spool

pytestmark = pytest.mark.slow

STRANGERS = 3000
TICKET_BYTES = 128 << 20
MOST_GROWTH_BYTES = 64 << 20
OF_ANOTHER_QUERY, OF_ITS_OWN_MAKING = credentials_of_another_query(), certificate_of_reader("executor")

Running = tuple[int, FlightAddress]  # the process of the server


@pytest.fixture(scope="module")
def spool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spool]:
    made = open_spool(tmp_path_factory.mktemp("served") / "spool")
    fill(made)
    yield made
    made.close()


@pytest.fixture(scope="module")
def running(spool: Spool) -> Iterator[Running]:
    """A server in a process of its own, and what its executors know."""
    with published(spool) as known:
        yield known


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_client, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(flight_client, "_UNREACHABLE_SECONDS", 0.5)


def peak_bytes(process: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def stranger(address: FlightAddress, kind: str) -> flight.FlightClient:
    """A client that has the address of a server and not its certificates."""
    location, other = location_of(address.host, address.port), OF_ANOTHER_QUERY
    unlimited = [("grpc.max_send_message_length", -1)]
    if kind == "without TLS":
        return flight.FlightClient(location.replace("+tls", ""), generic_options=unlimited)
    shown = {
        "without a certificate": {},
        "with that of another query": {"cert_chain": other.certificate, "private_key": other.key},
        "with one of its own making": {
            "cert_chain": OF_ITS_OWN_MAKING[0],
            "private_key": OF_ITS_OWN_MAKING[1],
        },
    }
    return flight.FlightClient(
        location, disable_server_verification=True, generic_options=unlimited, **shown[kind]
    )


KINDS = [
    "without TLS",
    "without a certificate",
    "with that of another query",
    "with one of its own making",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_strangers_request_of_any_size_takes_no_memory(kind: str, running: Running) -> None:
    process, address = running
    before = peak_bytes(process)
    options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer nothing")], timeout=30)
    with pytest.raises(flight.FlightUnavailableError):
        stranger(address, kind).do_get(flight.Ticket(bytes(TICKET_BYTES)), options)
    assert peak_bytes(process) - before < MOST_GROWTH_BYTES


def test_executors_of_the_query_are_served_all_the_same(running: Running, spool: Spool) -> None:
    _, address = running
    for wanted in spool.between((100, 0), (140, 0)):
        arrived = list(fetched_range(address, wanted))
        assert sum(map(change_count, arrived)) == wanted.end - wanted.first


def half_a_handshake() -> bytes:
    """Return the first message of a client, after which it says nothing more."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    sent = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
    return sent.read()


@pytest.mark.fault(
    fault="strangers hold more connections to the port for rows than it accepts, in the middle of a"
    " handshake or silent",
    outcome="an executor or reader that connects is served: the oldest of them give way. The memory of"
    " the server's process hardly grows, and that of the query or capture not at all",
)
@pytest.mark.parametrize("said", [half_a_handshake(), b""], ids=["in the handshake", "silent"])
def test_strangers_in_a_handshake_keep_nobody_out(said: bytes, running: Running, spool: Spool) -> None:
    process, address = running
    before, other = peak_bytes(process), replace(address, token=address.token + " ")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # theirs are in this process
    try:
        with contextlib.ExitStack() as strangers:
            for _ in range(STRANGERS):
                connection = socket.create_connection((address.host, address.port))
                strangers.enter_context(connection).sendall(said)
            with pytest.raises(AccessRefused, match="belongs to another query"):  # heard, and refused
                list(fetched_range(other, next(iter(spool.between((100, 0), (140, 0))))))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert peak_bytes(process) - before < MOST_GROWTH_BYTES


def test_an_executor_tells_nothing_to_a_server_of_another_query(running: Running, spool: Spool) -> None:
    _, address = running
    other = replace(address, credentials=OF_ANOTHER_QUERY)
    [wanted, *_] = spool.between((100, 0), (140, 0))
    with pytest.raises(AccessRefused, match="belongs to another query"):
        fetched_range(other, wanted)


def test_an_executor_cannot_pose_as_the_server() -> None:
    usages = [
        x509.load_pem_x509_certificate(made)
        .extensions.get_extension_for_class(x509.ExtendedKeyUsage)
        .value
        for made, _ in (certificate_of_server(), certificate_of_reader("executor"))
    ]
    assert [usage.dotted_string for found in usages for usage in found] == [
        "1.3.6.1.5.5.7.3.1",  # server
        "1.3.6.1.5.5.7.3.2",  # client
    ]


def test_neither_certificates_nor_keys_are_shown() -> None:
    executors = OF_ANOTHER_QUERY
    address = FlightAddress("127.0.0.1", 1, "t0ken", executors)
    assert repr(executors) == "Credentials()"
    assert "BEGIN" not in repr(address) + str(address)
    assert "t0ken" not in repr(address) + str(address)
