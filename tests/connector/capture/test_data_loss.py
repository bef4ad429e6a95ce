"""With onDataLoss=continue a lost stream goes on elsewhere: counted, told, nothing twice."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import (
    GOES_ON,
    LIMIT,
    Served,
    anchor_of,
    begun_and_stopped,
    drained,
    failure_of,
    figure,
    insert,
    jumped,
    next_offset,
    numbers,
    reader,
    rows_of,
)
from harness.capture.scraping import free_port, scraped_values
from harness.capture.told import told
from harness.runs.patience import patiently, wait_until
from harness.servers.stores import ORDER_COLUMNS, ORDERS, listening_stores, order_row
from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import show
from informix_cdc.capture import server_watch
from informix_cdc.capture.recovery import DataLossRecovery
from informix_cdc.capture.start import CaptureStart
from informix_checkpoints.spool import Spool


@pytest.fixture
def small_log() -> Iterator[Served]:
    with listening_stores(log_pages=4, log_count=3) as (server, listening):
        yield server, listening


def overwrite_the_log(served: Served) -> None:
    for _ in range(6):
        served[0].switch_log()


@pytest.mark.slow
@pytest.mark.fault(
    fault="the log the stream needs was overwritten; onDataLoss=continue",
    outcome="a new stream at the oldest log after an empty batch; told, counted; nothing twice",
)
@pytest.mark.only_in_all
def test_a_log_that_is_gone_is_left_and_the_stream_goes_on(
    small_log: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = small_log
    anchor = begun_and_stopped(listening.port)
    insert(server, 1)  # lost
    overwrite_the_log(small_log)
    second = insert(server, 2)
    with reader(listening.port, **GOES_ON) as made:
        start = jumped(made, anchor)
        rows, end = drained(made, start, second)
        more, _ = drained(made, end, insert(server, 3))
        assert figure(made, "dataLosses") == 1
    assert (numbers(rows), numbers(more)) == ([2], [3])
    (loss,) = told(caplog, "data_loss")
    assert (loss["stream"], loss["after"]) == (anchor["stream"], show(anchor["commit"]))
    assert loss["upto"] == show(start["restart"])
    assert "CDC_E_LSN" in loss["reason"]
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1


@pytest.mark.slow
@pytest.mark.fault(
    fault="transactions that began in the lost log commit after the jump",
    outcome="left out whole and counted",
)
@pytest.mark.only_in_all
def test_transactions_that_began_in_the_lost_log_are_counted_not_errors(small_log: Served) -> None:
    server, listening = small_log
    anchor = begun_and_stopped(listening.port)
    half_lost = server.begin()
    half_lost.insert(ORDERS, order_row((1, None, None, None)))
    server.log.may_drop = lambda _file: True  # a server without a long transaction high-water mark
    overwrite_the_log(small_log)
    half_lost.insert(ORDERS, order_row((2, None, None, None)))
    whole = insert(server, 3)
    with reader(listening.port, **GOES_ON) as made:
        start = jumped(made, anchor)
        assert start["unseen"] == [half_lost.id]
        rows, end = drained(made, start, whole)
        half_lost.commit()
        more, _ = drained(made, end, insert(server, 4))
        assert figure(made, "unseenTransactions") == 1
    assert (numbers(rows), numbers(more)) == ([3], [4])


@pytest.mark.slow
@pytest.mark.fault(
    fault="full row logging off between two runs; onDataLoss=continue",
    outcome="goes on at the old restart position; only what changed meanwhile is missing",
)
def test_row_logging_switched_off_in_between_loses_only_what_changed_meanwhile(served: Served) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
        delivered, middle = drained(first, anchor, insert(server, 1))
        insert(server, 2)  # captured in time, though not yet handed out
    server.set_full_row_logging(ORDERS, False)
    insert(server, 3)
    with reader(listening.port, **GOES_ON) as made:
        start = jumped(made, middle)
        rows, _ = drained(made, start, insert(server, 4))
    assert (numbers(delivered), numbers(rows)) == ([1], [2, 4])


@pytest.mark.fault(
    fault="full row logging off in mid-run",
    outcome="IFXCDC-0006 with table and position, after all rows before it",
)
@pytest.mark.only_in_all
def test_row_logging_switched_off_in_mid_run_ends_the_stream(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        rows, end = drained(made, anchor, insert(server, 1))
        server.set_full_row_logging(ORDERS, False)
        error = failure_of(lambda: next_offset(made, end))
    assert numbers(rows) == [1]
    assert isinstance(error, DataLoss)
    assert "full row logging of stores:informix.orders was switched off" in str(error)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_row_logging_switched_off_in_mid_run_is_switched_on_again_if_the_stream_may_go_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)
    server, listening = served
    with reader(listening.port, **GOES_ON) as made:
        anchor = anchor_of(made)
        rows, end = drained(made, anchor, insert(server, 1))
        server.set_full_row_logging(ORDERS, False)
        start = jumped(made, end)
        more, _ = drained(made, start, insert(server, 2))
    assert (numbers(rows), numbers(more)) == ([1], [2])


@pytest.mark.slow
@pytest.mark.fault(
    fault="table dropped and created again; onDataLoss=continue",
    outcome="a new stream of the new source",
)
@pytest.mark.only_in_all
def test_a_table_dropped_and_created_again_goes_on_as_another_source(served: Served) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
        insert(server, 1)
    server.set_full_row_logging(ORDERS, False)
    server.drop_table(ORDERS)
    server.create_table(ORDERS, ORDER_COLUMNS)
    with reader(listening.port, **GOES_ON) as made:
        start = jumped(made, anchor)
        assert start["source"] == anchor["source"]
        assert start["tables"] != anchor["tables"]
        rows, _ = drained(made, start, insert(server, 2))
    assert numbers(rows) == [2]


@pytest.mark.slow
@pytest.mark.fault(
    fault="the log is gone while the kept spool still holds rows",
    outcome="these rows first, then the jump",
)
@pytest.mark.only_in_all
def test_what_the_kept_spool_holds_is_handed_out_before_the_stream_is_left(
    small_log: Served, tmp_path: Path
) -> None:
    server, listening = small_log
    kept = {"spoolPath": str(tmp_path), "maxRowsPerTrigger": "1"}
    with reader(listening.port, **kept) as first:
        anchor = anchor_of(first)
        insert(server, 1)
        second = insert(server, 2)
        first.partitions(anchor, {**anchor, "commit": second})  # both are captured, none is committed
    overwrite_the_log(small_log)
    with reader(listening.port, **kept, **GOES_ON) as made:
        rows, middle = [], anchor
        while middle["commit"] < second:
            end = made.latestOffset(middle, made.getDefaultReadLimit())
            rows += rows_of(made, middle, end)
            middle = end
        assert numbers(rows) == [1, 2]
        start = jumped(made, middle)
        more, _ = drained(made, start, insert(server, 3))
    assert numbers(more) == [3]
    assert [folder.name for folder in tmp_path.iterdir()] == [start["stream"]]


@pytest.mark.fault(
    fault="a planned batch is asked for again when the log has moved on; spoolPath kept",
    outcome="the same rows from the spool",
)
@pytest.mark.only_in_all
def test_a_planned_batch_can_be_replayed_from_the_kept_spool_when_the_log_has_moved_on(
    small_log: Served, tmp_path: Path
) -> None:
    server, listening = small_log
    kept = {"spoolPath": str(tmp_path)}
    with reader(listening.port, **kept) as first:
        anchor = anchor_of(first)
        rows, end = drained(first, anchor, insert(server, 1))
    overwrite_the_log(small_log)
    with reader(listening.port, **kept) as second:
        assert rows_of(second, anchor, end) == rows
        assert isinstance(failure_of(lambda: next_offset(second, end)), DataLoss)


@pytest.mark.slow
@pytest.mark.fault(
    fault="a planned batch is asked for again when log and spool are gone",
    outcome="IFXCDC-0006; with onDataLoss=continue empty, told, and a jump",
)
@pytest.mark.only_in_all
def test_a_planned_batch_that_is_gone_ends_the_query_or_is_left_out_loudly(
    small_log: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = small_log
    with reader(listening.port) as first:
        anchor = anchor_of(first)
        _, end = drained(first, anchor, insert(server, 1))
    overwrite_the_log(small_log)
    with reader(listening.port) as second:
        assert isinstance(failure_of(lambda: rows_of(second, anchor, end)), DataLoss)
    port = free_port()
    with reader(listening.port, metricsAddress=str(port), **GOES_ON) as third:
        assert rows_of(third, anchor, end) == []
        (lost,) = told(caplog, "batch_lost")
        assert (lost["after"], lost["upto"]) == (show(anchor["commit"]), show(end["commit"]))
        assert scraped_values(port)["informix_cdc_data_losses_total"] == 1  # nothing is captured now
        start = jumped(third, end)
        rows, _ = drained(third, start, insert(server, 2))
        assert scraped_values(port)["informix_cdc_data_losses_total"] == 1
        assert len(told(caplog, "capture_failed")) == 1  # of the second reader, which ended
    assert numbers(rows) == [2]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_batch_that_leads_over_a_loss_is_empty_again_in_another_process(small_log: Served) -> None:
    server, listening = small_log
    anchor = begun_and_stopped(listening.port)
    overwrite_the_log(small_log)
    with reader(listening.port, **GOES_ON) as second:
        start = jumped(second, anchor)
    last = insert(server, 1)
    with reader(listening.port, **GOES_ON) as third:
        assert third.partitions(anchor, start) == []
        assert numbers(drained(third, start, last)[0]) == [1]
    with reader(listening.port) as strict:
        assert "two streams" in str(failure_of(lambda: strict.partitions(anchor, start)))


@pytest.mark.slow
@pytest.mark.only_in_all
def test_available_now_goes_over_a_loss_and_ends(small_log: Served) -> None:
    server, listening = small_log
    anchor = begun_and_stopped(listening.port)
    overwrite_the_log(small_log)
    insert(server, 1)
    with reader(listening.port, **GOES_ON) as made:
        made.prepareForTriggerAvailableNow()
        rows, start = [], anchor
        while (end := made.latestOffset(start, LIMIT)) != start:
            rows += rows_of(made, start, end)
            start = end
    assert numbers(rows) == [1]


@pytest.mark.slow
@pytest.mark.fault(
    fault="the server's log ends before the stream's position (restored server)",
    outcome="IFXCDC-0006; with onDataLoss=continue from its oldest log",
)
@pytest.mark.only_in_all
def test_a_server_that_was_set_up_anew_is_read_from_its_oldest_log(served: Served) -> None:
    """Its positions are lower than those of the checkpoint: they must not hide what is new."""
    server, listening = served
    server.set_full_row_logging(ORDERS, True)
    anchor = begun_and_stopped(listening.port)
    far = {**anchor, "commit": anchor["commit"] + (9 << 32), "restart": anchor["restart"] + (9 << 32)}
    last = insert(server, 1)
    with reader(listening.port, **GOES_ON) as made:
        start = jumped(made, far)
        assert numbers(drained(made, start, last)[0]) == [1]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_available_now_that_had_caught_up_goes_over_a_later_loss_to_the_new_streams_own_end(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end that was found in the old stream says nothing about the new one."""
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    last = insert(server, 1)
    with reader(listening.port, **GOES_ON) as made:
        made.prepareForTriggerAvailableNow()
        end = made.latestOffset(anchor, LIMIT)
        assert end["commit"] == last
        server.set_full_row_logging(ORDERS, False)
        insert(server, 2)
        start = jumped(made, end)
        assert figure(made, "dataLosses") == 1
        rows = []
        while (end := made.latestOffset(start, LIMIT)) != start:
            assert end["stream"] == start["stream"]
            rows += rows_of(made, start, end)
            start = end
    assert numbers(rows) == []


