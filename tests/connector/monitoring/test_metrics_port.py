"""Whoever holds connections to the port of the figures open holds neither threads nor scrapes up."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Gauge

from harness.capture.scraping import scraped
from harness.runs.patience import patiently, wait_until
from informix_cdc.monitoring import metrics_port
from informix_cdc.monitoring.metrics_port import MOST_CONNECTIONS, open_port


@pytest.fixture
def port() -> Iterator[int]:
    registry = CollectorRegistry()
    Gauge("shown", "A figure.", registry=registry).set(7)
    server, thread = open_port("127.0.0.1", 0, registry)
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def stranger(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=patiently(10))


def threads() -> int:
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


def test_idle_strangers_take_few_threads_and_keep_no_scrape_out(port: int) -> None:
    with contextlib.ExitStack() as strangers:
        idle = [strangers.enter_context(stranger(port)) for _ in range(3 * MOST_CONNECTIONS)]
        for ended in idle[: 2 * MOST_CONNECTIONS]:
            assert ended.recv(1) == b""  # the oldest are closed, and their threads end
        wait_until(lambda: threads() <= MOST_CONNECTIONS)
        assert scraped(port)["shown"].samples[0].value == 7


def test_an_idle_connection_ends(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_port._Handler, "timeout", 0.05)
    with stranger(port) as idle:
        idle.sendall(b"GET /met")
        assert idle.recv(1) == b""


def test_nothing_is_printed_of_strangers(
    port: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metrics_port._Handler, "timeout", 0.05)
    with stranger(port) as idle:
        assert idle.recv(1) == b""
    assert scraped(port)
    assert capfd.readouterr() == ("", "")
