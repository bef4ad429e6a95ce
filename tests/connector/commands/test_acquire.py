"""`informix-cdc acquire`, and a table that is altered between release and acquire."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace
from typing import Any

import pytest

from connector.commands.commands import refusal, run
from connector.commands.stopped_queries import is_logged
from harness.capture.driving import (
    Served,
    foreign_traffic,
    insert,
)
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import (
    CUSTOMERS,
    DATABASE,
    ORDERS,
    PASSWORD,
)
from informix_capture_client.positions import parse
from informix_capture_client.session import set_full_row_logging
from informix_cdc.commands import acquire, row_logging


def test_acquire_switches_on_and_says_from_where_that_holds(served: Served) -> None:
    server, listening = served
    before = insert(server, 1)
    result = run(listening, "acquire", "informix.orders", "informix.customers")
    assert result.exit_code == 0
    assert is_logged(server)
    assert is_logged(server, CUSTOMERS)
    assert before >> 12 <= parse(result.stdout.strip()) >> 12
    assert parse(result.stdout.strip()) <= insert(server, 2)
    assert f'.option("startingPosition", "{result.stdout.strip()}")' in result.stderr


def test_what_was_changed_before_the_switch_lies_before_the_position_or_in_its_page(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening = served
    commits = []

    def switch_late(*arguments: Any, **named: Any) -> None:
        commits.append(insert(server, 1))
        set_full_row_logging(*arguments, **named)

    monkeypatch.setattr(row_logging, "set_full_row_logging", switch_late)
    result = run(listening, "acquire", "informix.orders")
    assert commits[0] >> 12 <= parse(result.stdout.strip()) >> 12  # or in the same page


def test_a_table_that_was_off_already_is_among_those_to_acquire(served: Served) -> None:
    server, listening = served
    server.set_full_row_logging(CUSTOMERS, on=True)
    result = run(
        listening, "release", "informix.orders", "informix.customers", "--no-checkpoint", "--yes"
    )
    assert "informix-cdc acquire informix.orders informix.customers" in result.stdout


def test_acquire_names_the_transactions_that_are_open_and_tables_that_were_on(served: Served) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=True)
    open_now = server.begin()
    with foreign_traffic(server):
        result = run(listening, "acquire", "informix.orders")
    told = re.search(r"Open transactions: (\d) \(ids ([\d, ]+)\)\.", result.stderr)
    assert told is not None
    ids = told[2].split(", ")
    assert str(open_now.id) in ids
    assert len(ids) == int(told[1]) <= 2  # the traffic has one open for a moment, or none
    assert "was already on. If it was off in between, that cannot be detected" in result.stderr


def test_a_table_that_does_not_exist_is_one_line(served: Served) -> None:
    _, listening = served
    for command in (["acquire"], ["release", "--no-checkpoint"]):
        line = refusal(run(listening, command[0], "informix.nothing", *command[1:]), exit_code=2)
        assert "informix.nothing does not exist" in line


def test_a_table_whose_in_place_alter_is_pending_is_awaited_and_not_left_switched(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening = served
    insert(server, 1)
    login = {"SERVER": "informix", "UID": "informix", "PWD": PASSWORD, "DB_LOCALE": "en_US.utf8"}
    server.set_full_row_logging(ORDERS, on=False)
    InProcessConnection(server, login, DATABASE).rows("ALTER TABLE informix.orders ADD (more INTEGER)")
    waits: list[float] = []

    def pause(seconds: float) -> None:
        assert not is_logged(server)
        assert not is_logged(server, CUSTOMERS)
        waits.append(seconds)
        if len(waits) == 2:
            server.finish_alter(ORDERS)

    monkeypatch.setattr(acquire, "time", SimpleNamespace(sleep=pause, monotonic=time.monotonic))
    result = run(listening, "acquire", "informix.customers", "informix.orders")
    assert result.exit_code == 0, result.output
    assert "stores:informix.orders failed: pending in-place alter (-83793)" in result.stderr
    assert "Full row logging of stores:informix.orders is off again." in result.stderr
    assert "EXECUTE FUNCTION sysadmin:task('table update_ipa', 'orders', 'stores')" in result.stderr
    assert result.stderr.count("Waiting until that is done.") == 1
    assert is_logged(server)
