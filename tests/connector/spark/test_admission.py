"""How much a micro-batch takes, when AvailableNow ends, and what a full spool does."""

from __future__ import annotations

import logging
import time

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from harness.capture.driving import (
    Offset,
    Served,
    anchor_of,
    begun_and_stopped,
    drained,
    insert,
    next_offset,
    numbers,
    reader,
    rows_of,
)
from harness.capture.told import told
from harness.runs.background import meanwhile
from harness.runs.patience import patiently
from harness.servers.stores import ORDERS, listening_stores, order_row
from informix_cdc.spark.reader import InformixStreamReader


def limit_of(made: InformixStreamReader) -> ReadLimit:
    return made.getDefaultReadLimit()


def batches(made: InformixStreamReader, start: Offset, upto: int) -> list[list[int]]:
    """The order numbers of each batch that Spark would run."""
    limit, found = limit_of(made), []
    deadline = time.monotonic() + patiently(20)
    while start["commit"] < upto and time.monotonic() < deadline:
        end = made.latestOffset(start, limit)
        if end["commit"] != start["commit"]:
            found.append(numbers(rows_of(made, start, end)))
        start = end
    return found


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadMaxRows((1 << 63) - 1)),
        ({"maxRowsPerTrigger": "7"}, ReadMaxRows(7)),
        ({"maxBytesPerTrigger": "1m"}, ReadMaxRows((1 << 63) - 1)),
        ({"maxBytesPerTrigger": "1m", "maxRowsPerTrigger": "9"}, ReadMaxRows(9)),
    ],
    ids=str,
)
def test_spark_is_told_one_limit_and_never_to_take_everything(
    options: dict[str, str], limit: ReadLimit
) -> None:
    with reader(1, **options) as made:
        assert limit_of(made) == limit


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[1, 2, 3, 4, 5, 6, 7]]),
        ({"maxRowsPerTrigger": "3"}, [[1, 2, 3], [4, 5, 6], [7]]),
        ({"maxRowsPerTrigger": "2"}, [[1, 2], [3], [4, 5, 6], [7]]),
        ({"maxBytesPerTrigger": "1"}, [[1, 2], [3], [4, 5, 6], [7]]),
        ({"maxRowsPerTrigger": "6", "maxBytesPerTrigger": "1"}, [[1, 2], [3], [4, 5, 6], [7]]),
    ],
    ids=str,
)
@pytest.mark.only_in_all
def test_batches_end_between_transactions_at_the_first_limit_reached(
    options: dict[str, str], expected: list[list[int]], served: Served
) -> None:
    """A transaction larger than a limit goes alone. All four lie in one segment."""
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    for orders in ((1, 2), (3,), (4, 5, 6)):
        insert(server, *orders)
    last = insert(server, 7)
    with reader(listening.port, maxLatencyMs="500", **options) as made:
        rows_of(made, anchor, {**anchor, "commit": last})  # let all of it be captured first
        assert batches(made, anchor, last) == expected


def test_a_smaller_limit_of_spark_s_is_that_of_a_range_in_real_time_mode(served: Served) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    for orders in ((1, 2), (3,), (4, 5, 6)):
        last = insert(server, *orders)
    with reader(listening.port, maxLatencyMs="500", maxRowsPerTrigger="100") as made:
        rows_of(made, anchor, {**anchor, "commit": last})
        end = made.latestOffset(anchor, ReadMaxRows(4))
        assert numbers(rows_of(made, anchor, end)) == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_trigger_once_waits_for_everything_that_was_committed_before_whatever_the_limits(
    served: Served,
) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    for number in range(300):
        insert(server, number)
    with reader(listening.port, maxRowsPerTrigger="1", stream__max_records_per_read=7) as made:
        end = made.latestOffset(anchor, ReadAllAvailable())
        assert numbers(rows_of(made, anchor, end)) == list(range(300))


@pytest.mark.slow
@pytest.mark.parametrize("keeps_spool", [False, True])
@pytest.mark.only_in_all
def test_a_batch_that_ended_within_a_segment_is_gone_on_from_by_another_process(
    keeps_spool: bool, served: Served, tmp_path: object
) -> None:
    server, listening = served
    kept = {"spoolPath": str(tmp_path)} if keeps_spool else {}
    anchor = begun_and_stopped(listening.port)
    open_over_all = server.begin()
    open_over_all.insert(ORDERS, order_row((9, None, None, None)))
    for number in (1, 2, 3):
        last = insert(server, number)
    with reader(listening.port, maxRowsPerTrigger="1", maxLatencyMs="500", **kept) as made:
        rows_of(made, anchor, {**anchor, "commit": last})
        middle = made.latestOffset(anchor, limit_of(made))
        assert numbers(rows_of(made, anchor, middle)) == [1]
    last = open_over_all.commit()
    with reader(listening.port, **kept) as again:
        assert numbers(rows_of(again, anchor, middle)) == [1]
        assert numbers(drained(again, middle, last)[0]) == [2, 3, 9]


# AvailableNow


def available_now(made: InformixStreamReader, start: Offset) -> tuple[list[list[int]], Offset]:
    """Run to the end as Spark does: until an offset is answered with itself."""
    made.prepareForTriggerAvailableNow()
    found = []
    while (end := made.latestOffset(start, limit_of(made))) != start:
        found.append(numbers(rows_of(made, start, end)))
        start = end
    return found, start


