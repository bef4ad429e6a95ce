"""A stream that does not move is noticed; a quiet one keeps its place in the log."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.capture.driving import (
    LIMIT,
    Offset,
    Served,
    anchor_of,
    begun_and_stopped,
    drained,
    failure_of,
    figure,
    foreign_traffic,
    insert,
    next_offset,
    numbers,
    reader,
    rows_of,
)
from harness.capture.told import told
from harness.runs.patience import PATIENCE, patiently, wait_until
from harness.servers.stores import CUSTOMERS, ORDERS, SHORT_SECOND, listening_stores, source_options
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
)
from informix_capture_client.positions import show
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_cdc.capture import server_watch
from informix_cdc.capture import thread as capture_thread
from informix_cdc.capture.start import CaptureStart
from informix_cdc.capture.thread import CaptureThread
from informix_cdc.options.source import SourceOptions
from informix_cdc.reading import next_offset as stream_progress
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.offsets import NOT_STARTED as STREAM_NOT_STARTED
from informix_checkpoints.spool.copies import SegmentCopies
from informix_emulator import EmulatedServer

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def watched_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)
    monkeypatch.setattr(stream_progress, "RESTART_PUBLICATION_SECONDS", 0.1)


@pytest.mark.fault(
    fault="TIMEOUT records only, while the server's log moves on",
    outcome="session opened once more, then a warning with both positions; rows go on when it mends",
)
def test_a_stalled_stream_is_opened_once_more_and_then_told(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    with reader(listening.port, stream__stalled_seconds=1) as made:
        anchor = anchor_of(made)
        server.silence(True)
        with foreign_traffic(server):
            wait_until(lambda: told(caplog, "stream_stalled"))
            wait_until(lambda: figure(made, "captureLagSeconds") > 1.5)  # TIMEOUTs come all the time
        assert figure(made, "isStalled") is True
        assert figure(made, "stalls") == 1
        assert figure(made, "reconnects") == 1
        server.silence(False)
        rows, _ = drained(made, anchor, insert(server, 1))
        wait_until(lambda: figure(made, "isStalled") is False)
        wait_until(lambda: figure(made, "captureLagSeconds") < 1.5)
    assert numbers(rows) == [1]
    (stalled,) = told(caplog, "stream_stalled")
    assert "only TIMEOUT records arrived for 1 s" in stalled["reason"]
    assert "A new session did not help" in stalled["reason"]
    assert len(told(caplog, "connection_lost")) == 1


@pytest.mark.only_in_all
def test_a_quiet_server_is_not_stalled(served: Served) -> None:
    _, listening = served
    with reader(listening.port, stream__stalled_seconds=1) as made:
        anchor = anchor_of(made)
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            anchor = made.latestOffset(anchor, LIMIT)
        assert figure(made, "stalls") == 0


@pytest.mark.fault(
    fault="a driver's read never returns, whatever its timeout",
    outcome="left to itself; reconnects; rows as committed, once, in order",
)
@pytest.mark.only_in_all
def test_a_read_that_never_returns_is_left_to_itself_and_the_stream_goes_on(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A driver that ignores its own timeout must not hang the query."""
    monkeypatch.setattr("informix_cdc.server.connections._SILENT_SECONDS", 0.5 * PATIENCE)
    monkeypatch.setattr("informix_cdc.server.connections._SILENT_TIMEOUTS", 0)
    server, listening = served
    stuck, release = threading.Event(), threading.Event()
    read_on = SqliTransport.lo_read

    def lo_read(transport: SqliTransport, session_id: int, max_bytes: int) -> memoryview:
        if stuck.is_set():
            stuck.clear()
            release.wait(patiently(60))
        return read_on(transport, session_id, max_bytes)

    monkeypatch.setattr(SqliTransport, "lo_read", lo_read)
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        stuck.set()
        last = insert(server, 1)
        wait_until(lambda: not stuck.is_set())
        rows, end = drained(made, anchor, max(last, insert(server, 2)))
        assert figure(made, "reconnects") == 1
        # Closing takes as long as a read may: it must not count as time of trying again.
        told_in_order = [record.getMessage().partition(" ")[0] for record in caplog.records]
        assert told_in_order.index("event=session_abandoned") < told_in_order.index(
            "event=connection_lost"
        )
        release.set()
        assert numbers(drained(made, end, insert(server, 3))[0]) == [3]
    assert numbers(rows) == [1, 2]


