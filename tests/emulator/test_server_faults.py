"""A server on its bad days: it restarts, stalls, answers nothing, sends what nobody expects."""

from __future__ import annotations

import struct

import pytest

from emulator.captures import (
    Connect,
    capturing,
    fill,
    names,
)
from emulator.conftest import ORDERS, make_server
from emulator.raw_client import RawClient
from informix_emulator import EmulatedServer, ListeningServer

ROW = {"id": 1, "name": "one", "qty": 1}


def test_a_restart_ends_sessions_and_open_transactions_and_keeps_the_log(
    server: EmulatedServer,
) -> None:
    with ListeningServer(server) as listening:
        client = RawClient(listening.port)
        client.open()
        start = server.position()
        fill(server, 2)
        half_done = server.begin()
        half_done.insert(ORDERS, ROW)
        listening.go_down()
        with pytest.raises(OSError, match="refused"):
            RawClient(listening.port)
        assert (server.sessions(), server.open_transactions) == ({}, {})
        listening.come_up()
        client.close()
        again = RawClient(listening.port)
        again.open()
        again.capture(ORDERS, "id")
        again.activate(start)
        found = names(again.until_timeout())
        again.close()
    ends = ["INSERT", "INSERT", "COMMTX", "BEGINTX", "INSERT", "RBTX", "TIMEOUT"]
    assert found == ["TABSCHEMA", "BEGINTX", *ends]
    with pytest.raises(ValueError, match="has ended"):
        half_done.commit()


def test_sequence_numbers_go_on_over_a_restart(server: EmulatedServer) -> None:
    with server.transaction() as tx:
        before = tx.insert(ORDERS, ROW)
    server.recover()
    with server.transaction() as tx:
        assert tx.insert(ORDERS, ROW) > before


def test_a_stalled_session_times_out_at_one_place_and_a_new_one_reads_on(
    server: EmulatedServer, connect: Connect
) -> None:
    client, start = capturing(connect, server), server.position()
    fill(server, 2)
    place = client.until_timeout()[-1].sequence
    server.stall_session(client.session)
    fill(server, 2)
    stalled = [client.records()[0] for _ in range(2)]
    assert [(record.name, record.sequence) for record in stalled] == [("TIMEOUT", place)] * 2
    assert server.position() > place
    assert names(capturing(connect, server, start).until_timeout()).count("INSERT") == 4


def test_a_silence_lets_the_number_of_its_timeouts_stand_still_while_the_log_moves_on(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server)
    fill(server)
    place = client.until_timeout()[-1].sequence
    server.silence(True)
    before = server.position()
    fill(server)
    (record,) = client.records()
    assert (record.name, record.sequence) == ("TIMEOUT", place)
    assert server.position() > before


def test_empty_reads_are_as_many_as_asked_for_and_lose_nothing(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server)
    server.answer_empty(None, 2)
    fill(server, 1)
    assert [client.read(), client.read()] == [b"", b""]
    assert names(client.records()) == ["TABSCHEMA", "BEGINTX", "INSERT", "COMMTX"]


@pytest.mark.parametrize("half", ["UPDBEF", "UPDAFT"])
def test_half_an_update_is_one_record(server: EmulatedServer, connect: Connect, half: str) -> None:
    client = capturing(connect, server)
    with server.transaction() as tx:
        write = tx.update_before_only if half == "UPDBEF" else tx.update_after_only
        place = write(ORDERS, ROW)
    found = client.until_timeout()[1:]
    assert names(found) == ["BEGINTX", half, "COMMTX", "TIMEOUT"]
    assert found[1].sequence == place


@pytest.mark.parametrize("foreign", [True, False])
def test_a_record_of_an_unknown_type_is_read_by_every_session(connect: Connect, foreign: bool) -> None:
    server = make_server(foreign_transactions=foreign)
    start = server.position()
    with server.transaction() as tx:
        tx.insert(ORDERS, ROW)
        place = tx.write_unknown(77)
    expected = struct.pack(">4IQI", 28, 0, 66, 77, place, tx.id)
    for _ in range(2):
        assert expected in b"".join(reads_until_timeout(capturing(connect, server, start)))


def test_a_table_is_announced_again_by_other_columns(server: EmulatedServer, connect: Connect) -> None:
    client = capturing(connect, server)
    client.until_timeout()
    server.announce_as(None, ORDERS, "id serial, name varchar(20), qty integer, more char(3)")
    announced, last = client.until_timeout()
    assert announced.payload == b"id serial, qty integer, more char(3), name varchar(20,0)\0"
    assert (names([announced, last]), announced.header[:4]) == (["TABSCHEMA", "TIMEOUT"], b"\0\0\0\7")


def reads_until_timeout(client: RawClient) -> list[bytes]:
    reads = [client.read()]
    while reads[-1][12:16] != (201).to_bytes(4, "big"):
        reads.append(client.read())
    return reads


def test_the_seconds_of_a_timeout_can_be_shortened(connect: Connect) -> None:
    client = capturing(connect, make_server(timeout_seconds=0.0), timeout=3600)
    assert names(client.until_timeout()) == ["TABSCHEMA", "TIMEOUT"]


def test_a_wall_ends_the_log_for_later_sessions_and_no_others(
    server: EmulatedServer, connect: Connect
) -> None:
    start, before = server.position(), capturing(connect, server)
    fill(server, 1)
    server.make_log_unreadable()
    fill(server, 2)
    server.switch_log()
    next_log = server.position()
    fill(server, 3)
    assert names(before.until_timeout()).count("INSERT") == 6
    for place in (start, server.log.files[0].records[-1].place):
        later = capturing(connect, server, place)
        *_, last = found = later.until_timeout()
        assert names(found).count("INSERT") == (1 if place == start else 0)
        assert (names(later.records()), last.name) == (["TIMEOUT"], "TIMEOUT")
    assert names(capturing(connect, server, next_log).until_timeout()).count("INSERT") == 3
    server.recover()
    assert names(capturing(connect, server, start).until_timeout()).count("INSERT") == 6


def test_a_read_before_a_wall_may_not_return_before_the_client_hangs_up(
    server: EmulatedServer, connect: Connect
) -> None:
    start = server.position()
    server.make_log_unreadable(reads_return=False)
    fill(server, 1)
    client = capturing(connect, server, start)
    assert names(client.records()) == ["TABSCHEMA"]
    client.caller.connection.settimeout(0.3)
    with pytest.raises(TimeoutError):
        client.read()
    client.close()
    server.switch_log()
    next_log = server.position()
    fill(server, 2)
    assert names(capturing(connect, server, next_log).until_timeout()).count("INSERT") == 2
