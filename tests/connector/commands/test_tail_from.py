"""Where `informix-cdc tail` begins, and what it changes on the server: both are said."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest

from connector.commands.conftest import connection_arguments, start
from harness.runs.patience import patiently
from informix_capture_client.positions import show
from informix_emulator import ListeningServer
from informix_emulator.shop import ORDERS

pytestmark = pytest.mark.slow

TABLE = "--table=informix.orders"


def order(shop: ListeningServer, number: int) -> None:
    with shop.server.transaction() as transaction:
        transaction.insert(ORDERS, {"order_num": number})


def tail(shop: ListeningServer, *arguments: str) -> tuple[subprocess.Popen[str], list[int], str]:
    process = start("tail", *connection_arguments(shop), TABLE, "--format=json", *arguments)
    output, errors = process.communicate(timeout=patiently(20))
    return process, [json.loads(line)["row"]["order_num"] for line in output.splitlines()], errors


@pytest.mark.only_in_all
def test_tail_says_at_once_and_at_its_end_that_it_switched_full_row_logging_on(
    shop: ListeningServer,
) -> None:
    process = start("tail", *connection_arguments(shop), TABLE, "--limit=1", "--format=json")
    assert process.stderr is not None
    told = [process.stderr.readline()]
    while told[-1] and not told[-1].startswith("Following"):
        told.append(process.stderr.readline())
    order(shop, 1)
    _, errors = process.communicate(timeout=patiently(20))
    assert "Full row logging of stores:informix.orders was off and has been switched on" in told[0]
    assert "until `informix-cdc release` switches it off" in told[0]
    assert "remains on. The server refuses ALTER TABLE" in errors
    flags = [word for flag in connection_arguments(shop) for word in flag.split("=", 1)]
    release = f"informix-cdc release informix.orders {shlex.join(flags)} --no-checkpoint"
    assert [line.strip() for line in errors.splitlines()].count(release) == 1


@pytest.mark.only_in_all
def test_tail_says_nothing_where_full_row_logging_was_on(shop: ListeningServer) -> None:
    shop.server.set_full_row_logging(ORDERS, on=True)
    order(shop, 1)
    _, numbers, errors = tail(shop, "--from=earliest", "--limit=1")
    assert numbers == [1]
    assert "ALTER" not in errors
    assert "1 row of 1 transaction in" in errors


def test_tail_may_be_forbidden_to_switch_anything_on(shop: ListeningServer) -> None:
    process, _, errors = tail(shop, "--no-switch", "--limit=1")
    assert process.returncode == 2
    assert "full row logging of stores:informix.orders is off" in errors
    assert not shop.server.table(ORDERS).full_row_logging


@pytest.mark.only_in_all
def test_tail_begins_at_the_oldest_log_or_at_a_position(shop: ListeningServer) -> None:
    shop.server.set_full_row_logging(ORDERS, on=True)
    order(shop, 1)
    shop.server.switch_log()
    second = shop.server.begin()
    second.insert(ORDERS, {"order_num": 2})
    second.commit()
    _, numbers, errors = tail(shop, "--from=earliest", "--limit=2")
    assert numbers == [1, 2]
    assert "from the oldest log file on" in errors
    place = show(second.begin_sequence)
    _, numbers, errors = tail(shop, f"--from={place}", "--limit=1")
    assert numbers == [2]
    assert f"Following stores:informix.orders from {place} on." in errors


@pytest.mark.only_in_all
def test_tail_cannot_begin_in_a_past_that_has_no_full_rows(shop: ListeningServer) -> None:
    process, _, errors = tail(shop, "--from=earliest", "--limit=1")
    assert process.returncode == 2
    assert "full row logging of stores:informix.orders is off now" in errors


@pytest.mark.only_in_all
def test_a_place_that_is_none_is_refused_before_anything_is_connected(shop: ListeningServer) -> None:
    process, _, errors = tail(shop, "--from=yesterday")
    assert process.returncode == 2
    assert "must be latest, earliest, log:0xposition or one integer" in errors
