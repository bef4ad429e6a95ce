"""The demo's shop: what it says it has committed is what its server's log says."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from harness.capture.rows_without_spark import rows_without_spark
from informix_capture_client.shapes.as_rows import ChangeRow
from informix_cdc.demo.check import DemoCheck
from informix_cdc.terminal.options import parse_options
from informix_emulator import EmulatedServer, ListeningServer, keep_rows
from informix_emulator.shop import (
    CUSTOMERS,
    ITEMS,
    KEYS,
    ORDERS,
    PASSWORD,
    TABLE_NAMES,
    CommittedTransaction,
    Workload,
    demo_server,
)
from informix_emulator.sql import open_session

NOW = 1_700_000_000.0


def work(server: EmulatedServer, seed: int, transactions: int) -> list[CommittedTransaction]:
    account: list[CommittedTransaction] = []
    workload = Workload(server, seed, 100, account.append, lambda: NOW)
    workload.run_transactions(transactions)
    return account


def test_the_same_seed_makes_the_same_transactions() -> None:
    assert work(demo_server(), 7, 300) == work(demo_server(), 7, 300)


@pytest.mark.slow
def test_a_server_that_keeps_rows_does_not_fill_up_with_what_the_shop_has_forgotten() -> None:
    server = demo_server()
    keep_rows(server)
    workload = Workload(server, 7, 100, clock=lambda: NOW, clears_up=True)
    session = open_session(server, "informix", "stores", False)
    limits = {"customers": 600, "orders": 500, "items": 1500}
    for transactions in (2000, 3500):
        workload.run_transactions(transactions)
        for table, most in limits.items():
            ((rows,),) = session.prepare(f"SELECT count(*) FROM {table}").run((), lambda: None).rows
            assert rows <= most, table
    session.close()


@pytest.mark.only_in_all
def test_another_seed_makes_other_transactions() -> None:
    assert work(demo_server(), 7, 300) != work(demo_server(), 8, 300)


@pytest.mark.only_in_all
def test_a_long_run_has_every_kind_of_change_and_of_ending() -> None:
    workload = Workload(demo_server(), 3, 100, clock=lambda: NOW)
    account: list[CommittedTransaction] = []
    workload._on_commit = account.append
    workload.run_transactions(1000)
    changes = [change for one in account for change in one.changes]
    assert {change.change_type for change in changes} == {
        "insert", "delete", "update_preimage", "update_postimage",
    }  # fmt: skip
    assert {change.table for change in changes} == {CUSTOMERS, ORDERS, ITEMS}
    assert any("ü" in str(change.row) for change in changes)
    assert workload.rolled_back > 20
    assert workload.savepoints_undone > 20


def test_transactions_interleave() -> None:
    workload = Workload(demo_server(), 3, 100)
    workload._begin()
    for _ in range(50):
        workload._tick()
    assert len(workload._open) > 1


@pytest.mark.slow
@pytest.mark.only_in_all
def test_no_row_is_changed_before_it_exists_or_after_it_is_gone() -> None:
    rows: dict[tuple[str, tuple[object, ...]], dict[str, object]] = {}
    for transaction in work(demo_server(), 11, 1500):
        for change in transaction.changes:
            key = (change.table, tuple(change.row[name] for name in KEYS[change.table]))
            if change.change_type in ("delete", "update_preimage"):
                assert rows.pop(key) == change.row
            else:
                assert key not in rows
                rows[key] = change.row


class Account:
    """The rows of the shop's tables, by what its workload says that it committed."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[tuple[object, ...], dict[str, object]]] = {name: {} for name in KEYS}

    def expect(self, transaction: CommittedTransaction) -> None:
        for change in transaction.changes:
            rows, key = self.rows[change.table], tuple(change.row[name] for name in KEYS[change.table])
            if change.change_type in ("delete", "update_preimage"):
                assert stated(rows.pop(key)) == stated(change.row)
            else:
                rows[key] = change.row


