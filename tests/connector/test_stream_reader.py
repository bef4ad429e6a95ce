"""The reader that Spark drives, driven by hand: offsets, ranges, replay, and what ends a stream."""

from __future__ import annotations

import json
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from informix_cdc.capture_client.emulator import EmulatedServer, ListeningServer
from informix_cdc.capture_client.errors import AccessRefused, BadOption, DataLoss, InformixCdcError
from informix_cdc.connector import stream_reader
from informix_cdc.connector.options import SourceOptions
from informix_cdc.connector.source_tables import look_up_tables
from informix_cdc.connector.spark_schema import to_spark
from informix_cdc.connector.stream_reader import InformixStreamReader
from stores import ORDERS, PASSWORD, Workload, listening_stores, order_row, source_options

Offset = Mapping[str, Any]
LIMIT = ReadAllAvailable()
NOT_STARTED = {"version": 1, "stream": "", "source": "", "commit": 0, "restart": 0, "unseen": []}


@pytest.fixture
def served() -> Iterator[tuple[EmulatedServer, ListeningServer]]:
    with listening_stores() as (server, listening):
        yield server, listening


@contextmanager
def reader(port: int, **changes: str) -> Iterator[InformixStreamReader]:
    """A reader as a new process of Spark's would have it."""
    options = SourceOptions.parse(source_options(port, **changes))
    try:
        schema = to_spark(look_up_tables(options).schema())
    except AccessRefused:  # a test that does not get as far as a connection
        schema = StructType()
    made = InformixStreamReader(options, schema)
    try:
        yield made
    finally:
        made.stop()


def anchor_of(made: InformixStreamReader) -> Offset:
    return made.latestOffset(made.initialOffset(), LIMIT)


