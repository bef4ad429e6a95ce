"""What IBM's change-stream client is known to do otherwise: a version that does not is news."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from informix_emulator import EmulatedServer
from lab.witnesses.served import served
from lab.witnesses.test_change_stream import capturing, kinds, until

pytestmark = pytest.mark.witness

ORDERS = "stores:informix.orders"
COLUMNS = {ORDERS: "order_num,note"}
DRIVER = "4.50.11"


@pytest.fixture
def orders() -> Iterator[tuple[EmulatedServer, int]]:
    with served() as (server, port):
        server.create_table(ORDERS, "order_num integer, note lvarchar(20000)")
        yield server, port


def insert(server: EmulatedServer, note: str = "one") -> None:
    # in one piece: a read that comes between would have a part of it
    with server.log.changed, server.transaction(user_id=1001) as transaction:
        transaction.insert(ORDERS, {"order_num": 1, "note": note})


def test_version_1_1_1_cannot_decode_an_lvarchar(
    orders: tuple[EmulatedServer, int], tmp_path: Path
) -> None:
    server, port = orders
    with capturing(("1.1.1", DRIVER, "one", 0), port, COLUMNS, tmp_path) as program:
        insert(server)
        (record,) = (r for r in until(program, "COMMIT") if r["type"] == "INSERT")
    assert record["error"]["cause"]["class"] == "java.lang.ArrayIndexOutOfBoundsException", record


def test_version_1_1_5_hands_out_the_first_record_of_a_read_and_drops_the_others(
    orders: tuple[EmulatedServer, int], tmp_path: Path
) -> None:
    server, port = orders
    with capturing(("1.1.5", DRIVER, "one", 0), port, COLUMNS, tmp_path) as program:
        program.next_line()  # METADATA
        insert(server)
        seen = kinds(until(program, "TIMEOUT", times=3))
    assert [kind for kind in seen if kind != "TIMEOUT"] == ["BEGIN"]


def test_a_record_longer_than_the_buffer_ends_the_client(
    orders: tuple[EmulatedServer, int], tmp_path: Path
) -> None:
    server, port = orders
    reader = ("1.1.3", DRIVER, "one", 0)
    with capturing(reader, port, COLUMNS, tmp_path, buffer_bytes=10_240) as program:
        insert(server, note="x" * 15_000)
        with pytest.raises(AssertionError, match="BufferUnderflowException"):
            until(program, "COMMIT")


def test_the_user_of_a_truncate_is_the_label_of_its_table(
    orders: tuple[EmulatedServer, int], tmp_path: Path
) -> None:
    server, port = orders
    with capturing(("1.1.3", DRIVER, "one", 0), port, COLUMNS, tmp_path) as program:
        with server.transaction(user_id=1003) as transaction:
            transaction.truncate(ORDERS)
        records = until(program, "COMMIT")
    labels = [record["label"] for record in records if record["type"] == "METADATA"]
    users = [str(record["user"]) for record in records if record["type"] == "TRUNCATE"]
    assert users == labels
