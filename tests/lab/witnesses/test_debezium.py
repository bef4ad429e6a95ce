"""Debezium's Informix connector, embedded: a snapshot and changes; a shop equal to its account."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from harness.runs.patience import PATIENCE
from informix_emulator import EmulatedServer
from informix_emulator.shop import COLUMNS, CommittedTransaction, Workload
from lab.witnesses.java_programs import compiled, running
from lab.witnesses.jdbc import conversing, url
from lab.witnesses.programs import Line, Program
from lab.witnesses.served import DATABASE, PASSWORD, USER, served

pytestmark = pytest.mark.witness

DEBEZIUM, DRIVER = "3.5.0.Final", "15.0.1.0"
SHOP_TRANSACTIONS = 2000
_SETTINGS = {
    "name": "witness",
    "connector.class": "io.debezium.connector.informix.InformixConnector",
    "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
    "offset.flush.interval.ms": "1000",
    "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
    "database.hostname": "127.0.0.1",
    "database.user": USER,
    "database.password": PASSWORD,
    "database.dbname": DATABASE,
    "driver.DB_LOCALE": "en_US.utf8",
    "driver.CLIENT_LOCALE": "en_US.utf8",
    "topic.prefix": "t",
    "cdc.timeout": "1",
    "decimal.handling.mode": "string",
    "tombstones.on.delete": "false",
    "skipped.operations": "none",
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
}
_EPOCH = date(1970, 1, 1)


@contextmanager
def streaming(port: int, folder: Path, **settings: str) -> Iterator[Program]:
    """Run the engine for the length of a block."""
    names = {"snapshot_mode": "snapshot.mode", "tables": "table.include.list"}
    chosen = {names[name]: value for name, value in settings.items()}
    path = compiled([f"debezium-{DEBEZIUM}", f"jdbc-{DRIVER}"], "DebeziumStream")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    with running(path, "DebeziumStream", folder=folder, properties=[quiet]) as program:
        for name, value in {**_SETTINGS, "database.port": str(port), **chosen}.items():
            program.say(f"{name}={value}")
        program.say("run")
        yield program


def changes(program: Program, number: int) -> list[Line]:
    """Return the next changes of rows; events about schemas and the like are passed over."""
    seen: list[Line] = []
    while len(seen) < number:
        line = program.next_line()
        assert "completed" not in line, f"{line}\n{program.complaints()}"
        if line["value"] and "op" in line["value"]:
            seen.append(line["value"])
    return seen


def wait_for_session(server: EmulatedServer, tables: int = 1) -> None:
    """Wait until the engine reads so many tables: what is written from then on, it must see."""
    deadline = time.monotonic() + 60 * PATIENCE
    while not any(s.is_active and len(s.captures) == tables for s in server.sessions().values()):
        assert time.monotonic() < deadline, "no capture session was opened"
        time.sleep(0.05)


def test_a_snapshot_and_then_changes_have_the_values_that_were_written(tmp_path: Path) -> None:
    (tmp_path / "jdbc").mkdir()
    with served() as (server, port), conversing(DRIVER, tmp_path / "jdbc") as jdbc:
        jdbc.ask("connect", url(port, DATABASE), USER, PASSWORD)
        columns = "id integer not null primary key, name varchar(40), credit decimal(12,2), born date"
        jdbc.ask("execute", f"create table customer ({columns})")
        for number in range(1, 6):
            values = (f"int={number}", f"string=größe {number}", "decimal=-1.50", "date=2024-02-29")
            jdbc.count("insert into customer values (?, ?, ?, ?)", *values)
        table = f"{DATABASE}.informix.customer"
        with streaming(port, tmp_path, snapshot_mode="initial", tables=table) as program:
            snapshot = changes(program, 5)
            wait_for_session(server)
            jdbc.count("insert into customer values (6, 'six', null, null)")
            jdbc.count("update customer set name = 'SIX', credit = 0.01 where id = 6")
            jdbc.count("delete from customer where id = 1")
            streamed = changes(program, 3)
    leap_day = (date(2024, 2, 29) - _EPOCH).days
    old = [{"id": n, "name": f"größe {n}", "credit": "-1.50", "born": leap_day} for n in range(1, 6)]
    assert [(event["op"], event["after"]) for event in snapshot] == [("r", row) for row in old]
    six = {"id": 6, "name": "six", "credit": None, "born": None}
    changed = {"id": 6, "name": "SIX", "credit": "0.01", "born": None}
    assert [(event["op"], event["before"], event["after"]) for event in streamed] == [
        ("c", None, six),
        ("u", six, changed),
        ("d", old[0], None),
    ]


def test_a_shop_of_two_thousand_transactions_is_equal_to_its_account(tmp_path: Path) -> None:
    account: list[CommittedTransaction] = []
    with served() as (server, port):
        for name, text in COLUMNS.items():
            server.create_table(name, text)
        tables = ",".join(name.replace(":", ".") for name in COLUMNS)
        with streaming(port, tmp_path, snapshot_mode="no_data", tables=tables) as program:
            wait_for_session(server, len(COLUMNS))
            shop = Workload(server, seed=21, transactions_per_second=500, on_commit=account.append)
            shop.run_transactions(SHOP_TRANSACTIONS)
            due = [event for transaction in account for event in events(transaction)]
            came = [event_of(change) for change in changes(program, len(due))]
    for number, (wanted, found) in enumerate(zip(due, came, strict=True)):
        assert wanted == found, f"change {number} of {len(due)}"


def events(transaction: CommittedTransaction) -> Iterator[tuple[Any, ...]]:
    """Yield a committed transaction's changes as Debezium counts them: an update is one."""
    images = iter(transaction.changes)
    for image in images:
        row = shown(image.row)
        if image.change_type == "insert":
            yield ("c", image.table, None, row)
        elif image.change_type == "delete":
            yield ("d", image.table, row, None)
        else:
            yield ("u", image.table, row, shown(next(images).row))


def event_of(change: Line) -> tuple[Any, ...]:
    """Return a change of Debezium's in the same form."""
    source = change["source"]
    table = f"{source['db']}:{source['schema']}.{source['table']}"
    return (change["op"], table, trimmed(change["before"]), trimmed(change["after"]))


def trimmed(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a row without the blanks of CHAR."""
    if row is None:
        return None
    return {name: v.rstrip(" ") if isinstance(v, str) else v for name, v in row.items()}


def shown(row: Mapping[str, object]) -> dict[str, Any]:
    """Return a row in Debezium's types: days, milliseconds, decimals as texts."""
    return {name: _shown(value) for name, value in row.items()}


def _shown(value: object) -> object:
    if isinstance(value, datetime):
        return round((value - datetime(1970, 1, 1)).total_seconds() * 1000)
    if isinstance(value, date):
        return (value - _EPOCH).days
    return f"{value:.2f}" if isinstance(value, Decimal) else value  # all have two decimals
