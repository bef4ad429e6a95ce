"""A stream that stands still or misses changes while the server answers: the watch finds out."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from harness.capture.driving import (
    anchor_of,
    drained,
    failure_of,
    foreign_traffic,
    insert,
    reader,
    rows_of,
)
from harness.capture.followed import Followed, Stores, account, followed, stores_behind_proxy
from harness.capture.told import told
from harness.runs.background import meanwhile
from harness.runs.moved_clock import MovedClock
from harness.runs.patience import PATIENCE, patiently, wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import ORDERS, Workload
from informix_capture_client.errors import ConnectionLost, DataLoss
from informix_capture_client.positions import parse, show
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_cdc.reading import next_offset

pytestmark = pytest.mark.slow

TRANSACTIONS = 60


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovedClock:
    """The time of the capture: these tests are about minutes of silence."""
    monkeypatch.setattr(next_offset, "LONG_POLL_SECONDS", 0.01)  # between two moves
    return MovedClock()


@pytest.mark.fault(
    fault="a stalled session: TIMEOUT records of one number while the log moves on; a new one reads on",
    outcome="the session is opened once more; rows as committed, once, in order",
)
def test_a_stall_that_a_new_session_cures_loses_nothing(clock: MovedClock) -> None:
    with (
        stores_behind_proxy(log_pages=8, timeout_seconds=0.02) as stores,
        followed(stores.proxy.port, clock=clock) as stream,
    ):
        workload = Workload(stores.server, seed=30)
        workload.run(TRANSACTIONS)
        stream.upto(workload.committed[-1].commit)
        stores.server.stall_session(None)
        while stream.figure("stalls") == 0:
            workload.run(3)
            stream.look()
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnects") == 1


@pytest.mark.fault(
    fault="full row logging switched off by force while the query runs",
    outcome="IFXCDC-0006 at the next look (every 15 s), after the rows that were logged",
)
def test_row_logging_switched_off_in_mid_run_is_data_loss(clock: MovedClock) -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port, clock=clock) as stream:
        workload = Workload(stores.server, seed=32)
        workload.run(TRANSACTIONS)
        before = account(workload)
        stores.server.set_full_row_logging(ORDERS, False)
        workload.run(TRANSACTIONS)
        error = stream.failure()
        assert stream.delivered == before
    assert isinstance(error, DataLoss)
    assert str(error).startswith(
        "IFXCDC-0006: full row logging of stores:informix.orders was switched off after 1:"
    )
    assert "new checkpoint" in str(error)


@pytest.mark.fault(
    fault="full row logging switched off by force and on again between two looks",
    outcome="NOT SEEN: what changed in between is not in the log, and nothing in the stream says so. A"
    " server refuses this while the table is captured (-19816)",
)
def test_row_logging_off_and_on_between_two_looks_cannot_be_seen() -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        with stores.server.log.changed:  # the watch cannot look in between
            stores.server.set_full_row_logging(ORDERS, False)
            insert(stores.server, 1)
            stores.server.set_full_row_logging(ORDERS, True)
        stream.upto(insert(stores.server, 2))
        assert [[order[0] for _, order in changes] for _, changes in stream.delivered] == [[2]]


# a log that no later session can read beyond a place


def reads_time_out(monkeypatch: pytest.MonkeyPatch, seconds: float | None) -> None:
    """Shorten what a socket waits, which no clock of ours moves."""
    transports = {"sqli": lambda settings, _seconds: SqliTransport(settings, seconds)}
    monkeypatch.setattr("informix_cdc.server.connections._TRANSPORTS", transports)


# The time that a session is given up in is real; what is moved meanwhile ends no query.
PATIENT = {"maxReconnectSeconds": "86400"}
MANNERS = ["TIMEOUT records only", "reads do not return", "reads do not return, nor time out"]


@dataclass
class Wall:
    """A stream that was caught up and stopped, before a log that cannot be read any further."""

    stores: Stores
    workload: Workload
    former: Followed
    place: int
    first_of_next_log: int = 0

    def goes_on(self) -> None:
        """Let changes be committed behind the wall, and more in the next log."""
        self.workload.run(5)
        self.first_of_next_log = self.stores.server.switch_log() << 32
        self.workload.run(5)


@contextmanager
def wall(manner: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wall]:
    reads_time_out(monkeypatch, None if "time out" in manner else PATIENCE)
    # A read that never returns is given up after this and the timeout of a read, together 0.1 s.
    monkeypatch.setattr("informix_cdc.capture.run.STOP_MARGIN_SECONDS", -0.9)
    with stores_behind_proxy(timeout_seconds=0.02) as stores:
        workload = Workload(stores.server, seed=33)
        with followed(stores.proxy.port) as stream:
            workload.run(5)
            stream.upto(workload.committed[-1].commit)
        stores.server.make_log_unreadable(reads_return="TIMEOUT" in manner)
        yield Wall(stores, workload, stream, stores.server.position())


@pytest.mark.fault(
    fault="a log that no session reads beyond a place, while the next one can be read (Informix 15):"
    " TIMEOUT records only, or reads that do not return; then the server is restarted",
    outcome="told with the place, the cause and what to do; after the restart rows as committed, once,"
    " in order",
)
@pytest.mark.parametrize("manner", rest_in_all(MANNERS))
@pytest.mark.only_in_all
def test_a_log_that_cannot_be_read_on_is_told_and_nothing_is_lost_once_the_server_was_restarted(
    manner: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    clock: MovedClock,
) -> None:
    with wall(manner, monkeypatch) as stuck:
        stuck.goes_on()
        with (
            followed(stuck.stores.proxy.port, stuck.former, clock=clock, **PATIENT) as stream,
            foreign_traffic(stuck.stores.server),
        ):
            wait_until(lambda: stream.look() or told(caplog, "log_unreadable"), seconds=15)
        line = told(caplog, "log_unreadable")[0]
        stuck.stores.listening.go_down()
        stuck.stores.listening.come_up()
        with followed(stuck.stores.proxy.port, stream) as again:
            again.upto(stuck.workload.committed[-1].commit)
            assert again.delivered == account(stuck.workload)
    assert parse(line["position"]) <= stuck.place
    assert f"cannot be read past {line['position']}" in line["reason"]
    assert f"can be read from {show(stuck.first_of_next_log)}" in line["reason"]
    for remedy in ("onmode -l", "restart the server", "Nothing is lost until the log wraps"):
        assert remedy in line["reason"]


@pytest.mark.fault(
    fault="the same, for longer than maxReconnectSeconds without an answer",
    outcome="IFXCDC-0001 with the place, the cause and what to do",
)
def test_a_log_that_cannot_be_read_on_ends_the_query_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, clock: MovedClock
) -> None:
    with wall(MANNERS[1], monkeypatch) as stuck:
        stuck.goes_on()
        options = {"maxReconnectSeconds": "60"}
        with followed(stuck.stores.proxy.port, stuck.former, clock=clock, **options) as stream:
            error = stream.failure(lambda: stuck.stores.server.begin().commit())
    assert isinstance(error, ConnectionLost)
    assert "the server's log cannot be read past 1:" in str(error)
    assert f"can be read from {show(stuck.first_of_next_log)}" in str(error)
    assert "onmode -l" in str(error)


@pytest.mark.fault(
    fault="the same with onDataLoss=continue",
    outcome="a new stream at the next log after an empty batch; told with the range, counted; nothing"
    " twice",
)
@pytest.mark.parametrize("manner", rest_in_all(MANNERS))
def test_a_log_that_cannot_be_read_on_is_left_for_the_next_one_and_the_range_is_named(
    manner: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    clock: MovedClock,
) -> None:
    options = {"onDataLoss": "continue", **PATIENT}
    with wall(manner, monkeypatch) as stuck:
        stuck.goes_on()
        caught_up = dict(stuck.former.offset)
        with followed(stuck.stores.proxy.port, stuck.former, clock=clock, **options) as stream:
            with foreign_traffic(stuck.stores.server):
                wait_until(lambda: stream.look() or stream.offset["stream"] != caught_up["stream"])
            stuck.workload.run(5)
            stream.upto(stuck.workload.committed[-1].commit)
            assert stream.figure("dataLosses") == 1
    assert stream.delivered == [
        (commit, changes)
        for commit, changes in account(stuck.workload)
        if commit <= caught_up["commit"] or commit >= stuck.first_of_next_log
    ]
    (loss,) = told(caplog, "data_loss")
    assert loss["upto"] == show(stuck.first_of_next_log)
    assert f"to {show(stuck.first_of_next_log)} is lost" in loss["reason"]


@pytest.mark.fault(
    fault="the same behind a batch that Spark has planned, whose rows the spool has lost",
    outcome="IFXCDC-0001 with what to do; with onDataLoss=continue empty, told, and a new stream",
)
def test_a_planned_batch_that_cannot_be_read_again_is_told_or_left_empty(
    caplog: pytest.LogCaptureFixture, clock: MovedClock
) -> None:
    with stores_behind_proxy(timeout_seconds=0.02) as stores:
        with reader(stores.proxy.port) as first:
            anchor = anchor_of(first)
            stores.server.make_log_unreadable()
            _, end = drained(first, anchor, insert(stores.server, 1))
        stores.server.switch_log()
        # Another session has to prove meanwhile that the next log can be read.
        with foreign_traffic(stores.server), meanwhile(lambda: clock.move(1), pause_seconds=0.03):
            with reader(stores.proxy.port, clock=clock) as strict:
                error = failure_of(lambda: rows_of(strict, anchor, end))
            with reader(stores.proxy.port, clock=clock, onDataLoss="continue") as made:
                assert rows_of(made, anchor, end) == []
        (lost,) = told(caplog, "batch_lost")
    assert isinstance(error, ConnectionLost)
    assert "cannot be read past" in str(error)
    assert "Nothing is lost until the log wraps" in str(error)
    assert (lost["after"], lost["upto"]) == (show(anchor["commit"]), show(end["commit"]))


def test_a_quiet_table_of_a_server_that_hides_foreign_transactions_is_not_left_for_the_next_log(
    caplog: pytest.LogCaptureFixture, clock: MovedClock
) -> None:
    options = {"onDataLoss": "continue"}
    with (
        stores_behind_proxy(timeout_seconds=0.02, foreign_transactions=False) as stores,
        followed(stores.proxy.port, clock=clock, **options) as stream,
    ):
        stream.upto(insert(stores.server, 1))
        stores.server.silence(True)  # the numbers of its TIMEOUTs stand still as well
        stores.server.switch_log()
        with foreign_traffic(stores.server):
            wait_until(lambda: stream.look() or told(caplog, "stream_stalled"))
            stores.server.switch_log()
            wait_until(lambda: stream.look() or len(told(caplog, "stream_stalled")) == 2)
        stores.server.silence(False)
        stream.upto(insert(stores.server, 2))
        assert stream.figure("dataLosses") == 0
        assert [order[0] for _, changes in stream.delivered for _, order in changes] == [1, 2]
    assert not told(caplog, "log_unreadable")


@pytest.mark.fault(
    fault="the query is stopped while a read does not return, nor times out",
    outcome="it ends in bounded time; the reading thread does not hold the process",
)
def test_a_stop_does_not_wait_for_a_read_that_never_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    with wall(MANNERS[2], monkeypatch) as stuck:
        monkeypatch.setattr("informix_cdc.server.connections._SILENT_SECONDS", 3600.0)
        stuck.goes_on()
        with followed(stuck.stores.proxy.port, stuck.former) as stream:
            wait_until(lambda: stream.look() or stuck.stores.server.sessions())
            assert stream.figure("rows") == 0  # figures ask no server
            begun_at = time.monotonic()
        took_seconds = time.monotonic() - begun_at
    assert took_seconds < patiently(10)
    assert all(thread.daemon for thread in threading.enumerate() if "reader" in thread.name)
