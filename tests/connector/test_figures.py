"""Figures: declared once, and equal to the workload's own account, in the progress and on the port."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from connector.driving import (
    LIMIT,
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    next_offset,
    reader,
    wait_until,
)
from informix_cdc.capture_client.errors import BadOption
from informix_cdc.connector import metrics_server
from informix_cdc.connector.capture_state import CaptureState
from informix_cdc.connector.figures import COUNTER, FIGURES, PREFIX, progress_figures
from informix_cdc.connector.stream_reader import InformixStreamReader
from scraping import free_port, is_open, scraped, scraped_values
from stores import ORDERS, PASSWORD, Workload, order_row

KEYS_OF_OLD = {
    "openTransactions", "oldestOpenBegin", "openBytesInMemory", "openBytesSpilled", "spoolRows",
    "spoolBytes", "isPaused", "reconnects", "stalls", "dataLosses", "ignoredTruncates",
    "isCaughtUp", "transactions", "emptyTransactions", "rolledBackTransactions", "discardedRows",
    "unseenTransactions", "abandonedTransactions", "spilledTransactions", "spilledBytes",
}  # fmt: skip
UNITS = ("seconds", "bytes", "rows", "records", "transactions")


def figures_of(made: InformixStreamReader) -> dict[str, Any]:
    figures = made.reportLatestOffset()
    assert figures is not None
    return figures


# the declaration


def test_keys_of_the_progress_stay_what_they_were_and_are_each_used_once() -> None:
    keys = [figure.progress_key for figure in FIGURES]
    assert set(keys) >= KEYS_OF_OLD
    assert {"lagSeconds", "lagBytes", "headroomBytes"} <= set(keys)
    assert len(set(keys)) == len(keys)
    assert list(progress_figures(CaptureState())) == keys


def test_names_for_prometheus_keep_to_its_rules() -> None:
    names = [figure.metric for figure in FIGURES if figure.metric]
    assert len(set(names)) == len(names)
    for figure in FIGURES:
        if figure.metric:
            assert re.fullmatch(PREFIX + r"[a-z]+(_[a-z]+)*", figure.metric)
            assert figure.metric.endswith("_total") == (figure.kind == COUNTER)
    of_units = [name for name in names if any(unit in name for unit in UNITS)]
    assert all(name.removesuffix("_total").endswith(UNITS) for name in of_units)


# a stream


def test_counts_are_those_of_the_workload(served: Served) -> None:
    server, listening = served
    port = free_port()
    with reader(listening.port, metricsPort=str(port)) as made:
        anchor = anchor_of(made)
        work = Workload(server, seed=11)
        work.run(300)
        rows, end = drained(made, anchor, work.committed[-1].commit)
        made.latestOffset(end, LIMIT)  # Spark is done with all of it
        wait_until(lambda: figures_of(made)["rolledBackTransactions"] == work.rolled_back)
        shown, told = figures_of(made), scraped_values(port)
    assert work.rolled_back > 5
    assert work.savepoints_undone > 5
    assert len(rows) == len(work.changes())
    assert shown["rows"] == told["informix_cdc_rows_total"] == len(work.changes())
    assert shown["transactions"] == told["informix_cdc_transactions_total"] == len(work.committed)
    assert told["informix_cdc_rolled_back_transactions_total"] == work.rolled_back
    assert shown["discardedRows"] == told["informix_cdc_discarded_rows_total"] == work.rows_undone
    assert told["informix_cdc_open_transactions"] == 0
    assert told["informix_cdc_received_records_total"] > len(rows)
    assert told["informix_cdc_received_bytes_total"] > told["informix_cdc_received_records_total"]
    assert told["informix_cdc_reconnects_total"] == told["informix_cdc_data_losses_total"] == 0


def test_the_port_shows_what_the_progress_shows_with_server_database_and_tables(served: Served) -> None:
    server, listening = served
    port = free_port()
    with reader(listening.port, metricsPort=str(port)) as made:
        anchor = anchor_of(made)
        drained(made, anchor, insert(server, 1, 2))
        wait_until(lambda: figures_of(made)["lagBytes"] is not None)
        wait_until(lambda: figures_of(made)["timeouts"] > 0)
        families = scraped(port)
        shown = figures_of(made)
    for figure in FIGURES:
        if figure.metric is not None and shown[figure.progress_key] is not None:
            family = families[figure.metric.removesuffix("_total")]
            assert family.type == ("counter" if figure.kind == COUNTER else "gauge")
            assert family.documentation == figure.meaning
            (sample,) = family.samples
            assert sample.labels == {
                "server": "informix",
                "database": "stores",
                "tables": "stores:informix.orders",
            }
    assert PASSWORD not in str(families)
    assert "note" not in str([family.samples for family in families.values()])  # of an order


def test_rows_that_spark_has_not_taken_are_behind_and_then_no_longer(served: Served) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        commit = insert(server, 1)
        end = next_offset(made, anchor)
        assert end["commit"] == commit
        assert figures_of(made)["spoolAheadBytes"] == figures_of(made)["spoolBytes"] > 0
        made.latestOffset(end, LIMIT)
        assert figures_of(made)["spoolAheadBytes"] == 0
        wait_until(lambda: figures_of(made)["headroomBytes"] is not None)
        shown = figures_of(made)
    assert 0 < shown["headroomBytes"] <= shown["logBytes"]
    assert 0 <= shown["lagSeconds"] < 60


def test_the_oldest_open_transaction_has_an_age(served: Served) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        held = server.begin()
        held.insert(ORDERS, order_row((1, None, None, None)))
        wait_until(lambda: figures_of(made)["openTransactions"] == 1)
        shown = figures_of(made)
        assert shown["oldestOpenBegin"] == held.begin_sequence
        wait_until(lambda: figures_of(made)["oldestOpenSeconds"] > 0)
        drained(made, anchor, held.commit())
        wait_until(lambda: figures_of(made)["openTransactions"] == 0)
        assert figures_of(made)["oldestOpenSeconds"] == 0


# the port


@pytest.mark.fault(
    fault="the port of metricsPort is taken",
    outcome="waited for, for 5 s; then IFXCDC-0003 before anything is captured",
)
def test_a_port_that_is_taken_is_refused_before_anything_is_captured(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_server, "PORT_WAIT_SECONDS", 0.3)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with reader(served[1].port, metricsPort=str(port)) as made:
            reason = failure_of(lambda: anchor_of(made))
            assert made.reportLatestOffset() is None
    assert isinstance(reason, BadOption)
    assert f"nothing can listen on 127.0.0.1:{port}" in str(reason)
    assert "a port of its own" in str(reason)
    assert "\n" not in str(reason)
    assert not served[0].sessions()


def test_a_port_that_the_query_before_lets_go_of_is_waited_for(served: Served) -> None:
    port = free_port()
    with reader(served[1].port, metricsPort=str(port)) as first:
        anchor_of(first)
        wait_then = _in_background(first.stop)
        with reader(served[1].port, metricsPort=str(port)) as second:
            anchor_of(second)
            assert "informix_cdc_rows" in scraped(port)
        wait_then()


def _in_background(call: Callable[[], object]) -> Callable[[], None]:
    thread = threading.Timer(0.3, call)
    thread.start()
    return thread.join


def test_the_port_is_closed_when_the_query_ends(served: Served) -> None:
    port = free_port()
    with reader(served[1].port, metricsPort=str(port)) as made:
        anchor_of(made)
        assert scraped(port)
    assert not is_open(port)


def test_an_address_of_another_host_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "PORT_WAIT_SECONDS", 0.3)
    elsewhere = {"metricsPort": str(free_port()), "metricsHost": "192.0.2.1"}
    with reader(served[1].port, **elsewhere) as made:
        assert isinstance(failure_of(lambda: anchor_of(made)), BadOption)
