"""`informix-cdc tail` as a process: exact rows, an orderly end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal

import pytest

from connector.commands.conftest import connection_arguments, start
from harness.runs.patience import patiently
from harness.runs.tiers import rest_in_all
from informix_capture_client.shapes.as_rows import ChangeRow
from informix_cdc.terminal.change_text import as_lines, to_json
from informix_emulator import ListeningServer

pytestmark = pytest.mark.slow

PRICES = "stores:informix.prices"
BEFORE = {
    "id": 2**60,
    "amount": Decimal("1234567890123456.78"),
    "day": date(2024, 2, 29),
    "note": "naïve",
}
AFTER = {**BEFORE, "amount": Decimal("0.10"), "note": None}
BEFORE_JSON = {"id": str(2**60), "amount": "1234567890123456.78", "day": "2024-02-29", "note": "naïve"}
AFTER_JSON = {**BEFORE_JSON, "amount": "0.10", "note": None}


@contextmanager
def tailing(shop: ListeningServer, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start tail and wait until it says that it sees what commits from now on."""
    process = start("tail", *connection_arguments(shop), *arguments)
    try:
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while lines[-1] and not lines[-1].startswith("Following"):
            lines.append(process.stderr.readline())
        assert lines[-1], lines
        yield process
    finally:
        process.kill()
        process.communicate()


def change_prices(shop: ListeningServer) -> int:
    transaction = shop.server.begin()
    transaction.insert(PRICES, BEFORE)
    transaction.update(PRICES, BEFORE, AFTER)
    transaction.delete(PRICES, AFTER)
    return transaction.commit()


@pytest.fixture
def prices(shop: ListeningServer) -> ListeningServer:
    columns = "id bigint, amount decimal(18,2), day date, note varchar(20,0)"
    shop.server.create_table(PRICES, columns)
    return shop


@pytest.mark.only_in_all
def test_json_has_one_object_per_row_and_loses_nothing(prices: ListeningServer) -> None:
    with tailing(prices, "--table=informix.prices", "--format=json", "--limit=4") as tail:
        commit = change_prices(prices)
        output, errors = tail.communicate(timeout=patiently(20))
    lines = [json.loads(line) for line in output.splitlines()]
    assert [(line["_change_type"], line["_commit_version"], line["row"]) for line in lines] == [
        ("insert", commit, BEFORE_JSON),
        ("update_preimage", commit, BEFORE_JSON),
        ("update_postimage", commit, AFTER_JSON),
        ("delete", commit, AFTER_JSON),
    ]
    assert tail.returncode == 0
    assert errors.splitlines()[-1].startswith("4 rows of 1 transaction in ")


@pytest.mark.parametrize(
    ("limit", "says"),
    rest_in_all([(2, "2 rows of 1 transaction in "), (5, "5 rows of 2 transactions in ")]),
)
@pytest.mark.parametrize("form", rest_in_all(["json", "table"]))
@pytest.mark.only_in_all
def test_only_transactions_of_which_a_row_was_shown_are_counted(
    prices: ListeningServer, form: str, limit: int, says: str
) -> None:
    limit -= form == "table" and limit > 2  # where both images of an update are one line
    with tailing(prices, "--table=informix.prices", f"--format={form}", f"--limit={limit}") as tail:
        for _ in range(20):
            change_prices(prices)
        _, errors = tail.communicate(timeout=patiently(20))
    assert errors.splitlines()[-1].startswith(says.replace("5", str(limit)))


@pytest.mark.only_in_all
def test_several_tables_come_in_commit_order_with_rows_of_the_same_shape(
    prices: ListeningServer,
) -> None:
    tables = "--table=informix.prices,informix.items"
    with tailing(prices, tables, "--format=json", "--limit=5") as tail:
        change_prices(prices)
        with prices.server.transaction() as transaction:
            transaction.insert("stores:informix.items", {"order_num": 7, "unit_price": "2.50"})
        output, _ = tail.communicate(timeout=patiently(20))
    rows = [json.loads(line) for line in output.splitlines()]
    assert [row["_table"] for row in rows] == [PRICES] * 4 + ["stores:informix.items"]
    assert rows[0]["row"] == BEFORE_JSON
    assert rows[4]["row"]["unit_price"] == "2.50"


