from __future__ import annotations

import threading
import time

import pytest

from emulator.captures import (
    Connect,
    capturing,
    fill,
    names,
)
from emulator.conftest import NOW, ORDERS, make_server
from emulator.raw_client import (
    Record,
    Refused,
    split,
)
from harness.runs.patience import patiently, wait_until
from harness.runs.places import at
from informix_emulator import EmulatedServer


def test_every_kind_of_change_becomes_its_record(server: EmulatedServer, connect: Connect) -> None:
    client = capturing(connect, server)
    with server.transaction(user_id=1001) as tx:
        tx.insert(ORDERS, {"id": 1, "name": "a"})
        tx.update(ORDERS, {"id": 1, "name": "a"}, {"id": 1, "name": "bc"})
        tx.delete(ORDERS, {"id": 1, "name": "bc"})
        tx.truncate(ORDERS)
    found = client.until_timeout()
    assert names(found) == [
        "TABSCHEMA", "BEGINTX", "INSERT", "UPDBEF", "UPDAFT", "DELETE", "TRUNCATE", "COMMTX",
        "TIMEOUT",
    ]  # fmt: skip
    places = [record.sequence for record in found[1:-1]]
    assert places == sorted(set(places))
    assert {record.transaction_id for record in found[1:-1]} == {tx.id}
    assert {record.user_data for record in found[2:-2]} == {7}
    assert found[1].header[12:] == NOW.to_bytes(8) + (1001).to_bytes(4)
    assert found[4].payload == b"\0\0\0\1\x80\0\0\0\2bc"
    assert found[4].sizes == (3,)


def test_rows_are_returned_before_their_transaction_is_committed(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server)
    first, second = server.begin(), server.begin()
    first.insert(ORDERS, {"id": 1})
    second.insert(ORDERS, {"id": 2})
    found = client.until_timeout()
    assert names(found) == ["TABSCHEMA", "BEGINTX", "BEGINTX", "INSERT", "INSERT", "TIMEOUT"]
    second.rollback()
    first.commit()
    assert names(client.until_timeout()) == ["RBTX", "COMMTX", "TIMEOUT"]


def test_the_lowest_free_slot_becomes_the_number_of_a_transaction(server: EmulatedServer) -> None:
    first, second = server.begin(), server.begin()
    assert (first.id, second.id) == (20, 21)
    first.commit()
    assert server.begin().id == 20
    with pytest.raises(ValueError, match="open already"):
        server.begin(transaction_id=21)


def test_rolling_back_to_a_savepoint_discards_from_the_first_record_after_it(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server)
    with server.transaction() as tx:
        tx.insert(ORDERS, {"id": 1})
        mark = tx.savepoint()
        assert tx.rollback_to(mark) is None
        void = tx.insert(ORDERS, {"id": 2})
        tx.insert(ORDERS, {"id": 3})
        assert tx.rollback_to(mark) == void
        tx.insert(ORDERS, {"id": 4})
    found = client.until_timeout()
    assert names(found)[2:-1] == ["INSERT", "INSERT", "INSERT", "DISCARD", "INSERT", "COMMTX"]
    assert found[5].sequence == void


def test_a_block_that_raises_rolls_back(server: EmulatedServer, connect: Connect) -> None:
    client = capturing(connect, server)

    def fail() -> None:
        with server.transaction() as tx:
            tx.insert(ORDERS, {"id": 1})
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert names(client.until_timeout())[1:] == ["BEGINTX", "INSERT", "RBTX", "TIMEOUT"]
    assert server.open_transactions == {}


def test_a_transaction_ends_once(server: EmulatedServer) -> None:
    tx = server.begin()
    tx.commit()
    for again in (tx.commit, tx.rollback, lambda: tx.insert(ORDERS, {"id": 1})):
        with pytest.raises(ValueError, match="has ended"):
            again()


@pytest.mark.slow
def test_records_cut_at_any_byte_join_up_again(server: EmulatedServer, connect: Connect) -> None:
    position = server.position()
    fill(server)
    whole = capturing(connect, server, position).read()
    for room in range(128, 300):
        client = capturing(connect, server, position)
        pieces = b""
        with at(f"a buffer of {room} bytes"):
            while len(pieces) < len(whole):
                piece = client.read(room)
                assert len(piece) == min(room, len(whole) - len(pieces))
                pieces += piece
            assert pieces == whole
        client.close()


def test_a_read_returns_no_more_records_than_agreed(server: EmulatedServer, connect: Connect) -> None:
    fill(server)
    client = capturing(connect, server, 1 << 32, max_recs=3)
    lengths = [len(client.records()) for _ in range(4)]
    assert lengths == [3, 3, 2, 1]


def test_a_short_buffer_is_refused(server: EmulatedServer, connect: Connect) -> None:
    client = capturing(connect, server)
    with pytest.raises(Refused) as refused:
        client.read(127)
    assert refused.value.native == -9810