@pytest.mark.slow
@pytest.mark.only_in_all
def test_available_now_keeps_to_the_limits_and_ends(served: Served) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    for number in range(10):
        insert(server, number)
    with reader(listening.port, maxRowsPerTrigger="3") as made:
        found, _ = available_now(made, anchor)
    assert [number for batch in found for number in batch] == list(range(10))
    assert all(len(batch) <= 3 for batch in found)


@pytest.mark.slow
@pytest.mark.fault(
    fault="AvailableNow under constant load",
    outcome="ends; everything committed before the call, within the limits",
)
@pytest.mark.only_in_all
def test_available_now_ends_under_constant_load_with_limits(served: Served) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    for number in range(50):
        insert(server, number)
    with meanwhile(lambda: insert(server, 999)), reader(listening.port, maxRowsPerTrigger="20") as made:
        found, _ = available_now(made, anchor)
    delivered = [number for batch in found for number in batch]
    assert delivered[:50] == list(range(50))


@pytest.mark.fault(
    fault="AvailableNow beside a transaction that never ends",
    outcome="ends with what was committed before the call",
)
@pytest.mark.only_in_all
def test_available_now_ends_beside_one_big_transaction_that_goes_on_and_on(served: Served) -> None:
    """No COMMTX and no TIMEOUT comes: the rows themselves show how far the log has been read."""
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    insert(server, 1)
    big = server.begin()
    row = order_row((2, None, "x" * 60, None))
    with (
        meanwhile(lambda: [big.insert(ORDERS, row) for _ in range(20)]),
        reader(listening.port) as made,
    ):
        begun = time.monotonic()
        found, _ = available_now(made, anchor)
        assert time.monotonic() - begun < patiently(10)
    assert [number for batch in found for number in batch] == [1]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_daily_runs_of_available_now_keep_their_place_over_a_log_wrap() -> None:
    """A quiet server: each run learns what moves the restart position in the next one."""
    with listening_stores(log_pages=4, log_count=9) as (server, listening):
        offset = begun_and_stopped(listening.port)
        oldest = server.oldest_log()
        for _day in range(6):
            for _ in range(3):
                server.switch_log()
                server.begin().commit()  # nothing captured changes
            with reader(listening.port) as made:
                found, offset = available_now(made, offset)
                assert found in ([], [[]])
        assert server.oldest_log() > oldest + 4  # where the first run stood is long overwritten
        last = insert(server, 1)
        with reader(listening.port) as made:
            assert numbers(drained(made, offset, last)[0]) == [1]


# the bound on the spool


def test_reading_pauses_when_the_spool_is_full_and_says_so(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    caplog.set_level(logging.WARNING)
    with reader(listening.port, maxSpoolBytes="1", maxLatencyMs="0") as made:
        anchor = anchor_of(made)
        insert(server, 1)
        next_offset(made, anchor)
        for number in (2, 3, 4):
            insert(server, number)
        deadline = time.monotonic() + patiently(20)
        while not (figures := made.reportLatestOffset() or {})["isPaused"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert figures["spoolRows"] == 1
    pauses = told(caplog, "reading_paused")
    assert [facts["limit_bytes"] for facts in pauses] == ["1"]
    assert int(pauses[0]["ahead_bytes"]) > 1


@pytest.mark.fault(
    fault="the spool is full and Spark never calls commit",
    outcome="reading pauses and goes on; rows as committed, once, in order",
)
@pytest.mark.only_in_all
def test_a_full_spool_is_no_deadlock_though_spark_never_commits(served: Served) -> None:
    """What lies at or below the start that was last handed in does not count."""
    server, listening = served
    with reader(listening.port, maxSpoolBytes="1", maxLatencyMs="0") as made:
        anchor = anchor_of(made)
        for number in range(5):
            last = insert(server, number)
        rows, _ = drained(made, anchor, last)
    assert numbers(rows) == [0, 1, 2, 3, 4]


@pytest.mark.fault(
    fault="one transaction is larger than maxSpoolBytes",
    outcome="it passes whole",
)
@pytest.mark.only_in_all
def test_a_single_transaction_may_exceed_the_bound(served: Served) -> None:
    server, listening = served
    with reader(listening.port, maxSpoolBytes="1k") as made:
        anchor = anchor_of(made)
        rows, _ = drained(made, anchor, insert(server, *range(1000)))
    assert numbers(rows) == list(range(1000))


@pytest.mark.only_in_all
def test_a_planned_batch_larger_than_the_bound_is_captured_again(served: Served) -> None:
    server, listening = served
    with reader(listening.port) as first:
        anchor = anchor_of(first)
        for number in range(5):
            last = insert(server, number)
        _, end = drained(first, anchor, last)
    with reader(listening.port, maxSpoolBytes="1", maxLatencyMs="0") as again:
        assert numbers(rows_of(again, anchor, end)) == [0, 1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_available_now_ends_with_a_full_spool(served: Served) -> None:
    server, listening = served
    anchor = begun_and_stopped(listening.port)
    for number in range(5):
        insert(server, number)
    with reader(listening.port, maxSpoolBytes="1", maxLatencyMs="0") as made:
        found, _ = available_now(made, anchor)
    assert [number for batch in found for number in batch] == [0, 1, 2, 3, 4]
