"""What the guard counts and warns of: from values, and in a stream that is left behind or lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.capture.driving import (
    LIMIT,
    Served,
    anchor_of,
    drained,
    insert,
    next_offset,
    own_capture_of,
    reader,
    restart_in_spool,
)
from harness.capture.told import told
from harness.runs.patience import wait_until
from harness.servers.stores import ORDERS, listening_stores
from informix_capture_client.errors import ConnectionLost, DataLoss, Gap
from informix_capture_client.positions import DeliveredCommit, Position, log_page, show
from informix_capture_client.stream import Read, Silence, Starting
from informix_capture_client.transactions import TransactionAssembler
from informix_cdc.capture import Counters, Gauges, server_watch
from informix_cdc.capture.guard import CaptureGuard, row_logging_off
from informix_cdc.capture.liveness import Liveness, LogFacts
from informix_cdc.capture.state import CaptureState
from informix_checkpoints.readers import ReaderState


@pytest.fixture(autouse=True)
def watched_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)


# values


class Told:
    """A watch that is told what the server says."""

    facts: LogFacts | None = None

    def close(self) -> None:
        """Nothing is open."""


OFF = LogFacts(0.0, log_page(9, 6), log_page(1, 0), unlogged_tables=("stores:informix.orders",))


def guarding(state: CaptureState) -> tuple[CaptureGuard, Callable[[float, int], None]]:
    """Return a guard, and what lets it hear at a time that the log ends at a page of log 9."""
    watch, now = Told(), [0.0]
    guard = CaptureGuard(Liveness(8.0, 120.0), watch, state, clock=lambda: now[0])

    def hear(seconds: float, page: int) -> None:
        now[0] = seconds
        guard.on_read(Read([], log_page(9, 5), 0, TransactionAssembler(Position(0, 0))))
        watch.facts = LogFacts(seconds, log_page(9, page), log_page(1, 0))
        guard.check(Position(log_page(9, 5), log_page(9, 4)))

    hear(0.0, 5)
    return guard, hear


def test_a_stall_adds_to_those_of_captures_before() -> None:
    state = CaptureState(Counters(stalls=3))
    _, hear = guarding(state)
    hear(60.0, 100)
    with pytest.raises(ConnectionLost, match="only TIMEOUT records"):
        hear(130.0, 200)
    assert state.counters.stalls == 4
    assert state.gauges.stalled_since == 0.0


def test_what_the_server_said_before_the_session_was_open_is_not_judged() -> None:
    """A first start switches full row logging on; a watch may have seen it off just before."""
    watch, now = Told(), [10.0]
    guard = CaptureGuard(Liveness(8.0, 120.0), watch, CaptureState(), clock=lambda: now[0])
    high_watermark = Position(log_page(9, 5), log_page(9, 4))
    for asked_at in (9.9, 10.0):  # before it, and at the very moment
        watch.facts = replace(OFF, asked_at=asked_at)
        guard.on_read(Starting())
        guard.check(high_watermark)  # the session is not open yet
        guard.on_read(Read([], log_page(9, 5), 0, TransactionAssembler(Position(0, 0))))
        guard.check(high_watermark)
    watch.facts = replace(OFF, asked_at=10.1)
    guard.check(high_watermark)  # one wrong look must not end a stream for good
    watch.facts = replace(OFF, asked_at=10.2, unlogged_tables=())
    guard.check(high_watermark)
    for asked_at in (10.3, 10.3):  # the same look
        watch.facts = replace(OFF, asked_at=asked_at)
        guard.check(high_watermark)
    watch.facts = replace(OFF, asked_at=10.4)
    with pytest.raises(DataLoss, match=r"full row logging of .*orders was switched off"):
        guard.check(high_watermark)


def test_time_before_the_session_was_open_is_not_the_servers_silence() -> None:
    watch, now = Told(), [0.0]
    guard = CaptureGuard(Liveness(8.0, 120.0), watch, CaptureState(), clock=lambda: now[0])
    watch.facts = replace(OFF, asked_at=1.0)
    for seconds in (5.0, 20.0):
        now[0] = seconds
        guard.on_read(Starting())
        guard.check(Position(log_page(9, 5), log_page(9, 4)))
    now[0] = 27.0
    guard.on_read(Silence())


def test_a_log_that_ends_before_a_delivered_commit_is_another_one_after_a_minute_only() -> None:
    """The end of the log that the server shows may be late: it is not on disk yet."""
    watch, now = Told(), [0.0]
    guard = CaptureGuard(Liveness(8.0, 120.0), watch, CaptureState(), clock=lambda: now[0])
    delivered = DeliveredCommit(log_page(9, 30), log_page(9, 40), 1)
    for seconds in (0.0, 30.0, 59.0):
        now[0] = seconds
        reached = Position(log_page(9, 40), log_page(9, 30), last_delivered=delivered)
        guard.on_read(Read([], log_page(9, 5), 0, TransactionAssembler(reached)))
        watch.facts = LogFacts(seconds, log_page(9, 5), log_page(1, 0))
        guard.check(reached)
    now[0] = 61.0
    watch.facts = LogFacts(61.0, log_page(9, 5), log_page(1, 0))
    with pytest.raises(DataLoss, match="the log ends at") as caught:
        guard.check(reached)
    assert caught.value.gap is Gap.OTHER_LOG


LATE = [
    ("the checkpoint's position is late, though the spool's is not", log_page(1, 5), None, "Spark"),
    ("so it is while a transaction is open that does not hold it", log_page(1, 5), 7, "Spark"),
    ("it is not late", log_page(8, 0), None, ""),
    ("Spark has not yet asked for a batch", None, None, ""),
]


def reader_at(restart: int | None) -> ReaderState:
    return ReaderState(name="", taken=Position(0, restart or 0))


@pytest.mark.parametrize(("restart", "begin", "says"), [c[1:] for c in LATE], ids=[c[0] for c in LATE])
def test_what_a_restart_needs_is_judged(
    restart: int | None, begin: int | None, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    gauges = Gauges(oldest_open_begin=begin)
    _, hear = guarding(CaptureState(gauges=gauges, reader=reader_at(restart)))
    hear(1.0, 6)
    late = told(caplog, "restart_position_late")
    assert len(late) == bool(says)
    assert all(says in line["reason"] and "held_by" not in line for line in late)


def test_a_restart_position_that_the_servers_list_holds_back_is_told_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = CaptureState(reader=reader_at(log_page(1, 5)))
    state.restart_bound.is_wanted = True
    guard = CaptureGuard(Liveness(8.0, 120.0), Told(), state)
    guard._log_late_restart(
        log_page(1, 5), Position(log_page(9, 5), log_page(1, 5)), log_page(1, 0), "late"
    )
    assert "systrans" in told(caplog, "restart_position_late")[0]["reason"]


# streams


@pytest.mark.fault(
    fault="Spark takes nothing while the log is read on and nearly wraps",
    outcome="a warning that says so",
)
def test_a_checkpoint_that_spark_leaves_behind_is_told_although_the_spool_is_far_ahead(
    caplog: pytest.LogCaptureFixture,
) -> None:
    big_log = listening_stores(log_pages=64, log_count=6)
    with big_log as (server, listening), reader(listening.port) as made:
        anchor = anchor_of(made)
        made.latestOffset(anchor, LIMIT)
        for number in range(5):
            server.switch_log()
            insert(server, number)
            number_of_log = server.log.current.number
            wait_until(lambda log=number_of_log: restart_in_spool(made) >> 32 == log)
        wait_until(lambda: told(caplog, "restart_position_late"))
        late = told(caplog, "restart_position_late")[0]
    assert late["restart"] == show(anchor["restart"])
    assert "Spark has not read the rows up to" in late["reason"]
    assert "held_by" not in late


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_stream_that_goes_on_after_a_loss_is_not_measured_by_the_old_one(served: Served) -> None:
    """The server may be another one under the same name, whose positions lie far below."""
    server, listening = served
    with reader(listening.port, onDataLoss="continue") as made:
        end = anchor_of(made)
        _, end = drained(made, end, insert(server, 1))
        thread = own_capture_of(made).thread
        assert thread is not None
        liveness = thread._capture.liveness
        far = liveness._highest = end["commit"] + (9 << 32)
        server.set_full_row_logging(ORDERS, False)
        while (following := next_offset(made, end))["stream"] == end["stream"]:
            end = following
        drained(made, following, insert(server, 2))
        assert following["commit"] <= liveness._highest < far


@pytest.mark.slow
@pytest.mark.only_in_all
def test_truncates_are_counted_over_a_reconnect(served: Served) -> None:
    server, listening = served
    with reader(listening.port, truncate="ignore") as made:
        end = anchor_of(made)
        for number in (1, 2):
            transaction = server.begin()
            transaction.truncate(ORDERS)
            transaction.commit()
            _, end = drained(made, end, insert(server, number))
            listening.disconnect_all()
        _, end = drained(made, end, insert(server, 3))
        shown = made.reportLatestOffset() or {}
    assert (shown["reconnects"], shown["truncates"]) == (2, 2)


def test_a_loss_of_many_tables_names_the_first_and_has_all() -> None:
    names = [f"stores:informix.t{number}" for number in range(200)]
    lost = row_logging_off(names, Position(1, 0))
    assert "informix.t4 and 195 more tables was switched off" in lost.message
    assert pickle.loads(pickle.dumps(lost)).tables == tuple(names)
