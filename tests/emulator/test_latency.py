"""A slow line between client and server; nothing is asserted of how fast an answer comes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from emulator.conftest import ORDERS, make_server
from emulator.raw_client import RawClient

LATENCY_SECONDS = 0.02


@pytest.fixture
def far_away(connect: Callable[..., RawClient]) -> RawClient:
    """A session on a server whose answers take their time."""
    server = make_server(latency_seconds=LATENCY_SECONDS)
    with server.transaction() as transaction:
        for number in range(1, 11):
            transaction.insert(ORDERS, {"id": number})
    client = connect(server)
    client.open(timeout=0, max_recs=1)
    client.capture(ORDERS, "id")
    client.activate(1 << 32)
    return client


def seconds(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def test_no_answer_comes_before_the_latency_has_passed(far_away: RawClient) -> None:
    for _ in range(5):
        assert seconds(far_away.read) >= LATENCY_SECONDS
    assert seconds(lambda: far_away.rows("SELECT owner FROM systables")) >= LATENCY_SECONDS


def test_the_session_says_the_same_as_one_nearby(far_away: RawClient) -> None:
    records = far_away.until_timeout()
    assert [record.name for record in records].count("INSERT") == 10


def test_what_is_done_for_the_answer_lies_inside_the_latency(
    monkeypatch: pytest.MonkeyPatch, far_away: RawClient
) -> None:
    from informix_emulator.sqli import serving

    slept: list[float] = []

    def sleep(duration: float) -> None:
        slept.append(duration)
        if duration:
            time.sleep(duration)

    clock = type("Clock", (), {"monotonic": staticmethod(time.monotonic), "sleep": staticmethod(sleep)})
    monkeypatch.setattr(serving, "time", clock)
    far_away.read()
    assert slept
    assert max(slept) < LATENCY_SECONDS