def test_a_read_that_may_not_wait_times_out_at_once_with_the_last_position(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server)
    assert names(client.records()) == ["TABSCHEMA"]
    (timeout,) = client.records()
    assert (timeout.name, timeout.sequence) == ("TIMEOUT", server.position())


@pytest.mark.slow
def test_a_read_waits_as_long_as_agreed_and_then_times_out(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server, timeout=1)
    client.records()
    start = time.monotonic()
    assert names(client.records()) == ["TIMEOUT"]
    assert 0.9 < time.monotonic() - start < patiently(5)


@pytest.mark.parametrize("timeout", [-1, 30])
def test_a_waiting_read_returns_as_soon_as_there_is_data(
    server: EmulatedServer, connect: Connect, timeout: int
) -> None:
    client = capturing(connect, server, timeout=timeout)
    client.records()
    client.ask_to_read(4096)
    server.begin()
    assert client.read_answer()[12:16] == b"\0\0\0\1"


def test_a_server_that_fills_its_answers_waits_for_the_agreed_count(connect: Connect) -> None:
    server = make_server(wait_to_fill=True)
    client = capturing(connect, server, timeout=-1, max_recs=3)
    client.ask_to_read(4096)
    tx = server.begin()
    client.caller.connection.settimeout(0.3)
    with pytest.raises(TimeoutError):
        client.read_answer()
    tx.insert(ORDERS, {"id": 1})
    client.caller.connection.settimeout(20)
    found, rest = split(client.read_answer())
    assert (names(found), rest) == (["TABSCHEMA", "BEGINTX", "INSERT"], b"")


@pytest.mark.slow
def test_a_server_that_fills_its_answers_returns_what_it_has_when_time_is_up(
    connect: Connect,
) -> None:
    server = make_server(wait_to_fill=True)
    fill(server, 1)
    client = capturing(connect, server, 1 << 32, timeout=1)
    assert names(client.records()) == ["TABSCHEMA", "BEGINTX", "INSERT", "COMMTX"]


def test_a_cancelled_read_ends_and_loses_nothing(connect: Connect) -> None:
    server = make_server(wait_to_fill=True)
    fill(server, 1)
    client = capturing(connect, server, 1 << 32, timeout=-1)
    client.ask_to_read(4096)
    # An interrupt that comes before the request is passed over.
    wait_until(lambda: server.log.changed._waiters)  # type: ignore[attr-defined]
    client.caller.interrupt()
    with pytest.raises(Refused) as refused:
        client.read_answer()
    assert refused.value.native == -213
    fill(server, 300)
    assert names(client.records())[:4] == ["TABSCHEMA", "BEGINTX", "INSERT", "COMMTX"]


def test_a_late_cancel_is_passed_over(server: EmulatedServer, connect: Connect) -> None:
    client = capturing(connect, server)
    client.caller.interrupt()
    assert names(client.records()) == ["TABSCHEMA"]


def test_a_subset_of_columns_is_cut_out_of_text_and_rows(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server, columns=" QTY , name")
    with server.transaction() as tx:
        tx.insert(ORDERS, {"id": 9, "name": "ab", "qty": 5})
    schema, _, insert, *_ = client.until_timeout()
    assert schema.payload == b"qty integer, name varchar(20,0)\0"
    assert insert.payload == b"\0\0\0\5\2ab"
    assert insert.sizes == (3,)


def test_a_table_added_to_an_active_session_is_announced_at_once(
    server: EmulatedServer, connect: Connect
) -> None:
    server.create_table("stores:informix.other", "a integer", full_row_logging=True)
    client = capturing(connect, server)
    client.records()
    client.capture("stores:informix.other", "a", 8)
    (schema, _timeout) = client.until_timeout()
    assert schema.payload == b"a integer\0"
    with server.transaction() as tx:
        tx.insert("stores:informix.other", {"a": 1})
    assert client.until_timeout()[1].user_data == 8


def test_rows_written_without_full_row_logging_are_not_returned(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server)
    with server.transaction() as tx:
        tx.insert(ORDERS, {"id": 1})
        server.set_full_row_logging(ORDERS, False)
        unseen = tx.insert(ORDERS, {"id": 2})
    found = client.until_timeout()
    assert names(found)[2:] == ["INSERT", "COMMTX", "TIMEOUT"]
    assert found[-2].sequence > unseen


@pytest.mark.parametrize("foreign", [True, False])
def test_foreign_transactions_show_their_bounds_only_if_wanted(connect: Connect, foreign: bool) -> None:
    server = make_server(foreign_transactions=foreign)
    server.create_table("stores:informix.other", "a integer", full_row_logging=True)
    client = capturing(connect, server)
    with server.transaction() as tx:
        mark = tx.savepoint()
        tx.insert("stores:informix.other", {"a": 1})
        tx.rollback_to(mark)
    end = server.position()
    found = client.until_timeout()
    bounds = ["BEGINTX", "DISCARD", "COMMTX"] if foreign else []
    assert names(found) == ["TABSCHEMA", *bounds, "TIMEOUT"]
    assert end - 100 < found[-1].sequence < end
    fill(server, 1)
    assert names(client.until_timeout()) == ["BEGINTX", "INSERT", "COMMTX", "TIMEOUT"]


