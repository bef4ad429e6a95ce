"""Figures: declared once, and equal to the workload's own account, in the progress and on the port."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import pytest

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
from harness.capture.scraping import (
    free_port,
    is_open,
    scraped,
    scraped_values,
)
from harness.runs.moved_clock import MovedClock
from harness.runs.patience import wait_until
from harness.servers.stores import (
    ORDERS,
    PASSWORD,
    Workload,
    order_row,
)
from informix_capture_client.catalog.log_space import LogFile, LogSpace
from informix_capture_client.errors import BadOption
from informix_capture_client.positions import Position, log_page, show
from informix_capture_client.stream import Read
from informix_capture_client.transactions import TransactionAssembler
from informix_cdc.capture import Gauges
from informix_cdc.capture.liveness import LogFacts
from informix_cdc.capture.state import CaptureState
from informix_cdc.monitoring import prometheus
from informix_cdc.monitoring.figures import (
    COUNTER,
    FIGURES,
    PREFIX,
    progress_figures,
    read_figures,
)
from informix_cdc.monitoring.metrics_port import open_port
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.readers import ReaderState

KEYS_OF_OLD = {
    "openTransactions", "oldestOpenBegin", "openBytesInMemory", "openBytesSpilled", "spoolRows",
    "spoolBytes", "isPaused", "reconnects", "stalls", "dataLosses", "truncates",
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


@pytest.mark.slow
@pytest.mark.only_in_all
def test_counts_are_those_of_the_workload(served: Served) -> None:
    server, listening = served
    port = free_port()
    with reader(listening.port, metricsAddress=str(port)) as made:
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


@pytest.mark.only_in_all
def test_the_port_shows_what_the_progress_shows_with_server_database_and_tables(served: Served) -> None:
    server, listening = served
    port = free_port()
    with reader(listening.port, metricsAddress=str(port)) as made:
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


@pytest.mark.only_in_all
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


@pytest.mark.only_in_all
def test_the_oldest_open_transaction_has_an_age(served: Served) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        held = server.begin()
        held.insert(ORDERS, order_row((1, None, None, None)))
        wait_until(lambda: figures_of(made)["openTransactions"] == 1)
        shown = figures_of(made)
        assert shown["oldestOpenBegin"] == show(held.begin_sequence)
        wait_until(lambda: figures_of(made)["oldestOpenSeconds"] > 0)
        drained(made, anchor, held.commit())
        wait_until(lambda: figures_of(made)["openTransactions"] == 0)
        assert figures_of(made)["oldestOpenSeconds"] == 0


@pytest.mark.slow
@pytest.mark.only_in_all
def test_what_is_read_again_after_a_reconnect_is_counted_once(served: Served) -> None:
    """An open transaction holds the restart position back, so that all after it comes again."""
    server, listening = served
    with reader(listening.port) as made:
        end = anchor_of(made)
        held = server.begin()
        held.insert(ORDERS, order_row((1, None, None, None)))
        savepoint = held.savepoint()
        held.insert(ORDERS, order_row((2, None, None, None)))
        held.rollback_to(savepoint)
        undone = server.begin()
        undone.insert(ORDERS, order_row((3, None, None, None)))
        undone.rollback()
        for number in (4, 5):
            _, end = drained(made, end, insert(server, number))
            listening.disconnect_all()
        _, end = drained(made, end, held.commit())
        shown = figures_of(made)
    assert shown["reconnects"] == 2
    assert (shown["rolledBackTransactions"], shown["discardedRows"]) == (1, 1)


# values, without a stream

AT_END = log_page(7, 40)
SPACE = LogSpace((LogFile(7, 100 * 2048, 40 * 2048, is_current=True),), 0, 2048)


class Watched:
    """A watch whose server has answered once."""

    def __init__(self, asked_at: float) -> None:
        self.facts = LogFacts(asked_at, AT_END, log_page(7, 0), server_clock=5000, space=SPACE)

    def close(self) -> None:
        """Nothing is open."""


def shown_at(state: CaptureState, now: float, monotonic: float) -> dict[str, Any]:
    state.clock = MovedClock(monotonic)
    values = read_figures(state, lambda: now)
    return {figure.name: value for figure, value in values.items()}


def test_a_timeout_says_that_the_log_was_read_to_its_end_just_then() -> None:
    state = CaptureState(gauges=Gauges(reached=AT_END, latest_time=900))
    assert shown_at(state, 1000.0, 0.0)["lag_seconds"] == 100.0
    state.counters.received.timeouts += 1
    read = Read([], AT_END, 900, TransactionAssembler(Position(0, 0)))
    before = time.time()
    state.record(read)
    assert 0 <= shown_at(state, time.time(), 0.0)["lag_seconds"] <= time.time() - before
    state.record(read)  # a row
    assert shown_at(state, 1000.0, 0.0)["lag_seconds"] == 100.0


@pytest.mark.parametrize(("age", "is_known"), [(59, True), (61, False)])
def test_what_the_server_said_of_its_log_a_minute_ago_is_not_shown(age: float, is_known: bool) -> None:
    state = CaptureState(
        gauges=Gauges(reached=AT_END),
        reader=ReaderState(name="", taken=Position(0, AT_END)),
        watch=Watched(asked_at=100.0),
    )
    shown = shown_at(state, 1000.0, 100.0 + age)
    for name in ("headroom_bytes", "log_bytes", "capture_lag_bytes"):
        assert (shown[name] is not None) is is_known


def test_a_stalled_stream_is_behind_since_it_moved_last_whatever_timeouts_say() -> None:
    gauges = Gauges(reached=log_page(7, 2), heard_at=999.0)
    state = CaptureState(gauges=gauges, watch=Watched(asked_at=100.0))
    assert shown_at(state, 1000.0, 101.0)["capture_lag_seconds"] == 1.0
    gauges.stalled_since = 41.0
    shown = shown_at(state, 1000.0, 101.0)
    assert (shown["capture_lag_seconds"], shown["lag_seconds"]) == (60.0, 60.0)
    assert shown["stalled"] is True


def test_another_capture_of_the_query_counts_on() -> None:
    state = CaptureState()
    for number, figure in enumerate(FIGURES, start=1):
        if figure.kind == COUNTER:
            owner, _, name = figure.source.rpartition(".")
            setattr(attrgetter(owner)(state), name, number)
    before, after = shown_at(state, 1000.0, 0.0), shown_at(state.successor(), 1000.0, 0.0)
    counters = [figure.name for figure in FIGURES if figure.kind == COUNTER]
    assert {name: after[name] for name in counters} == {name: before[name] for name in counters}
    assert all(after[name] > 0 for name in counters)


class Leaving(CaptureState):
    """The capture thread leaves the spool between two looks of another thread."""

    looks = 0

    @property  # type: ignore[override]
    def spool(self) -> Any:
        self.looks += 1
        there = Position(4, 4)
        held = SimpleNamespace(end=there, high_watermark=there, row_count=1, size_bytes=2)
        spool = SimpleNamespace(stream="s", manifest=held, bytes_above=lambda _: 3)
        return spool if self.looks % 2 else None

    @spool.setter
    def spool(self, _: object) -> None:
        pass


@pytest.mark.parametrize("name", ["stream", "spool_rows", "spool_bytes", "bytes_ahead", "taken_up_to"])
def test_a_spool_that_is_left_while_it_is_asked_for_breaks_nothing(name: str) -> None:
    state = Leaving()
    found = getattr(state, name)
    if callable(found):
        found()
    assert state.looks == 1


# the port


@pytest.mark.fault(
    fault="the port of metricsAddress is taken",
    outcome="waited for, for 5 s; then IFXCDC-0003 before anything is captured",
)
def test_a_port_that_is_taken_is_refused_before_anything_is_captured(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "PORT_WAIT_SECONDS", 0.3)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with reader(served[1].port, metricsAddress=str(port)) as made:
            reason = failure_of(lambda: anchor_of(made))
            assert made.reportLatestOffset() is None
    assert isinstance(reason, BadOption)
    assert f"cannot listen on 127.0.0.1:{port}" in str(reason)
    assert "a separate port" in str(reason)
    assert "\n" not in str(reason)
    assert not served[0].sessions()


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_port_that_the_query_before_lets_go_of_is_waited_for(served: Served) -> None:
    port = free_port()
    with reader(served[1].port, metricsAddress=str(port)) as first:
        anchor_of(first)
        wait_then = _in_background(first.stop)
        with reader(served[1].port, metricsAddress=str(port)) as second:
            anchor_of(second)
            assert "informix_cdc_rows" in scraped(port)
        wait_then()


def _in_background(call: Callable[[], object]) -> Callable[[], None]:
    thread = threading.Timer(0.3, call)
    thread.start()
    return thread.join


@pytest.mark.only_in_all
def test_the_port_is_closed_when_the_query_ends(served: Served) -> None:
    port = free_port()
    with reader(served[1].port, metricsAddress=str(port)) as made:
        anchor_of(made)
        assert scraped(port)
    assert not is_open(port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host"])
def test_an_address_of_another_host_is_refused_at_once_by_its_name(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = []

    def counted(*given: Any) -> Any:
        attempts.append(given)
        return open_port(*given)

    monkeypatch.setattr(prometheus, "open_port", counted)
    with pytest.raises(BadOption, match="option 'metricsAddress': cannot listen on") as caught:
        prometheus.MetricsServer(host, free_port(), {}, lambda: None)
    assert len(attempts) == 1
    assert "Use an address of this host" in str(caught.value)