@pytest.mark.slow
def test_a_planned_batch_comes_before_the_loss_that_followed_it(served: Served) -> None:
    """Its rows were logged before row logging was switched off, so they are in the log."""
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
        rows, end = drained(first, anchor, insert(server, 1))
    server.set_full_row_logging(ORDERS, False)
    insert(server, 2)
    for _ in range(2):  # row logging stays off, so that every start sees it
        with reader(listening.port) as strict:
            assert "was switched off" in str(failure_of(lambda: rows_of(strict, anchor, end)))
    with reader(listening.port, **GOES_ON) as made:
        assert rows_of(made, anchor, end) == rows
        start = jumped(made, end)
        more, _ = drained(made, start, insert(server, 3))
    assert (numbers(rows), numbers(more)) == ([1], [3])


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_second_loss_does_not_touch_the_batch_that_is_being_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark had taken of the first stream, with higher positions, says nothing of the second."""
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)
    seen, leave = threading.Event(), DataLossRecovery.leave

    def leave_stream(recovery: DataLossRecovery, loss: DataLoss) -> Spool | None:
        if "row logging" in str(loss):
            seen.set()
        return leave(recovery, loss)

    monkeypatch.setattr(DataLossRecovery, "leave", leave_stream)
    server, listening = served
    server.set_full_row_logging(ORDERS, True)
    anchor = begun_and_stopped(listening.port)
    far = {**anchor, "commit": anchor["commit"] + (9 << 32), "restart": anchor["restart"] + (9 << 32)}
    options = {"maxSpoolBytes": "1", "maxLatencyMs": "0", **GOES_ON}
    with reader(listening.port, **options) as made:
        start = jumped(made, far)
        made.latestOffset(far, LIMIT)  # Spark asks again before the anchor is in its log
        insert(server, *range(5))  # one transaction: nothing behind `end` keeps the capture paused
        end = next_offset(made, start)
        wait_until(lambda: figure(made, "isPaused"))  # the bound counts for the new stream
        parts = made.partitions(start, end)
        server.set_full_row_logging(ORDERS, False)
        assert seen.wait(patiently(20))
        rows = [row for part in parts for batch in made.read(part) for row in batch.to_pylist()]
        while end["stream"] == start["stream"]:
            following = next_offset(made, end)
            rows += rows_of(made, end, following)
            end = following
        more, _ = drained(made, end, insert(server, 9))
    assert (numbers(rows), numbers(more)) == ([0, 1, 2, 3, 4], [9])


@pytest.mark.slow
def test_a_log_that_wraps_while_a_new_beginning_is_looked_for_is_looked_through_again(
    small_log: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening = small_log
    anchor = begun_and_stopped(listening.port)
    overwrite_the_log(small_log)
    look_back, wraps = CaptureStart._older_than, iter([True])

    def slowly(start: CaptureStart, place: int, catalog: Any) -> frozenset[int]:
        found = look_back(start, place, catalog)
        if next(wraps, False):
            overwrite_the_log(small_log)
        return found

    monkeypatch.setattr(CaptureStart, "_older_than", slowly)
    with reader(listening.port, **GOES_ON) as made:
        start = jumped(made, anchor)
        assert numbers(drained(made, start, insert(server, 1))[0]) == [1]
