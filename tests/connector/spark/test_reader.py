"""The stream as Spark sees it: offsets, ranges, replay, quiet tables, AvailableNow."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

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
    restart_in_spool,
    rows_of,
)
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import (
    ORDERS,
    PASSWORD,
    Workload,
    listening_stores,
    order_row,
)
from informix_capture_client.errors import BadOption
from informix_cdc.reading import next_offset as stream_progress


def test_the_initial_offset_is_a_constant_that_opens_nothing() -> None:
    with reader(1) as made:
        assert made.initialOffset() == NOT_STARTED
        assert made.reportLatestOffset() is None


@pytest.mark.only_in_all
def test_offsets_have_a_fixed_order_of_keys(served: Served) -> None:
    with reader(served[1].port) as made:
        anchor = anchor_of(made)
        made_of = "version stream source commit restart unseen"
        assert " ".join(anchor) == f"{made_of} logged settling form tables chunk"
        end = next_offset(made, anchor) if insert(served[0], 1) else anchor
    assert " ".join(end) == f"{made_of} witness logged settling form tables chunk"


@pytest.mark.only_in_all
def test_the_first_batch_is_an_empty_anchor(served: Served) -> None:
    with reader(served[1].port) as made:
        anchor = anchor_of(made)
        assert anchor["stream"]
        assert made.partitions(NOT_STARTED, anchor) == []


@pytest.mark.only_in_all
def test_a_batch_0_planned_by_a_process_that_died_is_empty_again(
    served: Served,
) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    commit = insert(server, 1)
    with reader(listening.port) as second:
        assert second.partitions(second.initialOffset(), anchor) == []
        rows, _ = drained(second, anchor, commit)
    assert numbers(rows) == [1]


@pytest.mark.only_in_all
def test_nothing_new_is_answered_with_the_very_start(
    served: Served,
) -> None:
    with reader(served[1].port) as made:
        anchor = anchor_of(made)
        assert json.dumps(made.latestOffset(anchor, LIMIT)) == json.dumps(anchor)


@pytest.mark.only_in_all
def test_the_same_offsets_give_the_same_rows_in_another_process(
    served: Served,
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


@pytest.mark.only_in_all
def test_a_planned_batch_is_the_first_thing_a_new_process_is_asked_for_and_the_stream_goes_on(
    served: Served,
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


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_transaction_open_over_the_start_is_left_out_and_one_open_over_a_stop_is_delivered(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("informix_cdc.capture.pending.UNSEEN_WAIT_SECONDS", 0.2)
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


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["earliest", "a sequence number"])
@pytest.mark.only_in_all
def test_a_stream_may_begin_in_the_past(chosen: str, served: Served) -> None:
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


@pytest.mark.parametrize("chosen", ["earliest", "a sequence number"])
@pytest.mark.fault(
    fault="a start in the past where full row logging is off now",
    outcome="IFXCDC-0003, with the command that switches it on and prints a position to begin at",
)
@pytest.mark.only_in_all
def test_a_start_in_the_past_without_full_row_logging_is_refused_and_switches_nothing(
    chosen: str, served: Served
) -> None:
    server, listening = served
    place = str(server.position()) if chosen != "earliest" else chosen
    insert(server, 1)
    with reader(listening.port, startingPosition=place) as made:
        error = failure_of(lambda: anchor_of(made))
    assert isinstance(error, BadOption)
    assert "informix-cdc acquire informix.orders" in error.remedy
    assert not server.table(ORDERS).full_row_logging


@pytest.mark.parametrize("position", ["0:0x1", "4711:0x18"])
def test_a_start_that_the_log_does_not_have_is_refused(position: str, served: Served) -> None:
    served[0].set_full_row_logging(ORDERS, True)
    with reader(served[1].port, startingPosition=position) as made:
        error = failure_of(lambda: anchor_of(made))
    assert isinstance(error, BadOption)
    assert f"option 'startingPosition' is {position}" in str(error)


@pytest.mark.only_in_all
def test_commit_lets_go_of_rows_below_it_and_keeps_the_next_batch(
    served: Served,
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        _, middle = drained(made, anchor, insert(server, 1))
        _, end = drained(made, middle, insert(server, 2))
        made.commit(middle)
        assert made.reportLatestOffset()["spoolRows"] == 1  # type: ignore[index]
        assert numbers(rows_of(made, middle, end)) == [2]


@pytest.mark.only_in_all
def test_rows_survive_the_death_of_the_process_in_a_given_spool_path(
    served: Served, tmp_path: Any
) -> None:
    server, listening = served
    with reader(listening.port, spoolPath=str(tmp_path)) as first:
        anchor = anchor_of(first)
        _, end = drained(first, anchor, insert(server, 1))
    with reader(listening.port, spoolPath=str(tmp_path)) as second:
        assert numbers(rows_of(second, anchor, end)) == [1]
        assert second.reportLatestOffset()["transactions"] == 0  # type: ignore[index]
    assert [folder.name for folder in tmp_path.iterdir()] == [anchor["stream"]]


@pytest.mark.only_in_all
def test_the_private_spool_is_removed_when_the_query_ends(
    served: Served, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with reader(served[1].port) as made:
        anchor_of(made)
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_stop_closes_the_session_on_the_server(served: Served) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor_of(made)
        assert len(server.sessions()) == 1
    assert len(server.sessions()) == 0


def test_a_pickled_reader_is_small_holds_no_password_and_still_reads(
    served: Served,
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


@pytest.mark.only_in_all
def test_a_quiet_table_moves_the_restart_position_with_an_empty_batch(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_progress, "RESTART_PUBLICATION_SECONDS", 0.5)
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        end = quiet_pair(made, server, anchor)
        assert end["restart"] > anchor["restart"]
        assert made.partitions(anchor, end) == [] or rows_of(made, anchor, end) == []
    last = insert(server, 7)
    with reader(listening.port) as second:
        assert numbers(drained(second, end, last)[0]) == [7]


@pytest.mark.slow
def test_available_now_ends_after_what_was_committed_and_publishes_the_restart_position(
    served: Served,
) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    server.switch_log()
    commit = insert(server, 1)
    with reader(listening.port) as second:
        second.prepareForTriggerAvailableNow()
        end = second.latestOffset(anchor, LIMIT)
        assert end["commit"] == commit
        assert numbers(rows_of(second, anchor, end)) == [1]
        server.switch_log()
        server.begin().commit()  # it shows that what had ended before the run has been read
        wait_until(lambda: restart_in_spool(second) > end["restart"])
        closing = second.latestOffset(end, LIMIT)
        assert closing["restart"] > end["restart"]
        assert rows_of(second, end, closing) == []
        assert second.latestOffset(closing, LIMIT) == closing


@pytest.mark.parametrize("wait_to_fill", rest_in_all([False, True]))
def test_a_workload_arrives_in_order_over_restarts_at_every_batch(wait_to_fill: bool) -> None:
    with listening_stores(wait_to_fill=wait_to_fill) as (server, listening):
        offset = begun_and_stopped(listening.port)
        work = Workload(server, seed=11)
        rows: list[dict[str, Any]] = []
        for _ in range(4):
            work.run(60)
            with reader(
                listening.port, stream__max_records_per_read=7, stream__read_buffer_bytes=150
            ) as made:
                more, offset = drained(made, offset, work.committed[-1].commit)
                rows += more
    got = [
        (r["_change_type"], (r["order_num"], r["customer_num"], r["note"], r["amount"])) for r in rows
    ]
    assert got == work.changes()
