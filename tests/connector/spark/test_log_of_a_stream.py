"""What a stream logs of its life and its faults: one line for each, and never the value of a cell."""

from __future__ import annotations

import logging
import re
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from harness.capture.driving import (
    LIMIT,
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    next_offset,
    reader,
)
from harness.capture.scraping import free_port, scraped
from harness.capture.told import parsed, told
from harness.runs.patience import wait_until
from harness.servers.stores import (
    ORDERS,
    PASSWORD,
    listening_stores,
    order_row,
    source_options,
)
from informix_capture_client.log_events import EVENTS
from informix_capture_client.positions import show
from informix_cdc.options.source import SourceOptions
from informix_cdc.spark import reader as stream_reader
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import EmulatedServer

# Values that nothing else looks like, in every column of an order.
CELLS = ("733019", "611087", "wombat", "918273.64")


@pytest.fixture(autouse=True)
def loud(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "informix_cdc")


def insert_marked(server: EmulatedServer, times: int = 1) -> int:
    row = (int(CELLS[0]), int(CELLS[1]), f"{CELLS[2]} " * 3, Decimal(CELLS[3]))
    commit = 0
    for _ in range(times):
        transaction = server.begin()
        transaction.insert(ORDERS, order_row(row))
        mark = transaction.savepoint()
        transaction.update(ORDERS, order_row(row), order_row(row))
        transaction.rollback_to(mark)
        commit = transaction.commit()
    return commit


def test_a_stream_tells_where_it_begins_goes_on_and_why_it_ended(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        (begun,) = told(caplog, "stream_begun")
        assert begun["stream"] == anchor["stream"]
        assert begun["restart"] == show(anchor["restart"])
        assert told(caplog, "session_opened")[0]["tables"] == "stores:informix.orders"
        _, end = drained(made, anchor, insert(server, 1))
        listening.disconnect_all()
        _, end = drained(made, end, insert(server, 2))
        (lost,) = told(caplog, "connection_lost")
        assert (lost["stream"], lost["failures"]) == (anchor["stream"], "1")
        assert lost["reason"].startswith("IFXCDC-0001: ")
        assert len(told(caplog, "session_opened")) == 2
        server.announce_as(None, ORDERS, "order_num serial, customer_num date")
        failure = failure_of(lambda: [next_offset(made, end) for _ in range(2)])
        wait_until(lambda: told(caplog, "capture_failed"))
    (failed,) = told(caplog, "capture_failed")
    assert failed == {
        "event": "capture_failed",
        "stream": anchor["stream"],
        "code": failure.code,
        "reason": str(failure),
    }


def test_a_bug_is_told_with_its_lines_of_code_and_without_what_it_quotes(
    served: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_a_library(*_: object) -> None:
        raise KeyError(CELLS[0])

    def broken(*_: object) -> None:
        try:
            of_a_library()
        except KeyError as reason:
            raise ValueError(f"{CELLS[1]} is no number") from reason

    monkeypatch.setattr("informix_cdc.capture.run.describe_tables", broken)
    with reader(served[1].port) as made, pytest.raises(RuntimeError, match="this is a bug"):
        anchor_of(made)
    (failed,) = told(caplog, "capture_failed")
    assert failed["reason"] == "a bug: ValueError"
    lines = failed["traceback"].splitlines()
    assert lines[0] == "KeyError:"
    assert "ValueError:" in lines
    assert lines.index("ValueError:") < max(n for n, line in enumerate(lines) if ", in broken" in line)
    assert any(", in _run_connection" in line for line in lines)
    assert not [cell for cell in CELLS if cell in failed["traceback"]]
    (record,) = (r for r in caplog.records if getattr(r, "event", "") == "capture_failed")
    assert "\n" not in record.getMessage()


@pytest.mark.slow
def test_no_value_of_a_cell_and_no_password_is_logged_whatever_goes_wrong(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    port = free_port()
    watched = {"metricsAddress": str(port), "spoolPath": str(tmp_path)}
    with listening_stores(log_pages=8, log_count=4) as (server, listening):
        with reader(listening.port, maxSpoolBytes="1", maxLatencyMs="0", **watched) as made:
            anchor = anchor_of(made)
            insert_marked(server)
            end = next_offset(made, anchor)
            insert_marked(server, 3)
            wait_until(lambda: told(caplog, "reading_paused"))
            shown = str(scraped(port)) + str(made.reportLatestOffset())
            rows, end = drained(made, end, insert_marked(server))
            listening.disconnect_all()
            rows, end = drained(made, end, insert_marked(server))
        with reader(listening.port, onDataLoss="continue") as made:
            for _ in range(9):  # the log it needs is overwritten
                insert_marked(server)
                server.switch_log()
            while end["stream"] == anchor["stream"]:
                end = made.latestOffset(end, LIMIT)
            wait_until(lambda: told(caplog, "data_loss"))
            server.announce_as(None, ORDERS, "order_num serial, customer_num date")
            insert_marked(server)
            failure_of(lambda: _take_until_it_fails(made, end))
            wait_until(lambda: told(caplog, "capture_failed"))
    assert rows[0]["note"].startswith(CELLS[2])  # there was something to be found
    lines = [r.getMessage() for r in caplog.records if r.name.startswith("informix_cdc")]
    assert all(parsed(line)["event"] in EVENTS for line in lines)
    assert {parsed(line)["event"] for line in lines} >= {
        *("stream_begun", "session_opened", "connection_lost", "reading_paused"),
        *("reading_resumed", "data_loss", "capture_failed"),
    }
    everything = caplog.text + shown
    for secret in (*CELLS, PASSWORD):
        assert not re.search(rf"\b{re.escape(secret)}\b", everything)


def _take_until_it_fails(made: object, end: object) -> None:
    while True:
        end = next_offset(made, end)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_each_loss_and_each_reconnect_is_one_line(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        end = anchor_of(made)
        for number in range(1, 4):
            listening.disconnect_all()
            _, end = drained(made, end, insert(server, number))
        figures = made.reportLatestOffset() or {}
    assert len(told(caplog, "connection_lost")) == figures["reconnectAttempts"] >= 3
    assert figures["reconnects"] == 3


@pytest.mark.parametrize(("has_jar", "is_told"), [(False, True), (True, False)])
def test_a_runner_without_the_jar_says_what_needs_it(
    has_jar: bool, is_told: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stream_reader, "is_runner", lambda: True)
    monkeypatch.setattr(stream_reader, "log_to_standard_error", lambda _: None)
    options = SourceOptions.parse(source_options(1))
    InformixStreamReader(options, StructType(), has_jar=has_jar).log_who_reads()
    assert [line["requires_jar"] for line in told(caplog, "read_in_python")] == is_told * [
        "trigger(realTime), asyncProgressTrackingEnabled"
    ]
