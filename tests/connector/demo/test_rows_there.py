"""The demo's account of the rows that were there, and of what changes beside them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from informix_capture_client.shapes import ChangeRow
from informix_cdc.demo.check import DemoCheck
from informix_cdc.demo.rows_there import NEXT_CUSTOMER, NEXT_ORDER, RowsThere, rows_there
from informix_emulator import load_rows
from informix_emulator.shop import CUSTOMERS, demo_server

OLD, NEW = {"customer_num": 1, "city": "Bern"}, {"customer_num": 1, "city": "Basel"}
OTHER = {"customer_num": 2, "city": "Chur"}


def read(row: dict[str, Any]) -> ChangeRow:
    return ChangeRow("insert", CUSTOMERS, row, {"_snapshot": True, "_commit_version": 1})


def change(kind: str, row: dict[str, Any]) -> ChangeRow:
    return ChangeRow(kind, CUSTOMERS, row, {"_snapshot": False, "_commit_version": 2})


def account(*arriving: ChangeRow) -> RowsThere:
    there = RowsThere()
    there.expect(CUSTOMERS, OLD)
    for each in arriving:
        there.record(each)
    return there


def test_a_row_that_was_there_arrives_once() -> None:
    there = account(read(OLD))
    assert (there.total, there.arrived, there.is_complete, there.difference) == (1, 1, True, "")


@pytest.mark.parametrize(
    ("arriving", "is_right"),
    [
        pytest.param([read(OLD), read(OLD)], False, id="twice"),
        pytest.param([read(NEW)], False, id="another value"),
        pytest.param([read(OTHER)], False, id="never there"),
        pytest.param([change("insert", OTHER), read(OTHER)], True, id="inserted before its chunk"),
        pytest.param(
            [change("insert", OTHER), read({**OTHER, "city": "Thun"})],
            False,
            id="older than it",
        ),
        pytest.param(
            [change("insert", OTHER), change("delete", OTHER), read(OTHER)], False, id="it was deleted"
        ),
    ],
)
def test_any_other_row_of_a_snapshot_is_what_the_changes_before_it_have_made(
    arriving: list[ChangeRow], is_right: bool
) -> None:
    assert (account(*arriving).difference == "") == is_right


def test_a_missing_row_keeps_the_demo_from_being_verified() -> None:
    check = DemoCheck()
    check.there.expect(CUSTOMERS, OLD)
    assert not check.is_complete()
    assert check.verdict() == (False, "NOT verified: 0 of 1 existing rows arrived")
    check.arrive([read(OLD)], 0.0)
    assert check.is_complete()
    assert check.verdict()[0]
    assert check.rows == 0  # of changes


def test_the_shop_s_rows_can_be_loaded_and_leave_numbers_for_the_workload() -> None:
    tables: dict[str, list[dict[str, Any]]] = {}
    for table, row in rows_there(random.Random(4), 1_700_000_000.0):
        tables.setdefault(table, []).append(row)
    server = demo_server()
    for table, rows in tables.items():
        load_rows(server, table, rows)
    assert sum(map(len, tables.values())) > 2000
    assert max(row.get("customer_num", 0) for row in tables[CUSTOMERS]) < NEXT_CUSTOMER
    assert max(row["order_num"] for rows in list(tables.values())[1:] for row in rows) < NEXT_ORDER
