"""The log of the emulator: positions, switches, wrap, long transactions."""

from __future__ import annotations

import pytest

from emulator.captures import (
    Connect,
    capturing,
    fill,
    names,
)
from emulator.conftest import ORDERS, make_server
from informix_emulator import EmulatedServer, LongTransactionError


def test_a_position_is_where_reading_begins_itself_included(
    server: EmulatedServer, connect: Connect
) -> None:
    tx = server.begin()
    tx.insert(ORDERS, {"id": 1})
    here = tx.insert(ORDERS, {"id": 2})
    commit = tx.commit()
    found = capturing(connect, server, here).until_timeout()
    assert names(found) == ["TABSCHEMA", "INSERT", "COMMTX", "TIMEOUT"]
    assert found[1].sequence == here
    assert names(capturing(connect, server, commit + 1).until_timeout()) == ["TABSCHEMA", "TIMEOUT"]


def test_beyond_the_end_there_is_silence_for_good(server: EmulatedServer, connect: Connect) -> None:
    beyond = server.position() + 100
    client = capturing(connect, server, beyond)
    fill(server, 50)
    found = client.until_timeout()
    assert names(found) == ["TABSCHEMA", "TIMEOUT"]
    assert found[-1].sequence == beyond


def test_a_full_log_is_followed_by_the_next_and_the_oldest_is_overwritten(
    connect: Connect,
) -> None:
    server = make_server(log_pages=2, page_bytes=512, log_count=3, first_log=5)
    client = capturing(connect, server)
    seen = 0
    for _ in range(40):
        fill(server, 3)
        seen += names(client.until_timeout()).count("INSERT")
    assert seen == 120
    assert server.oldest_log() > 5
    late = connect(server)
    late.open()
    late.capture(ORDERS, "id")
    assert late.call("cdc_activatesess", late.session, (server.oldest_log() << 32) - 1) == -83713
    assert late.call("cdc_activatesess", late.session, server.oldest_log() << 32) == 0
    assert "INSERT" in names(late.until_timeout())


def test_a_session_whose_log_is_overwritten_is_told(connect: Connect) -> None:
    server = make_server(log_count=2)
    client = capturing(connect, server)
    fill(server)
    server.switch_log()
    server.switch_log()
    found = client.records()
    assert names(found) == ["TABSCHEMA", "ERROR"]
    assert found[1].header == b"\0\0\0\1" + (-83713).to_bytes(4, signed=True)


def test_a_log_with_the_begin_of_an_open_transaction_is_not_overwritten() -> None:
    server = make_server(log_count=2)
    tx = server.begin()
    server.switch_log()
    with pytest.raises(LongTransactionError, match="log 1 "):
        server.switch_log()
    tx.rollback()
    assert server.switch_log() == 3
    assert server.oldest_log() == 2


def test_a_transaction_that_fills_the_log_can_be_rolled_back() -> None:
    server = make_server(log_pages=2, page_bytes=512, log_count=2)
    with pytest.raises(LongTransactionError):
        fill(server, 100)
    assert server.open_transactions == {}
    fill(server, 3)


def test_a_record_longer_than_a_page_runs_over_the_following_pages() -> None:
    server = EmulatedServer(page_bytes=512)
    server.create_database("stores")
    server.create_table("stores:a.t", "a lvarchar(2000)", full_row_logging=True)
    with server.transaction() as tx:
        first = tx.insert("stores:a.t", {"a": "x" * 2000})
        second = tx.insert("stores:a.t", {"a": "y"})
    assert first == 1 << 32 | 0x1018
    assert second >> 12 == first >> 12 | 4
