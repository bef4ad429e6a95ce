"""A start that switches full row logging on says so in the log: the server is changed for good."""

from __future__ import annotations

import logging

import pytest

from harness.capture.driving import Served, anchor_of, reader
from harness.capture.told import told
from harness.servers.stores import ORDERS

EVENT = "row_logging_switched_on"


def test_a_first_start_tells_what_it_has_changed_and_what_undoes_it(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=False)
    with reader(listening.port) as made:
        anchor_of(made)
    assert told(caplog, EVENT) == [
        {
            "event": EVENT,
            "table": "stores:informix.orders",
            "remedy": "informix-cdc release informix.orders --host 127.0.0.1"
            f" --port {listening.port} --server informix --database stores --transport sqli"
            " --checkpoint PLACE",
        }
    ]
    (record,) = [each for each in caplog.records if EVENT in each.getMessage()]
    assert record.levelno == logging.WARNING  # shown by default


def test_many_tables_are_one_event(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    server, listening = served
    for number in range(5):
        server.create_table(f"stores:informix.many{number}", "id integer, primary key (id)")
    with reader(listening.port, table="informix.many*") as made:
        anchor_of(made)
    (event,) = told(caplog, EVENT)
    names = ", ".join(f"stores:informix.many{number}" for number in range(3))
    assert event["table"] == f"{names} and 2 more"
    assert event["remedy"].startswith("informix-cdc status --host 127.0.0.1")
    assert event["remedy"].endswith(" --row-logging")


@pytest.mark.only_in_all
def test_a_start_that_changes_nothing_tells_nothing(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=True)
    with reader(listening.port) as made:
        anchor_of(made)
    assert told(caplog, EVENT) == []


def test_the_heartbeat_table_is_told_too(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    server, listening = served
    server.create_table("stores:informix.beat", "id integer")
    server.set_full_row_logging(ORDERS, on=True)
    with reader(listening.port, heartbeatTable="informix.beat") as made:
        anchor_of(made)
    assert [each["table"] for each in told(caplog, EVENT)] == ["stores:informix.beat"]
