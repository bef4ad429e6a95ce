"""What ends a stream, what does not, and what was nearly lost: each once broken or feared."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from pyspark.sql.types import StructType

from harness.capture.driving import (
    LIMIT,
    NOT_STARTED,
    Served,
    anchor_of,
    begun_and_stopped,
    drained,
    failure_of,
    insert,
    next_offset,
    numbers,
    quiet_pair,
    reader,
    rows_of,
    state_of,
)
from harness.runs.patience import PATIENCE, patiently, wait_until
from harness.servers.stores import ORDERS, listening_stores, source_options
from informix_capture_client.errors import BadOption, ConnectionLost, DataLoss
from informix_capture_client.records.framing import PACKET_SCHEME
from informix_capture_client.records.records import RecordKind
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_cdc.options.source import SourceOptions
from informix_cdc.reading import next_offset as stream_progress
from informix_cdc.server import connections
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import EmulatedServer

pytestmark = pytest.mark.slow  # they wait for seconds of the server's clock


def test_row_logging_switched_off_between_two_runs_is_data_loss_not_a_silent_switch_on(
    served: Served,
) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    server.set_full_row_logging(ORDERS, False)
    with reader(listening.port) as second:
        error = failure_of(lambda: next_offset(second, anchor))
    assert isinstance(error, DataLoss)
    assert str(error).startswith(
        "IFXCDC-0006: full row logging of stores:informix.orders was switched off"
    )


@pytest.mark.only_in_all
def test_a_position_whose_log_has_been_overwritten_is_data_loss() -> None:
    with listening_stores(log_pages=4, log_count=3) as (server, listening):
        anchor = begun_and_stopped(listening.port)
        for _ in range(12):
            server.switch_log()
        with reader(listening.port) as second:
            error = failure_of(lambda: next_offset(second, anchor))
    assert isinstance(error, DataLoss)
    assert "CDC_E_LSN" in str(error)


@pytest.mark.only_in_all
def test_a_table_dropped_and_created_again_is_another_source(
    served: Served,
) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    server.set_full_row_logging(ORDERS, False)
    server.drop_table(ORDERS)
    server.create_table(ORDERS, "order_num serial, customer_num integer, note char(9), amount money")
    with reader(listening.port) as second:
        error = failure_of(lambda: next_offset(second, anchor))
    assert isinstance(error, DataLoss)
    assert anchor["tables"]["informix.orders"]["digest"] in str(error)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"commit": "x"},
        {"commit": -1},
        {"restart": 1.5},
        {"unseen": 3},
        {"stream": None},
    ],
    ids=str,
)
def test_an_offset_that_is_not_ours_is_refused_by_name(change: dict[str, object]) -> None:
    with reader(1) as made:
        error = failure_of(lambda: made.latestOffset({**NOT_STARTED, **change}, LIMIT))
    assert isinstance(error, BadOption)


@pytest.mark.only_in_all
def test_an_offset_of_another_stream_is_refused_and_both_are_named(
    served: Served,
) -> None:
    with reader(served[1].port) as made:
        anchor = anchor_of(made)
        other = {**anchor, "stream": "0123456789abcdef"}
        asked = failure_of(lambda: made.latestOffset(other, LIMIT))
        planned = failure_of(lambda: made.partitions(other, {**anchor, "commit": anchor["commit"] + 1}))
    for error in (asked, planned):
        assert isinstance(error, DataLoss)
        assert anchor["stream"] in str(error)
        assert "0123456789abcdef" in str(error)


@pytest.mark.only_in_all
def test_a_lost_connection_is_opened_again_and_nothing_is_lost_or_repeated(
    served: Served,
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        rows, middle = drained(made, anchor, insert(server, 1))
        listening.disconnect_all()
        more, _ = drained(made, middle, insert(server, 2))
        assert made.reportLatestOffset()["reconnects"] >= 1  # type: ignore[index]
    assert (numbers(rows), numbers(more)) == ([1], [2])


@pytest.mark.only_in_all
def test_a_killed_session_ends_the_stream_with_the_symbolic_name(
    served: Served,
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        server.inject_error_record(None, 0x1, "CDC_E_INTERNAL")
        error = failure_of(lambda: next_offset(made, anchor))
    assert "CDC_E_INTERNAL" in str(error)


def killed_once_more(made: InformixStreamReader, server: EmulatedServer) -> None:
    """Kill the session of a stream that stands still, and wait for the next one."""
    (killed,) = server.sessions()
    server.kill_session(killed)
    wait_until(lambda: [n for n, s in server.sessions().items() if n != killed and s.is_active])


@pytest.mark.fault(
    fault="the sessions of a quiet stream are killed, night after night",
    outcome="each is opened once more; only a second kill at once ends the query",
)
def test_kills_that_are_far_apart_end_no_quiet_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("informix_cdc.capture.thread._STEADY_SECONDS", 0.3)
    quiet = listening_stores(foreign_transactions=False)
    with quiet as (server, listening), reader(listening.port) as made:
        anchor = anchor_of(made)
        for _night in range(3):
            killed_once_more(made, server)
            then = state_of(made).gauges.contacts
            time.sleep(0.5 * PATIENCE)  # it serves for a while
            wait_until(lambda then=then: state_of(made).gauges.contacts > then)  # type: ignore[misc]
        rows, _ = drained(made, anchor, insert(server, 1))
    assert numbers(rows) == [1]


@pytest.mark.fault(
    fault="a read that does not return while a start in the past looks for older transactions",
    outcome="the connection is taken for dead; IFXCDC-0001 when that does not end",
)
def test_a_start_in_the_past_does_not_wait_for_a_read_that_never_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("informix_cdc.server.connections._SILENT_TIMEOUTS", 0)
    monkeypatch.setattr("informix_cdc.server.connections._SILENT_SECONDS", 0.3)
    transports = {"sqli": lambda settings, _seconds: SqliTransport(settings, None)}
    monkeypatch.setattr(connections, "_TRANSPORTS", transports)
    with listening_stores() as (server, listening):
        server.set_full_row_logging(ORDERS, True)
        insert(server, 1)
        server.make_log_unreadable(reads_return=False)
        options = {"startingPosition": "earliest", "maxReconnectSeconds": "1"}
        with reader(listening.port, **options) as made:
            error = failure_of(lambda: next_offset(made, made.initialOffset(), seconds=20))
        server.recover()
    assert isinstance(error, ConnectionLost)


def test_a_planned_quiet_pair_is_no_loss_after_a_reconnect(
    served: Served,
) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
        end = quiet_pair(first, server, anchor)
    with reader(listening.port) as second:
        assert rows_of(second, anchor, end) == []
        listening.disconnect_all()
        rows, _ = drained(second, end, insert(server, 1))
    assert numbers(rows) == [1]


@pytest.mark.only_in_all
def test_a_planned_quiet_pair_is_no_loss_when_the_kept_spool_is_beyond_it(
    served: Served, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_progress, "RESTART_PUBLICATION_SECONDS", 0.1)
    server, listening = served
    with reader(listening.port, spoolPath=str(tmp_path)) as first:
        anchor = anchor_of(first)
        _, middle = drained(first, anchor, insert(server, 1))
        end = quiet_pair(first, server, middle)
        quiet_pair(first, server, end)
        first.commit(middle)
    with reader(listening.port, spoolPath=str(tmp_path)) as second:
        assert rows_of(second, middle, end) == []
        rows, _ = drained(second, end, insert(server, 2))
    assert numbers(rows) == [2]


@pytest.mark.only_in_all
def test_available_now_takes_all_that_was_committed_before_it_under_load(
    served: Served,
) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    before = [insert(server, number) for number in range(300)][-1]
    stop = threading.Event()
    writer = threading.Thread(
        target=lambda: [(insert(server, 999), time.sleep(0.002)) for _ in iter(stop.is_set, True)]
    )
    writer.start()
    try:
        with reader(listening.port, stream__max_records_per_read=20) as made:
            made.prepareForTriggerAvailableNow()
            end = made.latestOffset(anchor, LIMIT)
    finally:
        stop.set()
        writer.join()
    assert end["commit"] >= before


@pytest.mark.only_in_all
def test_available_now_ends_beside_an_open_transaction_and_foreign_load(
    served: Served,
) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    server.begin()
    stop = threading.Event()
    writer = threading.Thread(
        target=lambda: [(server.begin().commit(), time.sleep(0.05)) for _ in iter(stop.is_set, True)]
    )
    writer.start()
    try:
        with reader(listening.port) as made:
            made.prepareForTriggerAvailableNow()
            begun = time.monotonic()
            made.latestOffset(anchor, LIMIT)
            assert time.monotonic() - begun < patiently(10)
    finally:
        stop.set()
        writer.join()


@pytest.mark.only_in_all
def test_a_restart_position_beyond_the_log_is_loss_not_silence(
    served: Served,
) -> None:
    _, listening = served
    anchor = begun_and_stopped(listening.port)
    beyond = {
        **anchor,
        "commit": anchor["commit"] + (5 << 32),
        "restart": anchor["restart"] + (5 << 32),
    }
    with reader(listening.port) as second:
        error = failure_of(lambda: next_offset(second, beyond))
    assert isinstance(error, DataLoss)
    assert "the server's log ends at" in str(error)


def test_rows_before_a_transaction_that_cannot_be_delivered_are_still_delivered(
    served: Served,
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        first = insert(server, 1)
        with server.transaction() as transaction:
            transaction.truncate(ORDERS)
        rows, end = drained(made, anchor, first)
        assert numbers(rows) == [1]
        error = failure_of(lambda: next_offset(made, end))
        assert numbers(rows_of(made, anchor, end)) == [1]
    assert "was truncated" in str(error)


def head_of(kind: RecordKind) -> bytes:
    return PACKET_SCHEME.to_bytes(4) + kind.to_bytes(4)


def test_an_error_is_told_before_the_read_in_flight_ends(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening = served
    is_refused, is_over, is_in_flight = threading.Event(), threading.Event(), threading.Event()
    read_on, seen = SqliTransport.lo_read, bytearray()

    def lo_read(transport: SqliTransport, session_id: int, max_bytes: int) -> memoryview:
        if is_refused.is_set():
            is_in_flight.set()
            is_over.wait(patiently(60))
            is_in_flight.clear()
        found = read_on(transport, session_id, max_bytes)
        seen.extend(found)
        if seen.count(head_of(RecordKind.TABSCHEMA)) > 1:  # the second one is refused
            is_refused.set()
        return found

    monkeypatch.setattr(SqliTransport, "lo_read", lo_read)
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        server.announce_as(None, ORDERS, "order_num serial, customer_num date")
        failure_of(lambda: [next_offset(made, anchor), next_offset(made, anchor)])
        assert is_in_flight.wait(patiently(5))
        is_over.set()


def test_a_declared_schema_that_is_not_the_tables_is_refused(
    served: Served,
) -> None:
    options = SourceOptions.parse(source_options(served[1].port))
    made = InformixStreamReader(options, StructType().add("nonsense", "integer"))
    try:
        error = failure_of(lambda: anchor_of(made))
    finally:
        made.stop()
    assert isinstance(error, BadOption)
    assert "declared schema" in str(error)


@pytest.mark.only_in_all
def test_a_spool_that_cannot_be_written_is_named_with_its_folder(served: Served, tmp_path: Any) -> None:
    (tmp_path / "file").write_text("in the way")
    with reader(served[1].port, spoolPath=str(tmp_path / "file")) as made:
        error = failure_of(lambda: anchor_of(made))
    assert f"the spool {tmp_path}/file" in str(error)


def test_a_stop_lets_nobody_wait_for_ever(served: Served) -> None:
    with reader(served[1].port) as made:
        anchor = anchor_of(made)
        threading.Timer(0.5, made.stop).start()
        error = failure_of(lambda: made.partitions(anchor, {**anchor, "commit": anchor["commit"] + 9}))
    assert "stopped" in str(error)


@pytest.mark.only_in_all
def test_a_silent_hour_does_not_count_against_the_time_for_reconnecting(
    served: Served,
) -> None:
    server, listening = served
    a_silent_hour = {"connection__read_timeout_seconds": 60, "maxReconnectSeconds": "1"}
    with reader(listening.port, **a_silent_hour) as made:
        threading.Timer(0.3, insert, [server, 1]).start()
        anchor = anchor_of(made)
        time.sleep(1.3)
        listening.disconnect_all()
        rows, _ = drained(made, anchor, insert(server, 2))
    assert 2 in numbers(rows)