@pytest.mark.only_in_all
def test_rows_that_others_changed_and_altered_are_those_of_the_log() -> None:
    server, account = demo_server(), Account()
    keep_rows(server)
    workload = Workload(server, 7, 100, account.expect, clock=lambda: NOW, clears_up=True)
    workload.run_transactions(300)
    session = open_session(server, "informix", "stores", False)
    for statement in (
        "ALTER TABLE customers ADD (vip CHAR(1) DEFAULT 'n' NOT NULL), ADD (note VARCHAR(20))",
        "ALTER TABLE orders DROP (ship_weight)",
        "UPDATE customers SET vip = 'y' WHERE customer_num < 200",
    ):
        session.prepare(statement).run((), lambda: None)
    for row in account.rows[CUSTOMERS].values():
        row |= {"vip": "y" if row["customer_num"] < 200 else "n", "note": None}  # type: ignore[operator]
    for row in account.rows[ORDERS].values():
        del row["ship_weight"]
    workload.run_transactions(600)
    for table, rows in account.rows.items():
        columns = [column.name for column in server.table(table).columns]
        found = session.prepare(f"SELECT * FROM {table.rpartition('.')[2]}").run((), lambda: None).rows
        selected = [stated(dict(zip(columns, row, strict=True))) for row in found]
        for row in rows.values():
            selected.remove(stated(row))
        assert not selected
    session.close()


def stated(row: dict[str, object]) -> dict[str, object]:
    """Return a row without the blanks that a CHAR column adds, with DATETIME as the engine has it."""
    texts = (str, datetime)
    return {k: str(v).rstrip() if isinstance(v, texts) else v for k, v in sorted(row.items())}


@pytest.mark.slow
@pytest.mark.only_in_all
def test_the_account_is_what_a_capture_of_the_server_delivers(shop: ListeningServer) -> None:
    check = DemoCheck()
    workload = Workload(shop.server, 5, 200, check.expect)
    options = parse_options(
        {
            "host": "127.0.0.1", "port": str(shop.port), "server": "informix", "database": "stores",
            "table": ",".join(TABLE_NAMES), "password": PASSWORD, "transport": "sqli",
        }
    )  # fmt: skip
    batches = rows_without_spark(options, lambda: workload.run_transactions(400))
    for changes in batches:
        check.arrive(changes, NOW)
        if check.is_complete():
            break
    batches.close()
    assert check.verdict() == (
        True,
        "verified: 0 existing rows, each once;"
        f" {workload.committed} of {workload.committed} transactions, in order; every value",
    )


def delivered(transaction: CommittedTransaction) -> list[ChangeRow]:
    metadata = {"_commit_version": transaction.commit, "_snapshot": False}
    return [ChangeRow(c.change_type, c.table, c.row, metadata) for c in transaction.changes]


def checked(
    account: list[CommittedTransaction], arrived: list[CommittedTransaction]
) -> tuple[bool, str]:
    check = DemoCheck()
    for transaction in account:
        check.expect(transaction)
    for transaction in arrived:
        check.arrive(delivered(transaction), NOW)
    return check.verdict()


def test_the_check_believes_only_the_same_transactions_in_the_same_order() -> None:
    account = work(demo_server(), 2, 60)
    one, other = account[10], account[11]
    changed = replace(one, changes=(replace(one.changes[0], row={**one.changes[0].row, "x": 1}),))
    assert checked(account, account)[0]
    for wrong in (
        account[:-1],
        account[1:],
        [*account, account[-1]],
        [*account[:10], other, one, *account[12:]],
        [*account[:10], changed, *account[11:]],
        [*account[:10], replace(one, commit=one.commit + 1), *account[11:]],
    ):
        is_right, words = checked(account, wrong)
        assert not is_right
        assert words.startswith("NOT verified")


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_latency_percentiles_exist_from_the_first_row_on(count: int) -> None:
    check = DemoCheck(latencies=[0.5] * count)
    assert check.latency(95) == (0.5 if count else 0)
