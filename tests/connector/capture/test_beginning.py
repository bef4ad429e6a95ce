"""Where a stream begins: below whatever is written next, whatever a server counts or its clock says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from connector.commands.commands import run
from harness.capture.driving import (
    Served,
    anchor_of,
    begun_and_stopped,
    drained,
    foreign_traffic,
    insert,
    numbers,
    reader,
)
from harness.runs.background import meanwhile
from harness.runs.patience import patiently
from harness.servers.stores import ORDERS, listening_stores
from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import BadOption
from informix_capture_client.positions import page_after, parse
from informix_capture_client.session import CaptureSession
from informix_cdc.capture.start import CaptureStart
from informix_cdc.commands import acquire as acquire_command


@pytest.fixture(params=["flushed", "begun", "full"])
def counting(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A server whose clock says another second whenever it is asked."""
    seconds = itertools.count(1_800_000_000)
    with listening_stores(clock=lambda: float(next(seconds))) as (server, listening):
        server.used_pages = request.param
        yield server, listening


def test_what_is_written_after_acquire_lies_at_its_position_or_behind_it(counting: Served) -> None:
    server, listening = counting
    insert(server, 1)
    position = parse(run(listening, "acquire", "informix.orders").stdout.strip())
    begin = server.begin()
    assert position <= begin.begin_sequence <= page_after(page_after(position))
    begin.commit()


