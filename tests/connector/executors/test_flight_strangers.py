"""Whoever reaches the Flight server's port and is not of the query is turned away unheard."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from pyarrow import flight

from checkpoints.spool.spools import fill, open_spool
from connector.executors.crowded_server import SOFT_LIMIT
from informix_capture_client.errors import AccessRefused
from informix_capture_client.shapes import change_count
from informix_cdc.executors import flight_client
from informix_cdc.executors.certificates import certificates_of_a_query
from informix_cdc.executors.flight_client import fetched_range
from informix_cdc.executors.flight_protocol import FlightAddress, location_of
from informix_checkpoints.spool import Spool

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[2]
TICKET_BYTES = 300 << 20
MOST_GROWTH_BYTES = 64 << 20
OWN_AUTHORITY, OF_ANOTHER_QUERY = certificates_of_a_query()

CROWDED = "connector.executors.crowded_server"

Running = tuple["subprocess.Popen[bytes]", FlightAddress]


@pytest.fixture(scope="module")
def spool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spool]:
    made = open_spool(tmp_path_factory.mktemp("served") / "spool")
    fill(made)
    yield made
    made.close()


def started(module: str, *given: object) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-m", module, *map(str, given)]
    known = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(known)}
    pipe = subprocess.PIPE
    return subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)


@pytest.fixture(scope="module")
def running(spool: Spool) -> Iterator[Running]:
    """A server in a process of its own, and what its executors know."""
    with started("connector.executors.served_folder", spool.folder) as server:
        assert server.stdout is not None
        yield server, pickle.load(server.stdout)
        _, told = server.communicate()
    assert told == b"", "gRPC tells of every stranger on the driver's standard error"


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
            "cert_chain": OWN_AUTHORITY.certificate,
            "private_key": OWN_AUTHORITY.key,
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
    server, address = running
    before = peak_bytes(server.pid)
    options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer nothing")], timeout=30)
    with pytest.raises(flight.FlightUnavailableError):
        stranger(address, kind).do_get(flight.Ticket(bytes(TICKET_BYTES)), options)
    assert peak_bytes(server.pid) - before < MOST_GROWTH_BYTES


def test_executors_of_the_query_are_served_all_the_same(running: Running, spool: Spool) -> None:
    _, address = running
    for wanted in spool.between((100, 0), (140, 0)):
        arrived = list(fetched_range(address, wanted))
        assert sum(map(change_count, arrived)) == wanted.end - wanted.first


@pytest.mark.fault(
    fault="strangers hold more connections to the Flight port than the soft limit of open files",
    outcome="rows are written and served all the same: the query's process has raised the limit",
)
def test_idle_strangers_do_not_use_up_the_files_of_the_query(tmp_path: Path) -> None:
    """They have no certificate, say nothing, and would hold every descriptor that there is."""
    count = 2 * SOFT_LIMIT
    with contextlib.ExitStack() as strangers, started(CROWDED, tmp_path / "spool", count) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        for _ in range(count):
            strangers.enter_context(socket.create_connection(("127.0.0.1", port)))
        told, trouble = server.communicate(b"\n")
    assert (told, server.returncode) == (b"served\n", 0), trouble.decode()


def test_an_executor_tells_nothing_to_a_server_of_another_query(running: Running, spool: Spool) -> None:
    _, address = running
    other = replace(address, credentials=OF_ANOTHER_QUERY)
    [wanted, *_] = spool.between((100, 0), (140, 0))
    with pytest.raises(AccessRefused, match="belongs to another query"):
        fetched_range(other, wanted)


def test_a_query_has_an_authority_of_its_own_and_its_executors_cannot_pose_as_the_server() -> None:
    server, executors = certificates_of_a_query()
    assert server.authority == executors.authority != OF_ANOTHER_QUERY.authority
    usages = [
        x509.load_pem_x509_certificate(shown.certificate)
        .extensions.get_extension_for_class(x509.ExtendedKeyUsage)
        .value
        for shown in (server, executors)
    ]
    assert [usage.dotted_string for found in usages for usage in found] == [
        "1.3.6.1.5.5.7.3.1",  # server
        "1.3.6.1.5.5.7.3.2",  # client
    ]


def test_neither_certificates_nor_keys_are_shown() -> None:
    _, executors = certificates_of_a_query()
    address = FlightAddress("127.0.0.1", 1, "t0ken", executors)
    assert repr(executors) == "Credentials()"
    assert "BEGIN" not in repr(address) + str(address)
    assert "t0ken" not in repr(address) + str(address)
