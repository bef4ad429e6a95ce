"""`informix-cdc tail` asks before it changes a server; the emulator has nobody's tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from connector.commands.commands import refusal, run
from connector.commands.conftest import connection_arguments
from harness.runs.terminal import on_a_terminal
from harness.servers.stores import DATABASE, ORDERS, PASSWORD, SHORT_SECOND
from informix_cdc.commands.tail import is_of_emulator
from informix_cdc.options import PASSWORD_VARIABLE
from informix_emulator import EmulatedServer, ListeningServer, load_rows
from informix_emulator.poses import POSES

LIVE = "IBM Informix Dynamic Server Version 14.10.FC10"
ONE_ROW = ("--table=informix.orders", "--snapshot", "--limit=1", "--format=json")


@pytest.fixture
def live() -> Iterator[ListeningServer]:
    """A server that gives a version as a live one does, with one order."""
    server = EmulatedServer("informix", {"informix": PASSWORD}, timeout_seconds=SHORT_SECOND)
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    server.create_table(ORDERS, "order_num integer not null primary key")
    load_rows(server, ORDERS, [{"order_num": 1}])
    server.version = LIVE
    with ListeningServer(server) as listening:
        yield listening


def is_on(shop: ListeningServer) -> bool:
    return shop.server.table(ORDERS).full_row_logging


def on_terminal(shop: ListeningServer, typed: str) -> str:
    command = [sys.executable, "-m", "informix_cdc.commands.cli", "tail"]
    given = [*connection_arguments(shop), *ONE_ROW]
    return on_a_terminal([*command, *given], {PASSWORD_VARIABLE: PASSWORD}, 200, typed)


@pytest.mark.parametrize("pose", POSES)
def test_the_emulator_is_known_whatever_it_poses_as(pose: str) -> None:
    assert is_of_emulator(EmulatedServer("informix", {}, poses_as=pose).version)
    assert not is_of_emulator(LIVE)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_the_emulator_is_not_asked_about(live: ListeningServer) -> None:
    live.server.version = live.server.pose.version
    result = run(live, "tail", *ONE_ROW)
    assert result.exit_code == 0, result.output
    assert "Switch it on?" not in result.output


@pytest.mark.slow
def test_without_a_terminal_nothing_is_switched_on_and_the_flag_is_named(live: ListeningServer) -> None:
    result = run(live, "tail", *ONE_ROW)
    line = refusal(result, exit_code=2)
    assert "Full row logging of stores:informix.orders is off." in result.stderr
    assert "refuses ALTER TABLE until `informix-cdc release`" in result.stderr
    assert line.endswith("Give --yes to confirm in advance.")
    assert not is_on(live)


@pytest.mark.slow
def test_yes_says_so_in_advance(live: ListeningServer) -> None:
    result = run(live, "tail", *ONE_ROW, "--yes")
    assert result.exit_code == 0, result.output
    assert "Switch it on?" not in result.output
    assert is_on(live)


@pytest.mark.slow
def test_on_a_terminal_it_asks_and_a_no_changes_nothing(live: ListeningServer) -> None:
    shown = on_terminal(live, "n\n")
    assert "Switch it on? [y/N]:" in shown
    assert "Following" not in shown
    assert not is_on(live)


@pytest.mark.slow
def test_on_a_terminal_a_yes_goes_on(live: ListeningServer) -> None:
    shown = on_terminal(live, "y\n")
    assert "Switch it on? [y/N]:" in shown
    assert '"order_num": 1' in shown
    assert is_on(live)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_where_it_is_on_already_nothing_is_asked(live: ListeningServer) -> None:
    live.server.set_full_row_logging(ORDERS, on=True)
    result = run(live, "tail", *ONE_ROW)
    assert result.exit_code == 0, result.output
    assert "Switch it on?" not in result.output


def test_yes_and_no_switch_exclude_each_other(live: ListeningServer) -> None:
    result = run(live, "tail", *ONE_ROW, "--yes", "--no-switch")
    assert result.exit_code == 2
    assert "mutually exclusive" in result.stderr


def test_release_names_its_flag_where_nobody_can_be_asked(live: ListeningServer) -> None:
    live.server.set_full_row_logging(ORDERS, on=True)
    line = refusal(run(live, "release", "informix.orders", "--no-checkpoint"), exit_code=2)
    assert line.endswith("Give --yes to confirm in advance.")
    assert is_on(live)


def test_a_system_table_is_refused_as_such(live: ListeningServer) -> None:
    for table in ("informix.systables", "informix.syscolumns"):
        line = refusal(run(live, "tail", f"--table={table}"), exit_code=2)
        assert f"stores:{table} is a system table. System tables cannot be captured." in line