def next_offset(made: InformixStreamReader, start: Offset, seconds: float = 10) -> Offset:
    """Ask as Spark does until there is something new."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (end := made.latestOffset(start, LIMIT)) != start:
            return end
    raise AssertionError(f"nothing new after {start}")


def rows_of(made: InformixStreamReader, start: Offset, end: Offset) -> list[dict[str, Any]]:
    batches = [batch for part in made.partitions(start, end) for batch in made.read(part)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def drained(
    made: InformixStreamReader, start: Offset, upto: int
) -> tuple[list[dict[str, Any]], Offset]:
    rows: list[dict[str, Any]] = []
    while start["commit"] < upto:
        end = next_offset(made, start)
        rows += rows_of(made, start, end)
        start = end
    return rows, start


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [row["order_num"] for row in rows]


def insert(server: EmulatedServer, *orders: int) -> int:
    transaction = server.begin()
    for number in orders:
        transaction.insert(ORDERS, order_row((number, 1, "note", None)))
    return transaction.commit()


def test_the_initial_offset_is_a_constant_that_opens_nothing() -> None:
    with reader(1) as made:
        assert made.initialOffset() == NOT_STARTED
        assert made.reportLatestOffset() is None


def test_offsets_have_a_fixed_order_of_keys(served: tuple[EmulatedServer, ListeningServer]) -> None:
    with reader(served[1].port) as made:
        assert list(anchor_of(made)) == ["version", "stream", "source", "commit", "restart", "unseen"]


def test_the_first_batch_is_an_empty_anchor(served: tuple[EmulatedServer, ListeningServer]) -> None:
    with reader(served[1].port) as made:
        anchor = anchor_of(made)
        assert anchor["stream"]
        assert made.partitions(NOT_STARTED, anchor) == []


def test_a_batch_0_planned_by_a_process_that_died_is_empty_again(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
    commit = insert(server, 1)
    with reader(listening.port) as second:
        assert second.partitions(second.initialOffset(), anchor) == []
        rows, _ = drained(second, anchor, commit)
    assert numbers(rows) == [1]


def test_nothing_new_is_answered_with_the_very_start(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    with reader(served[1].port) as made:
        anchor = anchor_of(made)
        assert json.dumps(made.latestOffset(anchor, LIMIT)) == json.dumps(anchor)


def test_the_same_offsets_give_the_same_rows_in_another_process(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
        commit = insert(server, 1, 2)
        insert(server, 3)
        _, end = drained(first, anchor, commit)
        rows = rows_of(first, anchor, end)
        assert rows == rows_of(first, anchor, end)
    with reader(listening.port) as second:
        assert rows_of(second, anchor, end) == rows


def test_a_planned_batch_is_the_first_thing_a_new_process_is_asked_for_and_the_stream_goes_on(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
        _, end = drained(first, anchor, insert(server, 1))
    last = insert(server, 2)
    with reader(listening.port) as second:
        assert numbers(rows_of(second, anchor, end)) == [1]
        rows, _ = drained(second, end, last)
    assert numbers(rows) == [2]


def test_a_transaction_open_over_the_start_is_left_out_and_one_open_over_a_stop_is_delivered(
    served: tuple[EmulatedServer, ListeningServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("informix_cdc.connector.capture_loop.UNSEEN_WAIT_SECONDS", 0.2)
    server, listening = served
    older = server.begin()
    older.insert(ORDERS, order_row((1, None, None, None)))
    with reader(listening.port) as first:
        anchor = anchor_of(first)
        assert anchor["unseen"] == [older.id]
        over_stop = server.begin()
        over_stop.insert(ORDERS, order_row((2, None, None, None)))
        rows, end = drained(first, anchor, insert(server, 3))
    older.insert(ORDERS, order_row((4, None, None, None)))
    older.commit()
    over_stop.insert(ORDERS, order_row((5, None, None, None)))
    last = over_stop.commit()
    with reader(listening.port) as second:
        more, final = drained(second, end, last)
        assert second.reportLatestOffset() is not None
        assert second.reportLatestOffset()["unseenTransactions"] == 1  # type: ignore[index]
    assert (numbers(rows), numbers(more)) == ([3], [2, 5])
    assert final["unseen"] == []


@pytest.mark.parametrize("chosen", ["earliest", "a sequence number"])
def test_a_stream_may_begin_in_the_past(
    chosen: str, served: tuple[EmulatedServer, ListeningServer]
) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, True)
    older = server.begin()
    older.insert(ORDERS, order_row((0, None, None, None)))
    place = server.position() if chosen != "earliest" else None
    first, last = insert(server, 1), insert(server, 2)
    older.commit()
    with reader(listening.port, startingPosition=chosen if place is None else str(place)) as made:
        anchor = anchor_of(made)
        rows, end = drained(made, anchor, last)
    assert anchor["commit"] < first
    assert numbers(rows) == ([1, 2, 0] if place is None else [1, 2])
    with reader(listening.port) as again:
        assert numbers(rows_of(again, anchor, end)) == numbers(rows)


@pytest.mark.parametrize("position", ["0:0x1", "4711:0x18"])
def test_a_start_that_the_log_does_not_have_is_refused(
    position: str, served: tuple[EmulatedServer, ListeningServer]
) -> None:
    with reader(served[1].port, startingPosition=position) as made:
        error = failure_of(lambda: anchor_of(made))
    assert isinstance(error, BadOption)
    assert f"option 'startingPosition' is {position}" in str(error)


def test_commit_lets_go_of_rows_below_it_and_keeps_the_next_batch(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        _, middle = drained(made, anchor, insert(server, 1))
        _, end = drained(made, middle, insert(server, 2))
        made.commit(middle)
        assert made.reportLatestOffset()["spoolRows"] == 1  # type: ignore[index]
        assert numbers(rows_of(made, middle, end)) == [2]


def test_rows_survive_the_death_of_the_process_in_a_given_spool_path(
    served: tuple[EmulatedServer, ListeningServer], tmp_path: Any
) -> None:
    server, listening = served
    with reader(listening.port, spoolPath=str(tmp_path)) as first:
        anchor = anchor_of(first)
        _, end = drained(first, anchor, insert(server, 1))
    with reader(listening.port, spoolPath=str(tmp_path)) as second:
        assert numbers(rows_of(second, anchor, end)) == [1]
        assert second.reportLatestOffset()["transactions"] == 0  # type: ignore[index]
    assert [folder.name for folder in tmp_path.iterdir()] == [anchor["stream"]]


def test_the_private_spool_is_removed_when_the_query_ends(
    served: tuple[EmulatedServer, ListeningServer], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with reader(served[1].port) as made:
        anchor_of(made)
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_stop_closes_the_session_on_the_server(served: tuple[EmulatedServer, ListeningServer]) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor_of(made)
        assert len(server.sessions()) == 1
    assert len(server.sessions()) == 0


def test_a_pickled_reader_is_small_holds_no_password_and_still_reads(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        _, end = drained(made, anchor, insert(server, 1))
        pickled = pickle.dumps(made)
        parts = pickle.loads(pickle.dumps(made.partitions(anchor, end)))
        assert PASSWORD.encode() not in pickled
        assert len(pickled) < 4096
        copied = pickle.loads(pickled)
        assert [batch.num_rows for part in parts for batch in copied.read(part)] == [1]


def test_a_quiet_table_moves_the_restart_position_with_an_empty_batch(
    served: tuple[EmulatedServer, ListeningServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "RESTART_PUBLICATION_SECONDS", 0.5)
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        server.begin().commit()
        end = next_offset(made, anchor)
        assert end["restart"] > anchor["restart"]
        assert made.partitions(anchor, end) == [] or rows_of(made, anchor, end) == []
    last = insert(server, 7)
    with reader(listening.port) as second:
        assert numbers(drained(second, end, last)[0]) == [7]


def test_available_now_ends_after_what_was_committed_and_publishes_the_restart_position(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
    commit = insert(server, 1)
    server.begin().commit()
    with reader(listening.port) as second:
        second.prepareForTriggerAvailableNow()
        end = second.latestOffset(anchor, LIMIT)
        assert end["commit"] == commit
        assert numbers(rows_of(second, anchor, end)) == [1]
        insert(server, 2)
        closing = second.latestOffset(end, LIMIT)
        assert closing["restart"] > end["restart"]
        assert rows_of(second, end, closing) == []
        assert second.latestOffset(closing, LIMIT) == closing


def failure_of(ask: Callable[[], object]) -> InformixCdcError:
    with pytest.raises(InformixCdcError) as caught:
        ask()
    return caught.value


def test_row_logging_switched_off_between_two_runs_is_data_loss_not_a_silent_switch_on(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
    server.set_full_row_logging(ORDERS, False)
    with reader(listening.port) as second:
        error = failure_of(lambda: next_offset(second, anchor))
    assert isinstance(error, DataLoss)
    assert str(error).startswith(
        "IFXCDC-0006: full row logging of stores:informix.orders was switched off"
    )


def test_a_position_whose_log_has_been_overwritten_is_data_loss() -> None:
    with listening_stores(log_pages=4, log_count=3) as (server, listening):
        with reader(listening.port) as first:
            anchor = anchor_of(first)
        for _ in range(12):
            server.switch_log()
        with reader(listening.port) as second:
            error = failure_of(lambda: next_offset(second, anchor))
    assert isinstance(error, DataLoss)
    assert "CDC_E_LSN" in str(error)


def test_a_table_dropped_and_created_again_is_another_source(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
    server.set_full_row_logging(ORDERS, False)
    server.drop_table(ORDERS)
    server.create_table(ORDERS, "order_num serial, customer_num integer, note char(9), amount money")
    with reader(listening.port) as second:
        error = failure_of(lambda: next_offset(second, anchor))
    assert isinstance(error, DataLoss)
    assert anchor["source"] in str(error)


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


def test_an_offset_of_another_stream_is_refused_and_both_are_named(
    served: tuple[EmulatedServer, ListeningServer],
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


def test_a_lost_connection_is_opened_again_and_nothing_is_lost_or_repeated(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        rows, middle = drained(made, anchor, insert(server, 1))
        listening.disconnect_all()
        more, _ = drained(made, middle, insert(server, 2))
        assert made.reportLatestOffset()["reconnects"] >= 1  # type: ignore[index]
    assert (numbers(rows), numbers(more)) == ([1], [2])


def test_a_killed_session_ends_the_stream_with_the_symbolic_name(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        server.inject_error_record(None, 0x1, "CDC_E_INTERNAL")
        error = failure_of(lambda: next_offset(made, anchor))
    assert "CDC_E_INTERNAL" in str(error)


@pytest.mark.parametrize("wait_to_fill", [False, True])
def test_a_workload_arrives_in_order_over_restarts_at_every_batch(wait_to_fill: bool) -> None:
    with listening_stores(wait_to_fill=wait_to_fill) as (server, listening):
        with reader(listening.port) as first:
            offset = anchor_of(first)
        work = Workload(server, seed=11)
        rows: list[dict[str, Any]] = []
        for _ in range(4):
            work.run(60)
            with reader(listening.port, maxRecordsPerRead="7", readBufferBytes="150") as made:
                more, offset = drained(made, offset, work.committed[-1].commit)
                rows += more
    got = [
        (r["_change_type"], (r["order_num"], r["customer_num"], r["note"], r["amount"])) for r in rows
    ]
    assert got == work.changes()


def quiet_pair(made: InformixStreamReader, server: EmulatedServer, start: Offset) -> Offset:
    """Let a transaction without captured rows go by, and return the pair that it moves."""
    server.begin().commit()
    return next_offset(made, start)


def test_a_planned_quiet_pair_is_no_loss_after_a_reconnect(
    served: tuple[EmulatedServer, ListeningServer],
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


def test_a_planned_quiet_pair_is_no_loss_when_the_kept_spool_is_beyond_it(
    served: tuple[EmulatedServer, ListeningServer], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "RESTART_PUBLICATION_SECONDS", 0.1)
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


def test_available_now_takes_all_that_was_committed_before_it_under_load(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
    before = [insert(server, number) for number in range(300)][-1]
    stop = threading.Event()
    writer = threading.Thread(
        target=lambda: [(insert(server, 999), time.sleep(0.002)) for _ in iter(stop.is_set, True)]
    )
    writer.start()
    try:
        with reader(listening.port, maxRecordsPerRead="20") as made:
            made.prepareForTriggerAvailableNow()
            end = made.latestOffset(anchor, LIMIT)
    finally:
        stop.set()
        writer.join()
    assert end["commit"] >= before


def test_available_now_ends_beside_an_open_transaction_and_foreign_load(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
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
            assert time.monotonic() - begun < 10
    finally:
        stop.set()
        writer.join()


def test_a_restart_position_beyond_the_log_is_loss_not_silence(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    _, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
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
    served: tuple[EmulatedServer, ListeningServer],
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


def test_an_error_is_told_before_the_read_in_flight_ends(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    server, listening = served
    with reader(listening.port, readTimeoutSeconds="6") as made:
        offset = made.initialOffset()
        threading.Timer(1, insert, [server, 1]).start()
        anchor = made.latestOffset(offset, LIMIT)
        with server.transaction() as transaction:
            transaction.truncate(ORDERS)
        begun = time.monotonic()
        failure_of(lambda: [next_offset(made, anchor), next_offset(made, anchor)])
        assert time.monotonic() - begun < 5


def test_a_declared_schema_that_is_not_the_tables_is_refused(
    served: tuple[EmulatedServer, ListeningServer],
) -> None:
    options = SourceOptions.parse(source_options(served[1].port))
    made = InformixStreamReader(options, StructType().add("nonsense", "integer"))
    try:
        error = failure_of(lambda: anchor_of(made))
    finally:
        made.stop()
    assert isinstance(error, BadOption)
    assert "declared schema" in str(error)


def test_a_spool_that_cannot_be_written_is_named_with_its_folder(
    served: tuple[EmulatedServer, ListeningServer], tmp_path: Any
) -> None:
    (tmp_path / "file").write_text("in the way")
    with reader(served[1].port, spoolPath=str(tmp_path / "file")) as made:
        error = failure_of(lambda: anchor_of(made))
    assert f"the spool {tmp_path}/file" in str(error)


def test_a_stop_lets_nobody_wait_for_ever(served: tuple[EmulatedServer, ListeningServer]) -> None:
    with reader(served[1].port) as made:
        anchor = anchor_of(made)
        threading.Timer(0.5, made.stop).start()
        error = failure_of(lambda: made.partitions(anchor, {**anchor, "commit": anchor["commit"] + 9}))
    assert "stopped" in str(error)


def test_a_silent_hour_does_not_count_against_the_time_for_reconnecting(
    served: tuple[EmulatedServer, ListeningServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("informix_cdc.connector.capture_thread.RECONNECT_SECONDS", 2.0)
    server, listening = served
    with reader(listening.port, readTimeoutSeconds="6") as made:
        threading.Timer(1, insert, [server, 1]).start()
        anchor = made.latestOffset(made.initialOffset(), LIMIT)
        time.sleep(3)
        listening.disconnect_all()
        rows, _ = drained(made, anchor, insert(server, 2))
    assert 2 in numbers(rows)
