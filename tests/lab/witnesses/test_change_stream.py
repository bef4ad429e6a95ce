"""IBM's change-stream client captures: every type, every kind of record, a whole shop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from informix_emulator import EmulatedServer
from informix_emulator.shop import COLUMNS, CommittedTransaction, Workload
from lab.witnesses import typed_values
from lab.witnesses.java_programs import compiled, running
from lab.witnesses.jdbc import url
from lab.witnesses.known_differences import CHANGE_STREAM_TYPES
from lab.witnesses.programs import Line, Program
from lab.witnesses.served import PASSWORD, USER, served
from lab.witnesses.transactions import committed, first_difference
from lab.witnesses.typed_values import ABSENT, ROWS, WRITABLE, found, table_of, written

pytestmark = pytest.mark.witness

# Client, driver, manner, records a read (0: the client's own default).
READERS = {
    "1.1.3 with the driver 4.50.11": ("1.1.3", "4.50.11", "one", 0),
    "1.1.3 with the driver 15.0.1.0": ("1.1.3", "15.0.1.0", "one", 0),
    "1.1.5, many at a time": ("1.1.5", "15.0.1.0", "many", 0),
    "1.1.5, one at a time": ("1.1.5", "15.0.1.0", "one", 1),
}
SHOP_TRANSACTIONS = 2000


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> tuple[str, str, str, int]:
    return READERS[request.param]


@contextmanager
def capturing(
    reader: tuple[str, str, str, int],
    port: int,
    tables: dict[str, str],
    folder: Path,
    buffer_bytes: int = 131_072,  # the client cannot put a record together that is longer than a read
) -> Iterator[Program]:
    """Run the client on tables, given as their columns by name, for the length of a block."""
    client, driver, manner, most = reader
    sources, libraries = ("Json", "Values", "ChangeStream"), f"changestream-{client}"
    path = compiled([f"jdbc-{driver}", libraries], *sources, against=["jdbc-4.50.11", libraries])
    where = url(port, "syscdcv1", f"user={USER}", f"password={PASSWORD}")
    watched = [f"{table}={columns}" for table, columns in tables.items()]
    arguments = [where, manner, str(most), "0", "1", str(buffer_bytes), *watched]
    with running(path, "ChangeStream", *arguments, folder=folder) as program:
        assert program.next_line() == {"ready": True}, program.complaints()
        yield program


def until(program: Program, kind: str, times: int = 1) -> list[Line]:
    """Read records until so many of a kind have come; TIMEOUTs are left out of the others."""
    seen: list[Line] = []
    while times:
        record = program.next_line()
        times -= record["type"] == kind
        seen.append(record)
    return [record for record in seen if record["type"] == kind or record["type"] != "TIMEOUT"]


def until_committed(program: Program, sequence: int) -> list[Line]:
    """Read records until the transaction with a COMMIT at a sequence number has ended."""
    seen = [program.next_line()]
    while (seen[-1]["type"], seen[-1]["sequence"]) != ("COMMIT", sequence):
        seen.append(program.next_line())
    return seen


def kinds(records: Sequence[Line]) -> list[str]:
    return [record["type"] for record in records]


def test_every_type_is_read_as_it_was_written(reader: Any, tmp_path: Path) -> None:
    assert dict(_every_type(reader, tmp_path)) == typed_values.expected(CHANGE_STREAM_TYPES)


def _every_type(reader: Any, folder: Path) -> Iterator[tuple[str, list[object]]]:
    """Yield what the client reads of each type, which has a table of its own."""
    names = {text: f"stores:informix.{table_of(text)}" for text in WRITABLE}
    with served() as (server, port):
        for text, name in names.items():
            server.create_table(name, f"place integer, x {text}")
        with capturing(reader, port, dict.fromkeys(names.values(), "place,x"), folder) as program:
            for text, name in names.items():
                with server.transaction(user_id=1001) as transaction:
                    for place in ROWS:
                        transaction.insert(name, {"place": place, "x": written(text, place)})
                rows = [record for record in until(program, "COMMIT") if record["type"] == "INSERT"]
                yield text, found(CHANGE_STREAM_TYPES, text, [shown(row) for row in rows])


def shown(record: Line) -> Any:
    """Return what the client shows of column x: its text, or that it cannot."""
    if "error" in record:
        return f"({record['error']['class']})"
    text = record["data"].get("x", ABSENT)
    return f"({text['error']['class']})" if isinstance(text, dict) else text


ORDERS = "stores:informix.orders"


@pytest.fixture
def orders(reader: Any, tmp_path: Path) -> Iterator[tuple[EmulatedServer, Program]]:
    with served() as (server, port):
        server.create_table(ORDERS, "order_num serial primary key, note varchar(40)")
        with capturing(reader, port, {ORDERS: "order_num,note"}, tmp_path) as program:
            yield server, program


def test_each_kind_of_record_arrives_as_itself(orders: tuple[EmulatedServer, Program]) -> None:
    server, program = orders
    first, changed = {"order_num": 1, "note": "one"}, {"order_num": 1, "note": None}
    with server.transaction(user_id=1001) as transaction:
        transaction.insert(ORDERS, first)
        transaction.update(ORDERS, first, changed)
        savepoint = transaction.savepoint()
        transaction.delete(ORDERS, changed)
        transaction.rollback_to(savepoint)
        transaction.delete(ORDERS, changed)
    given_up = server.begin(user_id=1002)
    given_up.insert(ORDERS, first)
    given_up.rollback()
    with server.transaction(user_id=1003) as emptying:
        emptying.truncate(ORDERS)
    records = until(program, "COMMIT", times=2)
    assert kinds(records) == [
        *(
            "METADATA",
            "BEGIN",
            "INSERT",
            "BEFORE_UPDATE",
            "AFTER_UPDATE",
            "DELETE",
            "DISCARD",
            "DELETE",
        ),
        *("COMMIT", "BEGIN", "INSERT", "ROLLBACK", "BEGIN", "TRUNCATE", "COMMIT"),
    ]
    one, none = {"order_num": "1", "note": "one"}, {"order_num": "1", "note": None}
    data = [record["data"] for record in records if "data" in record]
    assert data == [one, one, none, none, none, one]
    begun_by = [record["user"] for record in records if record["type"] == "BEGIN"]
    assert begun_by == [1001, 1002, 1003]
    sequences = [record["sequence"] for record in records[1:9]]
    assert sequences == sorted(sequences)


def test_time_that_passes_without_a_change_is_said(
    reader: Any, orders: tuple[EmulatedServer, Program]
) -> None:
    _server, program = orders
    if reader == READERS["1.1.5, many at a time"]:  # a known difference: it keeps them to itself
        pytest.skip("getRecords() of 1.1.5 goes on reading until there is another record")
    assert until(program, "TIMEOUT")[-1]["type"] == "TIMEOUT"


def test_an_error_record_has_its_number(orders: tuple[EmulatedServer, Program]) -> None:
    server, program = orders
    server.inject_error_record(None, 0, "CDC_E_INTERRUPT")
    record = until(program, "ERROR")[-1]
    assert record["number"] == -83732


def test_the_session_is_closed_when_the_client_goes(orders: tuple[EmulatedServer, Program]) -> None:
    server, program = orders
    assert len(server.sessions()) == 1
    assert [line for line in program.lines_until_end() if "closed" in line] == [{"closed": True}]
    assert program.exit_status() == 0
    assert not server.sessions()


def test_a_shop_of_two_thousand_transactions_is_equal_to_its_account(
    reader: Any, tmp_path: Path
) -> None:
    account: list[CommittedTransaction] = []
    tables = {name: columns_of(text) for name, text in COLUMNS.items()}
    with served() as (server, port):
        for name, text in COLUMNS.items():
            server.create_table(name, text)
        with capturing(reader, port, tables, tmp_path) as program:
            shop = Workload(server, seed=20, transactions_per_second=500, on_commit=account.append)
            shop.run_transactions(SHOP_TRANSACTIONS)
            records = until_committed(program, account[-1].commit)
    labels = {record["label"] for record in records if record["type"] == "METADATA"}
    table_of = dict(zip(sorted(labels), tables, strict=True))
    assert first_difference(account, committed(records), table_of) == ""


def columns_of(text: str) -> str:
    """Return the names of a table's columns."""
    names = [piece.split()[0] for piece in text.split(", ")]
    return ",".join(name for name in names if name not in ("primary", "item_num)"))
