from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import informix_emulator as emulator_package
from emulator.conftest import ORDERS, make_server
from emulator.raw_client import RawClient, Refused
from informix_emulator import EmulatedServer, ListeningServer


@pytest.mark.parametrize(
    "position", [47 << 32 | 0x5E018, 21 << 32 | 0x4B774, 7 << 32 | 0x8A209C, 67 << 32 | 0x144CFF0]
)
def test_a_record_lies_exactly_where_it_is_placed(position: int) -> None:
    server = make_server()
    server.move_to(position)
    assert server.position() == position
    tx = server.begin()
    assert tx.begin_sequence == position
    assert tx.commit() > position
    assert server.oldest_log() == position >> 32


@pytest.mark.parametrize("position", [1 << 32, 2 << 32 | 0x10000 << 12, 0])
def test_a_record_is_not_placed_before_the_end_nor_outside_its_log(
    server: EmulatedServer, position: int
) -> None:
    with pytest.raises(ValueError, match="is not from the end"):
        server.move_to(position)


def test_no_record_lies_at_the_first_byte_of_a_page(server: EmulatedServer) -> None:
    server.move_to(9 << 32)
    assert server.begin().begin_sequence == 9 << 32 | 0x18


@pytest.mark.parametrize("page_bytes", [512, 2048, 4096])
def test_sequence_numbers_rise_and_stay_inside_their_pages(page_bytes: int) -> None:
    server = make_server(page_bytes=page_bytes, log_pages=4, log_count=200)
    last = 0
    for length in range(300):
        end = server.position()
        tx = server.begin()
        assert last < end <= tx.begin_sequence
        tx.insert(ORDERS, {"id": length, "name": "x" * (length % 20)})
        last = tx.commit()
        assert 0x18 <= last & 0xFFF < page_bytes
        assert last >> 12 & 0xFFFFF < 4
    assert server.oldest_log() == 1 < last >> 32


def test_names_are_taken_once(server: EmulatedServer) -> None:
    with pytest.raises(ValueError, match="already"):
        server.create_database("Stores")
    with pytest.raises(ValueError, match="already"):
        server.create_table(ORDERS, "a integer")
    server.drop_table(ORDERS)
    server.create_table(ORDERS, "a integer")


def test_there_are_at_least_two_logs() -> None:
    with pytest.raises(ValueError, match="at least 2 logs"):
        EmulatedServer(log_count=1)


@pytest.mark.parametrize("name", ["orders", "nowhere:informix.orders", "stores:informix"])
def test_a_table_needs_a_database_and_an_owner(server: EmulatedServer, name: str) -> None:
    with pytest.raises(ValueError, match=r"database"):
        server.create_table(name, "a integer")


def test_what_is_not_logged_is_not_written(server: EmulatedServer) -> None:
    server.create_database("plain", logged=False)
    server.create_table("plain:informix.t", "a integer")
    server.create_table("stores:informix.raw", "a integer", kind="raw")
    with server.transaction() as tx:
        for name in ("plain:informix.t", "stores:informix.raw"):
            with pytest.raises(ValueError, match="not logged"):
                tx.insert(name, {"a": 1})
        with pytest.raises(ValueError, match="no table"):
            tx.insert("stores:informix.none", {"a": 1})


def test_a_savepoint_belongs_to_its_transaction(server: EmulatedServer) -> None:
    first, second = server.begin(), server.begin()
    early = first.savepoint()
    first.insert(ORDERS, {"id": 1})
    late = first.savepoint()
    first.rollback_to(early)
    for transaction, mark in ((second, early), (first, late)):
        with pytest.raises(ValueError, match="savepoint"):
            transaction.rollback_to(mark)


def test_a_query_that_needs_a_log_file_which_is_taken_is_refused(
    connect: Callable[..., RawClient],
) -> None:
    server = make_server(log_pages=2, page_bytes=512, log_count=2)
    client = connect(server)
    used = []
    for _ in range(3):
        server.begin()
        used += client.rows("SELECT used FROM sysmaster:syslogs WHERE is_current = 1")
    assert used == [("1",), ("0",), ("1",)]
    server.begin()
    with pytest.raises(Refused) as refused:
        client.rows("SELECT used FROM sysmaster:syslogs")
    assert refused.value.native == -458


def test_a_server_listens_on_the_same_port_again(server: EmulatedServer) -> None:
    listening = ListeningServer(server)
    listening.start()
    port = listening.port
    RawClient(port).close()
    listening.stop()
    with pytest.raises(ConnectionError):
        RawClient(port)
    with listening:
        assert listening.port == port
        RawClient(port).close()


def test_the_emulator_knows_nothing_of_the_client_it_is_to_test() -> None:
    folder = Path(emulator_package.__file__ or "").parent
    imports = [
        node
        for file in folder.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    froms = [node for node in imports if isinstance(node, ast.ImportFrom)]
    assert len(froms) > 50
    roots = {str(node.module).partition(".")[0] for node in froms if node.level == 0}
    roots |= {name.name for node in imports if isinstance(node, ast.Import) for name in node.names}
    assert roots <= sys.stdlib_module_names
    assert {node.level for node in froms} == {0, 1}
