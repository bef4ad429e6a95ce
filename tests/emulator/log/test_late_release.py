"""Between the COMMIT record and the end of its locks: what sessions, captures and sysmaster show."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import pytest

from emulator.captures import capturing, names
from emulator.conftest import ORDERS
from emulator.raw_client import RawClient
from emulator.sql.asking import Asked
from informix_emulator import EmulatedServer, keep_rows
from informix_emulator.sql import open_session

Connect = Callable[..., RawClient]
READ = "SELECT id, qty FROM orders ORDER BY id"


def session(server: EmulatedServer, isolation: str = "COMMITTED READ LAST COMMITTED") -> Asked:
    asked = Asked(open_session(server, "informix", "stores", False), server)
    asked.run(f"SET ISOLATION TO {isolation}")
    return asked


@pytest.fixture
def writer(server: EmulatedServer) -> Asked:
    writer = session(server)
    writer.run("INSERT INTO orders VALUES (1, 'a', 10)")
    return writer


def test_a_commit_is_in_the_stream_while_its_rows_are_locked(
    server: EmulatedServer, writer: Asked, connect: Connect
) -> None:
    client = capturing(connect, server)
    last, plain, dirty = (
        session(server),
        session(server, "COMMITTED READ"),
        session(server, "DIRTY READ"),
    )
    with server.late_release.held() as held:
        writer.all("BEGIN WORK", "UPDATE orders SET qty = 11")
        writer.all("INSERT INTO orders VALUES (2, 'b', 20)", "COMMIT WORK")
        assert "COMMTX" in names(client.until_timeout())
        assert last.rows(READ) == [(1, 10)]
        assert dirty.rows(READ) == [(1, 11), (2, 20)]
        assert plain.refused(READ).isam == -107
        assert plain.refused("UPDATE orders SET qty = 0").native == -243
        (number,) = held.waiting
        assert last.rows("SELECT tx_id FROM sysmaster:systrans WHERE tx_logbeg > 0") == [(number,)]
        held.release(number)
        assert last.rows(READ) == plain.rows(READ) == [(1, 11), (2, 20)]
        assert last.rows("SELECT tx_id FROM sysmaster:systrans") == []


def test_its_slot_is_taken_by_nobody_until_then(server: EmulatedServer, writer: Asked) -> None:
    with server.late_release.held() as held:
        writer.run("UPDATE orders SET qty = 11")
        other = server.begin()
        assert held.waiting != [other.id]
    assert server.begin().id not in (other.id,)


def test_what_rolls_back_lets_its_locks_go_at_once(server: EmulatedServer, writer: Asked) -> None:
    with server.late_release.held() as held:
        writer.all("BEGIN WORK", "UPDATE orders SET qty = 11", "ROLLBACK WORK")
        assert held.waiting == []
        assert session(server, "COMMITTED READ").rows(READ) == [(1, 10)]


def test_transactions_of_the_python_api_are_held_too(server: EmulatedServer, writer: Asked) -> None:
    keep_rows(server)
    reader = session(server)
    with server.late_release.held():
        with server.transaction() as tx:
            tx.update(ORDERS, {"id": 1, "name": "a", "qty": 10}, {"id": 1, "name": "a", "qty": 11})
        assert reader.rows(READ) == [(1, 10)]
    assert reader.rows(READ) == [(1, 11)]


def test_each_is_released_by_its_number_in_any_order(server: EmulatedServer, writer: Asked) -> None:
    reader, other = session(server), session(server)
    with server.late_release.held() as held:
        writer.run("INSERT INTO orders VALUES (2, 'b', 20)")
        other.run("INSERT INTO orders VALUES (3, 'c', 30)")
        first, second = held.waiting
        held.release(second)
        assert reader.rows(READ) == [(1, 10), (3, 30)]
        held.release(first)
        assert reader.rows(READ) == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.parametrize("how", ["BEGIN WORK", ""], ids=["COMMIT WORK", "a statement alone"])
def test_with_seconds_a_commit_is_answered_when_its_locks_are_gone(
    server: EmulatedServer, writer: Asked, how: str
) -> None:
    reader = session(server)
    server.late_release.seconds = 3600.0
    texts = (
        [how, "UPDATE orders SET qty = 11", "COMMIT WORK"] if how else ["UPDATE orders SET qty = 11"]
    )
    thread = Thread(target=writer.all, args=texts)
    thread.start()
    while not server.late_release.waiting:
        thread.join(0.01)
    assert reader.rows(READ) == [(1, 10)]
    server.late_release.release()
    thread.join()
    assert reader.rows(READ) == [(1, 11)]
    server.late_release.seconds = 0.001
    writer.run("UPDATE orders SET qty = 12")
    assert reader.rows(READ) == [(1, 12)]


def test_a_server_that_comes_up_again_has_what_had_committed(
    server: EmulatedServer, writer: Asked
) -> None:
    server.late_release.hold()
    writer.run("UPDATE orders SET qty = 11")
    server.recover()
    assert session(server).rows(READ) == [(1, 11)]
    assert server.open_transactions == {}


def test_a_client_can_bring_it_about_over_the_wire(
    server: EmulatedServer, writer: Asked, connect: Connect
) -> None:
    client = connect(server)
    client.rows("SET ISOLATION TO COMMITTED READ LAST COMMITTED")
    client.rows("EXECUTE FUNCTION sysadmin:task('emulator hold locks')")
    client.rows("UPDATE orders SET qty = 11 WHERE id = 1")
    reader = connect(server)
    reader.rows("SET ISOLATION TO COMMITTED READ LAST COMMITTED")
    assert reader.rows(READ) == [("1", "10")]
    assert len(reader.rows("SELECT tx_id FROM sysmaster:systrans WHERE tx_logbeg > 0")) == 1
    client.rows("EXECUTE FUNCTION sysadmin:task('emulator release locks')")
    assert reader.rows(READ) == [("1", "11")]
