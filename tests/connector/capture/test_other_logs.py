"""A log that is not what the stream has read: cut off, of another table, or begun by another server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.capture.driving import (
    GOES_ON,
    Offset,
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
from harness.capture.told import told
from harness.runs.patience import wait_until
from harness.servers.stores import CUSTOMERS, ORDER_COLUMNS, ORDERS, listening_stores, order_row
from informix_capture_client.errors import DataLoss, Gap
from informix_capture_client.positions import parse, show
from informix_cdc.capture import server_watch
from informix_cdc.spark.reader import InformixStreamReader

NOON = 1_800_000_000.0


class Clock:
    """A clock of a server that stands still until it is moved."""

    now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(clock: Clock) -> Iterator[Served]:
    with listening_stores(clock=clock) as (server, listening):
        server.reuses_partition_numbers = True
        yield server, listening


# the end of the log is lost, and its positions are used again


def two_delivered(served: Served) -> tuple[dict[str, object], int]:
    """Deliver two transactions; return where that leaves the stream, and where the second began."""
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        _, middle = drained(made, anchor, insert(server, 1))
        begun = server.position()
        rows, end = drained(made, middle, insert(server, 2))
        assert numbers(rows) == [2]
    return dict(end), begun


@pytest.mark.slow
@pytest.mark.fault(
    fault="the server came back without the end of its log while the query was stopped",
    outcome="IFXCDC-0006 that names the last delivered transaction; nothing passes for delivered",
)
@pytest.mark.parametrize("seconds", [0, 1], ids=["in the same second", "a second later"])
@pytest.mark.only_in_all
def test_a_log_that_lost_what_was_delivered_is_another_log(
    timed: Served, clock: Clock, seconds: int
) -> None:
    server, listening = timed
    end, begun = two_delivered(timed)
    server.recover(lost_from=begun)
    clock.now += seconds
    if not seconds:
        server.begin().commit()  # numbers lie elsewhere
    for number in range(3, 9):
        insert(server, number)
    with reader(listening.port) as made:
        error = failure_of(lambda: next_offset(made, end))
    assert isinstance(error, DataLoss)
    assert error.gap is Gap.OTHER_LOG
    assert show(int(str(end["commit"]))) in error.message


@pytest.mark.fault(
    fault="the same while the query runs",
    outcome="the same when it connects again",
)
def test_a_log_that_lost_its_end_under_a_running_query_ends_it(timed: Served, clock: Clock) -> None:
    server, listening = timed
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        begun = server.position()
        _, end = drained(made, anchor, insert(server, 1))
        clock.now += 1
        server.recover(lost_from=begun)
        listening.disconnect_all()
        for number in range(2, 9):
            insert(server, number)
        error = failure_of(lambda: next_offset(made, end))
    assert isinstance(error, DataLoss)
    assert error.gap is Gap.OTHER_LOG


@pytest.mark.fault(
    fault="the same, where the last delivered transaction began in the log file before",
    outcome="the same",
)
@pytest.mark.only_in_all
def test_a_lost_end_shows_although_the_last_transaction_began_in_an_earlier_log_file(
    timed: Served, clock: Clock
) -> None:
    server, listening = timed
    server.switch_log()  # a session never begins in the oldest file for this: it may be used again
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        begun = server.position()
        long = server.begin()
        long.insert(ORDERS, order_row((1, None, None, None)))
        server.switch_log()
        held = server.begin()
        _, end = drained(made, anchor, long.commit())
    held.rollback()
    server.recover(lost_from=begun)
    clock.now += 100
    for number in range(3, 60):
        insert(server, number)
    server.switch_log()
    insert(server, 60)
    with reader(listening.port) as made:
        error = failure_of(lambda: next_offset(made, end))
    assert isinstance(error, DataLoss)
    assert error.gap is Gap.OTHER_LOG


def available_now(made: InformixStreamReader, start: Offset) -> list[int]:
    """Run as a nightly job does; an error of it is raised."""
    made.prepareForTriggerAvailableNow()
    found: list[int] = []
    while (end := made.latestOffset(start, made.getDefaultReadLimit())) != start:
        found += numbers(rows_of(made, start, end))
        start = end
    return found


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_nightly_run_does_not_end_well_in_a_log_that_lost_its_end(
    timed: Served, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)
    monkeypatch.setattr("informix_cdc.capture.guard.WITNESS_SECONDS", 0.3)
    server, listening = timed
    for number in range(100, 200):
        insert(server, number)
    end, _ = two_delivered(timed)
    server.recover(lost_from=server.log.files[-1].records[8].place)
    insert(server, 300)
    with reader(listening.port) as made:
        error = failure_of(lambda: available_now(made, end))
    assert isinstance(error, DataLoss)


@pytest.mark.slow
@pytest.mark.fault(
    fault="AvailableNow where the server sends nothing of the rest of its log",
    outcome="waits for a while, then ends with a warning that names both places",
)
def test_a_nightly_run_that_cannot_read_to_the_end_says_so(
    timed: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("informix_cdc.capture.end_of_log.LATE_SECONDS", 0.5)
    server, listening = timed
    anchor = begun_and_stopped(listening.port)
    insert(server, 1)
    with reader(listening.port) as made:
        assert available_now(made, anchor) == [1]
        end = made.latestOffset(anchor, made.getDefaultReadLimit())
    server.make_log_unreadable()
    for number in range(2, 60):
        insert(server, number)
    with reader(listening.port) as made:
        assert available_now(made, end) == []
    (event,) = told(caplog, "log_end_not_reached")
    assert parse(event["reached"]) < parse(event["log_end"])


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_stream_may_go_on_in_another_log_if_it_is_told_to(timed: Served, clock: Clock) -> None:
    server, listening = timed
    end, begun = two_delivered(timed)
    clock.now += 1
    server.recover(lost_from=begun)
    insert(server, 3)
    with reader(listening.port, **GOES_ON) as made:
        start = jumped(made, end)
        rows, _ = drained(made, start, insert(server, 4))
    assert numbers(rows)[-2:] == [3, 4]


def test_a_witness_whose_log_file_is_used_again_just_then_is_not_asked_for(
    timed: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening = timed
    end, _ = two_delivered(timed)
    monkeypatch.setattr("informix_cdc.capture.start._resumes_at", lambda *_: 1)  # gone by now
    last = insert(server, 3)
    with reader(listening.port) as made:
        rows, _ = drained(made, end, last)
    assert numbers(rows) == [3]


def test_a_user_who_may_not_see_the_sizes_of_log_files_has_a_stream_all_the_same(
    timed: Served,
) -> None:
    server, listening = timed
    server.hidden_tables.add("sysdbspaces")
    end, _ = two_delivered(timed)
    insert(server, 3)
    with reader(listening.port) as made:
        assert available_now(made, end) == [3]


@pytest.mark.parametrize("quiet", [0, 3], ids=["at once", "after foreign transactions"])
@pytest.mark.only_in_all
def test_a_stream_meets_its_last_transaction_again_and_goes_on(timed: Served, quiet: int) -> None:
    server, listening = timed
    end, _ = two_delivered(timed)
    for _ in range(quiet):
        server.begin().commit()
    with reader(listening.port) as made:
        rows, _ = drained(made, end, insert(server, 3))
    assert numbers(rows) == [3]


@pytest.mark.slow
@pytest.mark.fault(
    fault="the log ends below the last delivered transaction, and nothing is written",
    outcome="nothing moves; IFXCDC-0006 after a minute",
)
def test_a_log_that_ends_below_what_was_delivered_is_told_after_a_minute(
    timed: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)
    monkeypatch.setattr("informix_cdc.capture.guard.WITNESS_SECONDS", 0.3)
    server, listening = timed
    for number in range(100, 200):
        insert(server, number)
    end, _ = two_delivered(timed)
    server.recover(lost_from=server.log.files[-1].records[8].place)
    with reader(listening.port) as made:
        error = failure_of(lambda: next_offset(made, end))
    assert isinstance(error, DataLoss)
    assert "ends at" in error.message


# rows of another table under our label


def re_created(served: Served, clock: Clock) -> int:
    """Let a table be dropped and created again with its partition number; return the last commit."""
    server, _ = served
    server.table_age_seconds = 0.0
    server.set_full_row_logging(ORDERS, True)
    insert(server, 1, 2)
    server.set_full_row_logging(ORDERS, False)
    number = server.table(ORDERS).partnum
    server.drop_table(ORDERS)
    clock.now += 10
    server.create_table(ORDERS, ORDER_COLUMNS, full_row_logging=True)
    assert server.table(ORDERS).partnum == number
    with server.transaction() as same_second:
        same_second.insert(ORDERS, order_row((3, None, None, None)))
    clock.now += 1
    return insert(server, 4)


@pytest.mark.fault(
    fault="a start in the past, before a table got the partition number of a dropped one",
    outcome="rows of the former table are left out and told; also after a restart",
)
def test_rows_of_a_table_that_had_the_partition_number_before_are_left_out(
    timed: Served, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    _, listening = timed
    last = re_created(timed, clock)
    with reader(listening.port, startingPosition="earliest") as made:
        anchor = anchor_of(made)
    with reader(listening.port) as made:
        rows, end = drained(made, anchor, last)
    assert numbers(rows) == [4]
    assert end["commit"] == last
    left_out, *_again = told(caplog, "former_rows_left_out")
    assert (left_out["table"], left_out["begun"]) == ("stores:informix.orders", str(int(NOON)))


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_jump_leaves_out_rows_of_a_former_table_too(timed: Served, clock: Clock) -> None:
    _, listening = timed
    anchor = begun_and_stopped(listening.port)
    last = re_created(timed, clock)
    with reader(listening.port, **GOES_ON) as made:
        rows, _ = drained(made, jumped(made, anchor), last)
    assert numbers(rows) == [4]


@pytest.mark.only_in_all
def test_other_tables_of_an_older_transaction_keep_their_rows(timed: Served, clock: Clock) -> None:
    server, listening = timed
    server.set_full_row_logging(CUSTOMERS, True)
    server.table_age_seconds = 0.0
    server.set_full_row_logging(ORDERS, True)
    with server.transaction() as both:
        both.insert(ORDERS, order_row((1, None, None, None)))
        both.insert(CUSTOMERS, {"customer_num": 7})
    server.drop_table(ORDERS)
    clock.now += 10
    server.create_table(ORDERS, ORDER_COLUMNS, full_row_logging=True)
    clock.now += 1
    last = insert(server, 2)
    tables = {"table": "informix.orders,informix.customers", "startingPosition": "earliest"}
    with reader(listening.port, **tables) as made:
        rows, _ = drained(made, anchor_of(made), last)
    assert [(bool(row["orders"]), bool(row["customers"])) for row in rows] == [
        (False, True),
        (True, False),
    ]


@pytest.mark.only_in_all
def test_a_stream_that_began_at_the_end_of_the_log_leaves_nothing_out(
    timed: Served, clock: Clock
) -> None:
    """Its table was there when it began, whatever a TRUNCATE or a clock makes of the creation time."""
    server, listening = timed
    anchor = begun_and_stopped(listening.port)
    last = insert(server, 1)
    server.table(ORDERS).created_at = NOON + 1000
    with reader(listening.port) as made:
        rows, _ = drained(made, anchor, last)
        assert figure(made, "transactions") == 1
    assert numbers(rows) == [1]
    wait_until(lambda: not server.sessions())