@pytest.mark.fault(
    fault="a session whose reads return no bytes, for ever",
    outcome="taken for dead as one whose reads do not return; reconnects; rows as committed",
)
@pytest.mark.only_in_all
def test_a_session_that_gives_no_bytes_for_ever_is_left(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("informix_cdc.server.connections._SILENT_SECONDS", 0.5 * PATIENCE)
    monkeypatch.setattr("informix_cdc.server.connections._SILENT_TIMEOUTS", 0)
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        server.answer_empty(None, 1 << 62)
        (session,) = server.sessions().values()
        wait_until(lambda: session.empty_reads < 1 << 62)  # the read in flight has come back
        rows, _ = drained(made, anchor, insert(server, 1))
        assert figure(made, "reconnects") == 1
    assert numbers(rows) == [1]
    (lost,) = told(caplog, "connection_lost")
    assert "but without any bytes" in lost["reason"]


def test_a_connection_that_is_silent_for_long_is_no_steady_one() -> None:
    """With a long read timeout a stream whose reads never return must be given up all the same."""
    capture = CaptureThread(SourceOptions.parse(source_options(1)), STREAM_NOT_STARTED)
    long_ago = time.monotonic() - 1000
    capture._tried_at = capture._failed_since = long_ago
    attempt = SimpleNamespace(outcome=None, attempt_number=9)
    capture.state.gauges.contacts, capture.state.gauges.contact_at = 1, long_ago + 900
    assert not capture._is_given_up(attempt)  # type: ignore[arg-type]
    capture._failed_since = long_ago
    capture.state.gauges.contacts, capture.state.gauges.contact_at = 2, long_ago + 1
    assert capture._is_given_up(attempt)  # type: ignore[arg-type]


@pytest.mark.only_in_all
def test_a_start_that_takes_long_is_not_taken_for_a_dead_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start in the past reads the log before its session says anything."""
    monkeypatch.setattr("informix_cdc.server.connections._SILENT_SECONDS", 0.5 * PATIENCE)
    monkeypatch.setattr("informix_cdc.server.connections._SILENT_TIMEOUTS", 0)
    look_back = CaptureStart._older_than

    def slowly(start: CaptureStart, place: int, catalog: Any) -> frozenset[int]:
        time.sleep(1.5 * PATIENCE)  # the guard's patience is twice the transport's
        return look_back(start, place, catalog)

    monkeypatch.setattr(CaptureStart, "_older_than", slowly)
    server, listening = served
    server.set_full_row_logging(ORDERS, True)
    last = insert(server, 1)
    with reader(listening.port, startingPosition="earliest") as made:
        assert numbers(drained(made, anchor_of(made), last)[0]) == [1]
        assert figure(made, "reconnects") == 0


@pytest.mark.fault(
    fault="the server stays away",
    outcome="the query fails after maxReconnectSeconds",
)
def test_reconnecting_ends_after_so_many_seconds(served: Served) -> None:
    _, listening = served
    with reader(listening.port, maxReconnectSeconds="1") as made:
        anchor = anchor_of(made)
        listening.__exit__(None, None, None)
        error = failure_of(lambda: next_offset(made, anchor, seconds=30))
        assert figure(made, "reconnects") == 1
        assert figure(made, "reconnectAttempts") >= 1
    assert isinstance(error, ConnectionLost) or error.is_temporary


@pytest.mark.fault(
    fault="the password was changed while the connection was lost",
    outcome="fails at once",
)
def test_a_permanent_error_ends_the_query_without_another_attempt(served: Served) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        server.users["informix"] = "changed"
        listening.disconnect_all()
        error = failure_of(lambda: next_offset(made, anchor, seconds=30))
        assert figure(made, "reconnects") == 1
    assert "IFXCDC-0002" in str(error)


@pytest.mark.only_in_all
def test_what_fails_on_its_way_into_the_spool_is_not_tried_for_ever(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes keep coming, so that the server is there; nothing gets any further."""
    monkeypatch.setattr(capture_thread, "_MOST_PAUSE_SECONDS", 0.2)

    def away(*_: object) -> None:
        raise AccessRefused("the place of copies is away", "Wait.", is_temporary=True)

    server, listening = served
    options = {"maxReconnectSeconds": "2", "segmentCopies": tmp_path.as_uri()}
    with reader(listening.port, **options) as made:
        anchor = anchor_of(made)
        monkeypatch.setattr(SegmentCopies, "put", away)
        insert(server, *range(3000))
        error = failure_of(lambda: next_offset(made, anchor, seconds=40))
        assert figure(made, "reconnects") == 1
        assert figure(made, "reconnectAttempts") > 1
    assert "the place of copies is away" in str(error)


@pytest.mark.only_in_all
def test_a_replay_bears_a_server_that_stands_still_for_a_moment(served: Served) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
        rows, end = drained(first, anchor, insert(server, 1))
    with reader(listening.port) as second:
        server.silence(True)
        threading.Timer(3 * SHORT_SECOND, server.silence, [False]).start()
        assert rows_of(second, anchor, end) == rows


# quiet tables


def pass_by(server: EmulatedServer, made: InformixStreamReader, start: Offset, logs: int) -> Offset:
    """Fill logs with what is not captured, and ask for offsets meanwhile."""
    for _ in range(logs):
        server.switch_log()
        server.begin().commit()
        end = made.latestOffset(start, LIMIT)
        deadline = time.monotonic() + patiently(10)
        while end == start and time.monotonic() < deadline:
            end = made.latestOffset(start, LIMIT)
        assert rows_of(made, start, end) == []
        start = end
    return start


@pytest.mark.fault(
    fault="log wrap while nothing captured changes",
    outcome="the restart position moves on; a restart loses nothing",
)
@pytest.mark.only_in_all
def test_a_quiet_table_keeps_its_place_over_a_log_wrap_with_foreign_traffic() -> None:
    with listening_stores(log_pages=4, log_count=4) as (server, listening):
        with reader(listening.port) as made:
            end = pass_by(server, made, anchor_of(made), logs=8)
        last = insert(server, 1)
        with reader(listening.port) as again:
            assert numbers(drained(again, end, last)[0]) == [1]


@pytest.mark.only_in_all
def test_a_quiet_table_keeps_its_place_by_timeouts_alone() -> None:
    """Foreign transactions are hidden; TIMEOUT records move with the log (assumption 7)."""
    with listening_stores(log_pages=4, log_count=4, foreign_transactions=False) as (server, listening):
        with reader(listening.port) as made:
            end = anchor_of(made)
            for _ in range(8):
                server.switch_log()
                server.begin().commit()
                end = next_offset(made, end)
        last = insert(server, 1)
        with reader(listening.port) as again:
            assert numbers(drained(again, end, last)[0]) == [1]


@pytest.mark.only_in_all
def test_few_empty_batches_are_published_for_a_quiet_table(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_progress, "RESTART_PUBLICATION_SECONDS", 120.0)
    server, listening = served
    with reader(listening.port) as made:
        start, published = anchor_of(made), 0
        deadline = time.monotonic() + 1
        with foreign_traffic(server):
            while time.monotonic() < deadline or not published:
                end = made.latestOffset(start, LIMIT)
                published += end != start
                start = end
    assert published == 1


@pytest.mark.fault(
    fault="a transaction stays open until the log is nearly full",
    outcome="a warning that names it",
)
def test_a_restart_position_about_to_be_overwritten_is_told_with_what_holds_it_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    big_log = listening_stores(log_pages=64, log_count=6)
    with big_log as (server, listening), reader(listening.port) as made:
        anchor = anchor_of(made)
        held = server.begin()
        held.insert(ORDERS, {"order_num": 1, "customer_num": None, "note": None, "amount": None})
        made.latestOffset(anchor, LIMIT)
        wait_until(lambda: figure(made, "openTransactions") == 1)
        for _ in range(5):
            server.switch_log()
        wait_until(lambda: told(caplog, "restart_position_late"))
        late = told(caplog, "restart_position_late")[0]
        assert late["held_by"] == show(held.begin_sequence)
        assert "will be overwritten soon" in late["reason"]
        assert "is still open" in late["reason"]
        rows, _ = drained(made, anchor, held.commit())
    assert numbers(rows) == [1]


# heartbeats


def beat(server: EmulatedServer) -> int:
    with server.transaction() as transaction:
        row = {"customer_num": 1, "name": "beat", "city": None}
        return transaction.insert(CUSTOMERS, row)


@pytest.mark.fault(
    fault="log wrap on a server that hides foreign transactions, with heartbeatTable",
    outcome="the restart position moves on; heartbeats are not delivered",
)
@pytest.mark.only_in_all
def test_heartbeats_move_the_restart_position_and_are_not_delivered() -> None:
    with listening_stores(log_pages=4, log_count=4, foreign_transactions=False) as (server, listening):
        options = {"heartbeatTable": "informix.customers"}
        with reader(listening.port, **options) as made:
            end = anchor_of(made)
            for _ in range(8):
                server.switch_log()
                beat(server)
                end = next_offset(made, end)
                assert figure(made, "transactions") == 0
        beat(server)
        last = insert(server, 1)
        with reader(listening.port, **options) as again:
            assert numbers(drained(again, end, last)[0]) == [1]


@pytest.mark.parametrize("shape", ["rows", "envelope", "json"])
def test_a_transaction_with_heartbeats_among_its_rows_is_delivered_without_them(
    shape: str, served: Served
) -> None:
    server, listening = served
    with reader(listening.port, heartbeatTable="informix.customers", shape=shape) as made:
        anchor = anchor_of(made)
        with server.transaction() as transaction:
            for number in (1, 2):
                transaction.insert(CUSTOMERS, {"customer_num": 1, "name": "beat", "city": None})
                row = {"order_num": number, "customer_num": None, "note": None, "amount": None}
                transaction.insert(ORDERS, row)
            transaction.truncate(CUSTOMERS)
        rows = rows_of(made, anchor, next_offset(made, anchor))
    assert len(rows) == 2


@pytest.mark.only_in_all
def test_a_stream_with_a_heartbeat_is_the_same_source_as_without(served: Served) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    with reader(listening.port, heartbeatTable="informix.customers") as second:
        assert numbers(drained(second, anchor, insert(server, 1))[0]) == [1]


@pytest.mark.parametrize(
    ("name", "text"),
    [("informix.orders", "is a captured table"), ("informix.b*", "is not owner.table")],
)
def test_a_heartbeat_table_that_makes_no_sense_is_refused(name: str, text: str) -> None:
    with pytest.raises(BadOption, match=text), reader(1, heartbeatTable=name):
        pass