def test_a_table_for_people_shows_an_update_as_one_line_of_what_changed(
    prices: ListeningServer,
) -> None:
    with tailing(prices, "--table=informix.prices", "--limit=3") as tail:
        change_prices(prices)
        output, _ = tail.communicate(timeout=patiently(20))
    inserted, updated, deleted = output.splitlines()
    assert "insert" in inserted
    assert "naïve" in inserted
    assert "amount=1234567890123456.78 → 0.10 note='naïve' → NULL" in updated
    assert "day=" not in updated
    assert "delete" in deleted


@pytest.mark.only_in_all
def test_rolled_back_rows_are_not_shown(prices: ListeningServer) -> None:
    with tailing(prices, "--table=informix.prices", "--format=json", "--limit=1") as tail:
        given_up = prices.server.begin()
        given_up.insert(PRICES, {**BEFORE, "note": "never"})
        given_up.rollback()
        change_prices(prices)
        output, _ = tail.communicate(timeout=patiently(20))
    assert json.loads(output)["row"] == BEFORE_JSON


@pytest.mark.only_in_all
def test_ctrl_c_ends_it_with_a_summary_and_closes_the_session(prices: ListeningServer) -> None:
    with tailing(prices, "--table=informix.prices") as tail:
        os.killpg(tail.pid, signal.SIGINT)
        _, errors = tail.communicate(timeout=patiently(10))
    assert tail.returncode == 0
    assert errors.splitlines()[-1].startswith("0 rows of 0 transactions in ")
    assert "Traceback" not in errors
    assert prices.server.sessions() == {}


@pytest.mark.only_in_all
def test_a_lost_connection_is_one_line_and_exit_code_1(prices: ListeningServer) -> None:
    with tailing(prices, "--table=informix.prices", "--max-reconnect-seconds=0") as tail:
        prices.stop()
        _, errors = tail.communicate(timeout=patiently(10))
    assert tail.returncode == 1
    assert "IFXCDC-0001" in errors
    assert "Traceback" not in errors


def test_a_reader_that_has_seen_enough_ends_it_without_a_traceback(prices: ListeningServer) -> None:
    with tailing(prices, "--table=informix.prices", "--format=json") as tail:
        assert tail.stdout is not None
        tail.stdout.close()
        change_prices(prices)
        tail.wait(timeout=patiently(10))
        assert tail.stderr is not None
        assert "Traceback" not in tail.stderr.read()


@pytest.mark.only_in_all
def test_a_truncate_is_shown_and_ends_nothing(prices: ListeningServer) -> None:
    with tailing(prices, "--table=informix.prices", "--format=json", "--limit=1") as tail:
        with prices.server.transaction() as transaction:
            transaction.truncate(PRICES)
        output, _ = tail.communicate(timeout=patiently(20))
    change = json.loads(output)
    assert (change["_change_type"], change["row"]) == ("truncate", None)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (2**53, 2**53),
        (2**53 + 1, str(2**53 + 1)),
        (float("nan"), "nan"),
        (timedelta(days=3, seconds=3661), "3 01:01:01"),
        (timedelta(microseconds=-1500000), "-0 00:00:01.5"),
        (True, True),
        (None, None),
        (b"\0\xff", "00ff"),
        ({"content": b"\0\xff", "size": 2}, {"content": "00ff", "size": 2}),
    ],
)
def test_json_writes_values_that_every_reader_can_take_back(value: object, written: object) -> None:
    change = ChangeRow("insert", "d:o.t", {"v": value}, {})
    assert json.loads(to_json(change))["row"] == {"v": written}


def test_a_line_cuts_long_values_and_leaves_nulls_out() -> None:
    change = ChangeRow("insert", "d:o.t", {"id": 1, "text": "x" * 500, "nothing": None}, {})
    ((_, line),) = as_lines([change])
    assert len(line.plain) < 80
    assert "nothing" not in line.plain