def test_a_transaction_that_is_open_at_acquire_is_left_out_whole(
    counting: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changed a row before full row logging was on: what comes after that is half of it."""
    server, listening = counting
    half = server.begin()
    half.insert(ORDERS, {"order_num": 1})
    monkeypatch.setattr(acquire_command, "WAIT_SECONDS", 0.2)
    refused = run(listening, "acquire", "informix.orders")
    assert refused.exit_code == 1
    assert f"their changes may be incomplete: {half.id}" in refused.stderr
    assert refused.stdout == ""
    monkeypatch.setattr(acquire_command, "WAIT_SECONDS", patiently(10))
    with foreign_traffic(server):
        position = run(listening, "acquire", "informix.orders").stdout.strip()
    half.insert(ORDERS, {"order_num": 2})
    half.commit()
    last = insert(server, 3)
    with reader(listening.port, startingPosition=position) as made:
        rows, _ = drained(made, anchor_of(made), last)
    assert numbers(rows) == [3]


@pytest.mark.only_in_all
def test_a_beginning_that_the_log_does_not_have_is_refused_with_the_ways_out(counting: Served) -> None:
    run(counting[1], "acquire", "informix.orders")
    with (
        reader(counting[1].port, startingPosition="99:0x0") as made,
        pytest.raises(BadOption, match=r"log ranges from .* Set it to .* to earliest .* or to latest"),
    ):
        anchor_of(made)


@pytest.mark.only_in_all
def test_no_row_is_missed_that_is_committed_after_acquire(counting: Served) -> None:
    server, listening = counting
    insert(server, 1)
    position = run(listening, "acquire", "informix.orders").stdout.strip()
    last = insert(server, 2)
    with reader(listening.port, startingPosition=position) as made:
        rows, _ = drained(made, anchor_of(made), last)
    assert numbers(rows)[-1:] == [2]


@pytest.mark.only_in_all
def test_no_row_is_missed_of_a_transaction_that_begins_just_after_the_start(
    counting: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins before the session is activated, in the page in which the log ended."""
    server, listening = counting
    insert(server, 1)
    begun = []

    def begin_meanwhile(self: CaptureStart, *arguments: object) -> None:
        begun.append(server.begin())
        begun[0].insert(ORDERS, {"order_num": 2})
        start_captures(self, *arguments)  # type: ignore[arg-type]

    start_captures = CaptureStart._start_captures
    monkeypatch.setattr(CaptureStart, "_start_captures", begin_meanwhile)
    server.set_full_row_logging(ORDERS, True)
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        rows, _ = drained(made, anchor, begun[0].commit())
    assert numbers(rows) == [2]


@pytest.mark.only_in_all
def test_what_committed_in_the_page_before_a_start_at_the_latest_does_not_come(
    counting: Served,
) -> None:
    server, listening = counting
    server.set_full_row_logging(ORDERS, True)
    half = server.begin()
    half.insert(ORDERS, {"order_num": 1})
    insert(server, 2)
    half.commit()
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        rows, _ = drained(made, anchor, insert(server, 3))
    assert numbers(rows) == [3]


@pytest.mark.only_in_all
def test_a_transaction_that_is_open_at_the_start_is_left_out_whole(
    counting: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("informix_cdc.capture.pending.UNSEEN_WAIT_SECONDS", 0.2)
    server, listening = counting
    half = server.begin()
    half.insert(ORDERS, {"order_num": 1})
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        assert anchor["unseen"] == [half.id]
    half.insert(ORDERS, {"order_num": 2})
    half.commit()
    with reader(listening.port) as made:  # a new process judges alike
        rows, end = drained(made, anchor, insert(server, 3))
    assert numbers(rows) == [3]
    assert end["unseen"] == []


def test_a_transaction_that_begins_between_two_questions_of_a_start_is_left_out_whole(
    counting: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were it neither listed as open nor behind the stream's place, its end would look like a loss."""
    monkeypatch.setattr("informix_cdc.capture.pending.UNSEEN_WAIT_SECONDS", 0.2)
    server, listening = counting
    server.set_full_row_logging(ORDERS, True)
    begun, pages = [], range(1000, 1200)  # rows that take some pages of the log

    def then_begins(question: Callable[[], object]) -> Callable[[], object]:
        def ask() -> object:
            answer = question()
            if not begun:
                begun.append(server.begin())
                begun[0].insert(ORDERS, {"order_num": 1})
                for number in pages:
                    insert(server, number)
            return answer

        return ask

    def asking(self: CaptureStart, session: CaptureSession, catalog: Catalog) -> object:
        for name in ("next_position", "open_transactions"):
            monkeypatch.setattr(catalog, name, then_begins(getattr(catalog, name)))
        return first_start(self, session, catalog)

    first_start = CaptureStart._first_start
    monkeypatch.setattr(CaptureStart, "_first_start", asking)
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        for number in pages:  # it ends behind all that a start may read
            insert(server, number)
        begun[0].insert(ORDERS, {"order_num": 2})
        begun[0].commit()
        rows, _ = drained(made, anchor, insert(server, 3))
    assert numbers(rows) == [*pages, 3]


@pytest.mark.fault(
    fault="the server's clock is set back an hour during a first start, on a busy server",
    outcome="the stream begins all the same, by position",
)
def test_a_first_start_does_not_wait_for_a_clock_that_was_set_back() -> None:
    now = [1_800_000_000.0]
    with listening_stores(clock=lambda: now[0], timeout_seconds=60.0) as (server, listening):
        server.begin().commit()

        def traffic() -> None:
            if any(session.is_active for session in server.sessions().values()):
                now[0] = 1_800_000_000.0 - 3600
            server.begin().commit()

        with meanwhile(traffic), reader(listening.port) as made:
            anchor = anchor_of(made)
            rows, _ = drained(made, anchor, insert(server, 1))
    assert numbers(rows) == [1]


@pytest.mark.slow
@pytest.mark.fault(
    fault="the server's clock was set back an hour before a run of AvailableNow",
    outcome="everything committed before the call is delivered",
)
@pytest.mark.only_in_all
def test_available_now_delivers_what_was_committed_though_the_clock_was_set_back() -> None:
    now = [1_800_000_000.0]
    with listening_stores(clock=lambda: now[0]) as (server, listening):
        anchor = begun_and_stopped(listening.port)
        for number in range(2000):
            last = insert(server, number)
        now[0] -= 3600
        with reader(listening.port, maxRowsPerTrigger="100") as made:
            made.prepareForTriggerAvailableNow()
            found, start = [], anchor
            while (end := made.latestOffset(start, made.getDefaultReadLimit())) != start:
                found += [row for part in made.partitions(start, end) for row in made.read(part)]
                start = end
    assert start["commit"] >= last
    assert sum(batch.num_rows for batch in found) == 2000