LATE = [  # late_begin, foreign_transactions, hides_headless, what a session shows
    (False, True, False, ["BEGINTX", "INSERT", "COMMTX", "BEGINTX", "INSERT", "COMMTX", "COMMTX"]),
    (False, True, True, ["BEGINTX", "BEGINTX", "INSERT", "COMMTX", "COMMTX"]),
    (True, True, False, ["INSERT", "COMMTX", "BEGINTX", "INSERT", "COMMTX", "BEGINTX", "COMMTX"]),
    (True, True, True, ["BEGINTX", "INSERT", "COMMTX", "BEGINTX", "COMMTX"]),
    (True, False, True, ["BEGINTX", "INSERT", "COMMTX"]),
    (False, False, False, ["INSERT", "COMMTX", "BEGINTX", "INSERT", "COMMTX"]),
]


@pytest.mark.parametrize(("late", "foreign", "headless", "shown"), LATE)
def test_a_server_may_show_a_begintx_late_and_hide_transactions_older_than_the_session(
    connect: Connect, late: bool, foreign: bool, headless: bool, shown: list[str]
) -> None:
    server = make_server(late_begin=late, foreign_transactions=foreign, hides_headless=headless)
    older = server.begin()
    client = capturing(connect, server, server.position())
    empty = server.begin()
    older.insert(ORDERS, {"id": 1})
    older.commit()
    fill(server, 1)
    empty.commit()
    assert names(client.until_timeout())[1:-1] == shown


def test_the_record_boundary_is_the_first_byte_of_a_cut_record(
    server: EmulatedServer, connect: Connect
) -> None:
    fill(server)
    client = capturing(connect, server, 1 << 32)
    whole = capturing(connect, server, 1 << 32).read()
    assert client.call("cdc_recboundary", client.session) == 0
    first = client.read(130)
    complete = len(first) - len(split(first)[1])
    assert 0 < complete < len(first)
    assert client.call("cdc_recboundary", client.session) == 1
    assert whole[:complete] + client.read() == whole


def test_deactivating_stops_and_activating_starts_again(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server)
    assert client.call("cdc_deactivatesess", client.session) == 0
    fill(server)
    assert names(client.until_timeout()) == ["TIMEOUT"]
    client.activate(1 << 32)
    assert names(client.until_timeout()).count("INSERT") == 5


def test_a_killed_session_returns_an_error_record_and_must_be_closed(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server, timeout=-1)
    client.records()
    client.ask_to_read(4096)
    server.kill_session(client.session)
    assert client.read_answer()[16:24] == b"\0\0\0\1" + (-83732).to_bytes(4, signed=True)
    assert client.call("cdc_deactivatesess", client.session) == -83729
    with pytest.raises(Refused, match="-12008"):
        client.read()
    assert client.call("cdc_closesess", client.session) == 0
    assert server.sessions() == {}


def test_an_injected_error_that_is_not_fatal_leaves_the_session_alive(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server)
    client.records()
    server.inject_error_record(None, 0, "CDC_E_NOMEM")
    fill(server, 1)
    found = client.until_timeout()
    assert names(found) == ["ERROR", "BEGINTX", "INSERT", "COMMTX", "TIMEOUT"]


def test_a_silenced_server_only_times_out(server: EmulatedServer, connect: Connect) -> None:
    client = capturing(connect, server)
    fill(server, 1)
    server.silence(True)
    assert names(client.records()) == ["TIMEOUT"]
    server.silence(False)
    assert names(client.until_timeout())[:2] == ["TABSCHEMA", "BEGINTX"]


def test_writers_and_a_reader_at_the_same_time_lose_nothing(
    server: EmulatedServer, connect: Connect
) -> None:
    client = capturing(connect, server, timeout=5)

    def write() -> None:
        for number in range(200):
            with server.transaction() as tx:
                tx.insert(ORDERS, {"id": number + 1})

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    found: list[Record] = []
    while names(found).count("COMMTX") < 600:
        found += client.records(997)
    for writer in writers:
        writer.join()
    assert "TIMEOUT" not in names(found)
    assert names(found).count("INSERT") == 600
    places = [record.sequence for record in found if record.name != "TABSCHEMA"]
    assert places == sorted(set(places))


def test_a_recorded_payload_passes_unchanged(server: EmulatedServer, connect: Connect) -> None:
    client = capturing(connect, server)
    with server.transaction() as tx:
        tx.insert_payload(ORDERS, [2], bytes(8) + b"\1z")
        with pytest.raises(ValueError, match="no row of"):
            tx.insert_payload(ORDERS, [3], bytes(8) + b"\1z")
    assert client.until_timeout()[2].payload == bytes(8) + b"\1z"
