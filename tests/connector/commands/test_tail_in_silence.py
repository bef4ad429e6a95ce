"""`informix-cdc tail` ends with a sentence when reads bring nothing, and it says what to send us."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from connector.commands.commands import refusal, run
from connector.commands.conftest import connection_arguments, start
from harness.runs.patience import patiently, wait_until
from harness.servers.fault_proxy import Fault, FaultProxy
from harness.servers.stores import ORDERS, PASSWORD, listening_stores
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_cdc.options import PASSWORD_VARIABLE
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = pytest.mark.slow

SILENT_SECONDS = 0.5


@pytest.fixture(autouse=True)
def interrupts_kept() -> Iterator[None]:
    """Tail leaves SIGINT ignored, since it is at its end then."""
    kept = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, kept)


@pytest.fixture
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("informix_cdc.server.connections._SILENT_SECONDS", SILENT_SECONDS)
    monkeypatch.setattr("informix_cdc.server.connections._SILENT_TIMEOUTS", 0)


def no_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the transport wait as long as the server does, as a driver that ignores its timeout."""
    transports = {"sqli": lambda settings, _seconds: SqliTransport(settings, None)}
    monkeypatch.setattr("informix_cdc.server.connections._TRANSPORTS", transports)


def once_it_captures(server: EmulatedServer, fault: Callable[[], object]) -> None:
    """Let something happen as soon as a session is active."""

    def run_fault() -> None:
        wait_until(lambda: any(session.is_active for session in server.sessions().values()))
        fault()

    threading.Thread(target=run_fault, daemon=True).start()


def ended(listening: ListeningServer) -> str:
    return refusal(run(listening, "tail", "--table=informix.orders"))


def test_reads_without_bytes_are_told_and_a_recording_is_asked_for(
    in_a_hurry: None,
) -> None:
    with listening_stores() as (server, listening):
        once_it_captures(server, lambda: server.answer_empty(None, 1 << 62))
        line = ended(listening)
    assert "Error: IFXCDC-0001: ifx_lo_read returned " in line
    assert "but without any bytes" in line
    assert "Run informix-cdc record and send us the file." in line
    assert "does not return" not in line


@pytest.mark.parametrize("times_out", [True, False], ids=["the driver gives up", "the driver waits on"])
def test_a_read_that_does_not_return_is_told_apart(
    times_out: bool, in_a_hurry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not times_out:
        no_timeout(monkeypatch)
    with listening_stores() as (server, listening):
        server.make_log_unreadable(reads_return=False)
        line = ended(listening)
    assert "IFXCDC-0001: A read does not return: " in line
    assert "run informix-cdc record and send us the file." in line
    assert "no bytes" not in line


def test_silence_at_the_transport_is_told(in_a_hurry: None) -> None:
    with listening_stores() as (server, listening), FaultProxy(listening.port) as proxy:
        once_it_captures(server, lambda: proxy.disturb(Fault(freeze_after=0)))
        line = ended(proxy)  # type: ignore[arg-type]
    assert "IFXCDC-0001: A read does not return: " in line


@pytest.mark.only_in_all
def test_a_server_with_nothing_to_say_is_followed_on(in_a_hurry: None) -> None:
    """TIMEOUT records are contact enough."""
    with listening_stores() as (server, listening):
        once_it_captures(server, lambda: (time.sleep(4 * SILENT_SECONDS), listening.stop()))
        line = ended(listening)
    assert "A read does not return" not in line
    assert "broke" in line


@pytest.mark.only_in_all
def test_ctrl_c_ends_it_while_a_read_does_not_return() -> None:
    with listening_stores() as (server, listening), FaultProxy(listening.port) as proxy:
        server.set_full_row_logging(ORDERS, on=True)
        process = start(
            "tail",
            *connection_arguments(proxy),
            "--table=informix.orders",
            environment={PASSWORD_VARIABLE: PASSWORD},
        )  # type: ignore[arg-type]
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Following")
            proxy.disturb(Fault(freeze_after=0))
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=patiently(20))
        finally:
            process.kill()
    assert process.returncode == 0
    assert errors.startswith("0 rows of 0 transactions")
